#include "perf_code.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace waymark::capture::perf {

namespace {

/// A number of `size` bytes; 0 beyond the end of the bytes.
std::uint64_t number(Bytes bytes, std::uint64_t at, unsigned size) {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < size && at < bytes.size() && i < bytes.size() - at; ++i)
        out |= std::uint64_t{bytes[static_cast<std::size_t>(at) + i]} << 8 * i;
    return out;
}

/// `count` bytes from `at` on; empty if not all of them exist.
Bytes piece(Bytes bytes, std::uint64_t at, std::uint64_t count) {
    if (at > bytes.size() || count > bytes.size() - at) return {};
    return bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
}

/// Adds the functions of one struct bpf_prog_info, whose arrays are in `data`.
void add_functions(Bytes info, Bytes data, std::vector<BpfFunction>& out) {
    constexpr std::uint64_t tag_at = 8, code_bytes_at = 16, code_at = 24, name_at = 64, name_bytes = 16,
                            functions_at = 104, lengths_at = 108, addresses_in = 112, lengths_in = 120;
    const std::uint64_t functions = number(info, functions_at, 4);
    if (functions == 0 || number(info, lengths_at, 4) != functions) return;
    const Bytes code = piece(data, number(info, code_at, 8), number(info, code_bytes_at, 4));
    const Bytes addresses = piece(data, number(info, addresses_in, 8), 8 * functions);
    const Bytes lengths = piece(data, number(info, lengths_in, 8), 4 * functions);
    if (addresses.empty() || lengths.empty()) return;
    const Bytes name = piece(info, name_at, name_bytes);
    const std::string text(name.begin(), std::find(name.begin(), name.end(), std::uint8_t{0}));
    const std::string tag = fmt::format("bpf_prog_{:02x}", fmt::join(piece(info, tag_at, 8), ""));
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < functions; ++i) {
        const std::uint64_t length = number(lengths, 4 * i, 4);
        const Bytes one = piece(code, at, length);
        if (one.empty()) return;
        at += length;
        out.push_back({{number(addresses, 8 * i, 8)},
                       {one.begin(), one.end()},
                       text.empty() || i != 0 ? tag : fmt::format("{}_{}", tag, text)});
    }
}

}  // namespace

std::vector<BpfFunction> bpf_functions(Bytes feature) {
    std::vector<BpfFunction> out;
    constexpr std::uint64_t head_bytes = 16;
    std::uint64_t at = 4;
    for (std::uint64_t left = number(feature, 0, 4); left != 0 && at + head_bytes <= feature.size(); --left) {
        const std::uint64_t info_bytes = number(feature, at, 4), data_bytes = number(feature, at + 4, 4);
        const Bytes info = piece(feature, at + head_bytes, info_bytes);
        const Bytes data = piece(feature, at + head_bytes + info_bytes, data_bytes);
        if (info.size() != info_bytes || data.size() != data_bytes) break;
        add_functions(info, data, out);
        at += head_bytes + info_bytes + data_bytes;
    }
    return out;
}

std::vector<CodeChange> kernel_code_changes(const PerfData& data) {
    std::vector<CodeChange> out;
    // Even before the first change, the code in the kernel's file may differ from the executed code, because the kernel
    // patches itself when it starts.
    std::vector<const TextPoke*> pokes;
    for (const TextPoke& poke : data.text_pokes) pokes.push_back(&poke);
    std::stable_sort(pokes.begin(), pokes.end(),
                     [](const TextPoke* a, const TextPoke* b) { return a->time < b->time; });
    std::set<std::uint64_t> met;
    for (const TextPoke* poke : pokes) {
        const std::uint64_t bytes = std::max(poke->before.size(), poke->after.size());
        if (bytes == 0) continue;
        // New text gets the name of the KSYMBOL that contains it.
        std::string name;
        for (const KernelSymbol& s : data.kernel_symbols)
            if (!s.unregistered && poke->address.value >= s.address.value &&
                poke->address.value - s.address.value < s.bytes)
                name = s.name;
        if (met.insert(poke->address.value).second && !poke->before.empty())
            out.push_back({CodeChange::kernel, 0, poke->address, poke->before.size(), poke->before, name});
        out.push_back({CodeChange::kernel, poke->time, poke->address, bytes, poke->after, name});
    }
    // From KSYMBOL to KSYMBOL; code from before the recording has time 0.
    for (const BpfFunction& f : data.bpf_functions) {
        CodeChange change{CodeChange::kernel, 0, f.address, f.code.size(), f.code, f.name};
        std::optional<std::uint64_t> until;
        for (const KernelSymbol& s : data.kernel_symbols) {
            if (s.address != f.address) continue;
            if (s.unregistered) {
                until = s.time;
            } else {
                change.time = s.time;
                change.name = s.name;
                until.reset();
            }
        }
        out.push_back(change);
        if (until && *until >= change.time)
            out.push_back({CodeChange::kernel, *until, f.address, f.code.size(), {}, change.name});
    }
    std::stable_sort(out.begin(), out.end(), [](const CodeChange& a, const CodeChange& b) { return a.time < b.time; });
    return out;
}

}  // namespace waymark::capture::perf
