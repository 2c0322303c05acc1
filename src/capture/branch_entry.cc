#include "waymark/capture/branch_entry.h"

namespace waymark::capture::perf {

namespace {

constexpr std::uint64_t bits(std::uint64_t value, unsigned low, unsigned count) {
    return value >> low & ((std::uint64_t{1} << count) - 1);
}

}  // namespace

std::string_view name(BranchEntryType type) {
    constexpr std::string_view names[] = {"",    "COND",    "UNCOND", "IND",       "CALL",     "IND_CALL",
                                          "RET", "SYSCALL", "SYSRET", "COND_CALL", "COND_RET", "ERET",
                                          "IRQ", "SERROR",  "NO_TX",  "EXTEND_ABI"};
    return names[static_cast<unsigned>(type) & 15U];
}

BranchEntry parse_branch_entry(std::span<const std::uint8_t, branch_entry_bytes> bytes) {
    const auto number = [&](std::size_t at) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < 8; ++i) value |= std::uint64_t{bytes[at + i]} << (8 * i);
        return value;
    };
    const std::uint64_t flags = number(16);
    BranchEntry out;
    out.from = number(0);
    out.to = number(8);
    out.mispredicted = bits(flags, 0, 1) != 0;
    out.predicted = bits(flags, 1, 1) != 0;
    out.in_transaction = bits(flags, 2, 1) != 0;
    out.aborted = bits(flags, 3, 1) != 0;
    out.cycles = static_cast<std::uint16_t>(bits(flags, 4, 16));
    out.type = static_cast<BranchEntryType>(bits(flags, 20, 4));
    out.speculation = static_cast<Speculation>(bits(flags, 24, 2));
    out.new_type = static_cast<std::uint8_t>(bits(flags, 26, 4));
    out.privilege = static_cast<std::uint8_t>(bits(flags, 30, 3));
    return out;
}

std::array<std::uint8_t, branch_entry_bytes> encode_branch_entry(const BranchEntry& entry) {
    std::array<std::uint8_t, branch_entry_bytes> out{};
    const auto put = [&](std::size_t at, std::uint64_t value) {
        for (unsigned i = 0; i < 8; ++i) out[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    };
    put(0, entry.from);
    put(8, entry.to);
    put(16, std::uint64_t{entry.mispredicted} | std::uint64_t{entry.predicted} << 1 |
                std::uint64_t{entry.in_transaction} << 2 | std::uint64_t{entry.aborted} << 3 |
                std::uint64_t{entry.cycles} << 4 | static_cast<std::uint64_t>(entry.type) << 20 |
                static_cast<std::uint64_t>(entry.speculation) << 24 | std::uint64_t{entry.new_type & 15U} << 26 |
                std::uint64_t{entry.privilege & 7U} << 30);
    return out;
}

}  // namespace waymark::capture::perf
