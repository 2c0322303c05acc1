#include "waymark/image/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "elf_file.h"

namespace waymark::image {

namespace {

/// A stretch where two memories overlap.
struct Meeting {
    std::uint64_t first{}, bytes{};
};
Meeting meet(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes) {
    const std::uint64_t first = std::max(a, b), end = std::min(a + a_bytes, b + b_bytes);
    return {first, end > first ? end - first : 0};
}

/// The bytes that a map contains of [first, first + bytes).
std::vector<std::uint8_t> bytes_at(const MemoryMap& map, unsigned state, std::uint64_t first, std::uint64_t bytes) {
    std::vector<std::uint8_t> out;
    while (out.size() < bytes) {
        const Bytes there = map.at(Address{first + out.size()}, SpaceFilter::space(state)).bytes;
        if (there.empty()) break;
        const std::size_t count = std::min<std::size_t>(there.size(), bytes - out.size());
        out.insert(out.end(), there.begin(), there.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return out;
}

/// Counts the bytes of a part of the file's code that are equal in memory.
void compare(Bytes file, Bytes memory, Agreement& out) {
    constexpr std::size_t word = 4;
    for (std::size_t i = 0; i < std::min(file.size(), memory.size()); i += word) {
        const std::size_t count = std::min({word, file.size() - i, memory.size() - i});
        const Bytes there = memory.subspan(i, count);
        if (std::all_of(there.begin(), there.end(), [](std::uint8_t b) { return b == 0; })) continue;
        out.compared += count;
        for (std::size_t k = 0; k < count; ++k) out.different += there[k] != file[i + k] ? 1U : 0U;
    }
}

void hold_against(const MemoryMap& map, unsigned state, const std::vector<ElfFile::CodePiece>& code,
                  const std::optional<ElfFile::BuildId>& id, std::uint64_t bias, Agreement& out) {
    const auto regions = map.regions();
    for (const ElfFile::CodePiece& piece : code)
        for (const Region& region : regions) {
            if (region.shadowed_by || !region.space.has(state)) continue;
            const Meeting both = meet(piece.address + bias, piece.declared_bytes, region.address.value, region.bytes);
            if (both.bytes == 0) continue;
            out.known += both.bytes;
            const std::uint64_t into = both.first - (piece.address + bias);
            if (into >= piece.contents.size()) continue;
            const auto memory = bytes_at(map, state, both.first, both.bytes);
            compare(piece.contents.subspan(static_cast<std::size_t>(into)), memory, out);
        }
    if (!id) return;
    const auto note = bytes_at(map, state, id->address + bias, id->note.size());
    // The head of the note, up to the ID: if it differs, memory contains something else there.
    const std::size_t head = id->note.size() - id->bytes.size();
    if (note.size() != id->note.size() ||
        !std::equal(note.begin(), note.begin() + static_cast<std::ptrdiff_t>(head), id->note.begin()))
        return;
    out.build_id_there = fmt::format("{:02x}", fmt::join(Bytes(note).subspan(head), ""));
}

/// Whether `a` compares more bytes, or as many with more differences.
bool agrees_better(const Agreement& a, const Agreement& b) {
    const auto share = [](const Agreement& x) {
        return x.compared == 0 ? 0.5 : 1.0 - static_cast<double>(x.different) / static_cast<double>(x.compared);
    };
    const auto id = [](const Agreement& x) {
        return x.build_id_there.empty() ? 1 : x.build_id_there == x.build_id ? 2 : 0;
    };
    if (id(a) != id(b) && (id(a) == 2 || id(b) == 2)) return id(a) == 2;
    if ((a.known == 0) != (b.known == 0)) return b.known == 0;
    if (share(a) != share(b)) return share(a) > share(b);
    return a.known > b.known;
}

}  // namespace

std::string_view name(ElfMachine machine) {
    return machine == ElfMachine::arm ? "Arm (32 bits)" : machine == ElfMachine::aarch64 ? "AArch64" : "x86-64";
}

Result<Agreement> agreement(const std::filesystem::path& path, std::uint64_t load_bias,
                            std::span<const std::shared_ptr<const MemoryMap>> maps) {
    WM_ASSIGN_OR_RETURN(SharedBytes file, map_file(path.string()));
    WM_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::open(std::move(file), path.string(), Machines::arm_and_x86_64));
    const std::vector<ElfFile::CodePiece> code = elf.code();
    const std::optional<ElfFile::BuildId> id = elf.build_id();
    Agreement of_file;
    of_file.machine = elf.is_arm() ? ElfMachine::arm : elf.is_x86_64() ? ElfMachine::x86_64 : ElfMachine::aarch64;
    of_file.position_independent = elf.is_position_independent();
    of_file.relocatable = elf.is_relocatable();
    if (id) of_file.build_id = fmt::format("{:02x}", fmt::join(id->bytes, ""));
    for (const ElfFile::CodePiece& piece : code) {
        const std::uint64_t first = piece.address + load_bias, end = first + piece.declared_bytes;
        if (of_file.first == of_file.end || first < of_file.first.value) of_file.first = Address{first};
        of_file.end = Address{std::max(of_file.end.value, end)};
    }
    Agreement best = of_file;
    for (const auto& map : maps)
        for (unsigned state = 0; state < SpaceFilter::states; ++state) {
            Agreement one = of_file;
            hold_against(*map, state, code, id, load_bias, one);
            if (agrees_better(one, best)) best = std::move(one);
        }
    return best;
}

}  // namespace waymark::image
