#include <algorithm>
#include <array>
#include <span>

#include "waymark/isa/decode_instr.h"
#include "waymark/isa/x86.h"

namespace waymark::isa {

namespace {

/// Compiled for each width of addresses, since decoding begins here. `found`: the memory at the address.
template <bool a64>
Fetched fetch_as(const Code& found, const CodeReader& code, const Space& space, Address address, Isa isa) {
    constexpr std::uint64_t addresses = a64 ? ~std::uint64_t{0} : 0xffff'ffffU;
    const bool words = a64 || isa == Isa::a32;
    std::array<std::uint8_t, 4> bytes{};
    std::size_t have = std::min(bytes.size(), found.bytes.size());
    std::copy_n(found.bytes.begin(), have, bytes.begin());

    // The piece of memory may end inside the instruction. Beyond its end, only bytes that the instruction needs are
    // fetched: a 16-bit instruction may be the last mapped code.
    const auto complete = [&](std::size_t needed) {
        while (have < needed) {
            const Address beyond{(address.value + have) & addresses};
            const Bytes piece = code.at(beyond, space).bytes;
            if (piece.empty()) return false;
            const std::size_t taken = std::min(needed - have, piece.size());
            std::copy_n(piece.begin(), taken, bytes.begin() + static_cast<std::ptrdiff_t>(have));
            have += taken;
        }
        return true;
    };
    const auto halfword = [&](std::size_t at) {
        return static_cast<std::uint32_t>(bytes[at]) | static_cast<std::uint32_t>(bytes[at + 1]) << 8;
    };

    if (have == 0 || !complete(words ? 4 : 2)) return {};
    if (words) return {halfword(2) << 16 | halfword(0), 4, found.section};
    if (!is_thumb_32(halfword(0))) return {halfword(0), 2, found.section};
    if (!complete(4)) return {};
    return {halfword(0) << 16 | halfword(2), 4, found.section};
}

}  // namespace

std::size_t read(const CodeReader& code, const Space& space, Address address, std::span<std::uint8_t> into) {
    std::size_t have = 0;
    while (have < into.size()) {
        const Bytes piece = code.at({address.value + have}, space).bytes;
        if (piece.empty()) break;
        const std::size_t taken = std::min(into.size() - have, piece.size());
        std::copy_n(piece.begin(), taken, into.begin() + static_cast<std::ptrdiff_t>(have));
        have += taken;
    }
    return have;
}

Fetched fetch(const CodeReader& code, const Space& space, Address address, Isa isa) {
    return Fetcher(code, space)(address, isa);
}

Fetched Fetcher::operator()(Address address, Isa isa) {
    if (isa == Isa::jazelle || isa == Isa::x86_64) return {};
    std::uint64_t at = address.value - first_.value;
    if (at >= known_.bytes.size()) {
        known_ = code_.at(address, space_);
        first_ = address;
        at = 0;
    }
    const Code found{known_.bytes.subspan(at), known_.section};
    return isa == Isa::a64 ? fetch_as<true>(found, code_, space_, address, isa)
                           : fetch_as<false>(found, code_, space_, address, isa);
}

std::optional<Instruction> decode_at(const CodeReader& code, const Space& space, Address address, Isa isa,
                                     const DecodeOptions& options) {
    if (isa == Isa::x86_64) {
        std::array<std::uint8_t, longest_x86_instr> bytes{};
        return decode_x86_instr(address, Bytes(bytes).first(read(code, space, address, bytes)));
    }
    const Fetched fetched = fetch(code, space, address, isa);
    if (fetched.bytes == 0) return {};
    return decode_instr(address, isa, fetched.opcode, fetched.bytes == 4, options);
}

}  // namespace waymark::isa
