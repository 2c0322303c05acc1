#include "mapped_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "waymark/record/ring.h"

namespace waymark::record {

namespace {

struct ElfHeader {
    std::array<std::uint8_t, 16> ident;
    std::uint16_t type, machine;
    std::uint32_t version;
    std::uint64_t entry, program_headers, section_headers;
    std::uint32_t flags;
    std::uint16_t header_bytes, program_header_bytes, program_header_count, rest[3];
};
struct ProgramHeader {
    std::uint32_t type, flags;
    std::uint64_t offset, address, physical, file_bytes, memory_bytes, align;
};
static_assert(sizeof(ElfHeader) == 64 && sizeof(ProgramHeader) == 56);

template <class T>
bool read_at(std::ifstream& in, std::uint64_t offset, T& to) {
    in.clear();
    return in.seekg(static_cast<std::streamoff>(offset)) && in.read(reinterpret_cast<char*>(&to), sizeof to);
}

/// NT_GNU_BUILD_ID of a note segment.
std::vector<std::uint8_t> build_id(std::ifstream& in, const ProgramHeader& notes) {
    std::uint64_t at = notes.offset;
    const std::uint64_t end = notes.offset + std::min<std::uint64_t>(notes.file_bytes, 1 << 16);
    for (std::array<std::uint32_t, 3> note{}; at + sizeof note <= end && read_at(in, at, note);) {
        const auto [name_bytes, bytes, type] = note;
        constexpr std::uint32_t most = 1 << 16, gnu_build_id = 3;
        if (name_bytes > most || bytes > most) break;
        const std::uint64_t description = at + sizeof note + ((name_bytes + 3) & ~3U);
        std::array<char, 4> name{};
        if (type == gnu_build_id && name_bytes == 4 && read_at(in, at + sizeof note, name) &&
            std::memcmp(name.data(), "GNU", 4) == 0 && bytes <= 20) {
            std::vector<std::uint8_t> id(bytes);
            in.clear();
            in.seekg(static_cast<std::streamoff>(description));
            if (in.read(reinterpret_cast<char*>(id.data()), bytes)) return id;
            break;
        }
        at = description + ((bytes + 3) & ~3U);
    }
    return {};
}

}  // namespace

MappedFile read_mapped_file(const std::string& path) {
    MappedFile file;
    std::ifstream in(path, std::ios::binary);
    ElfHeader header{};
    constexpr std::uint16_t aarch64 = 183;
    if (!read_at(in, 0, header) ||
        std::memcmp(header.ident.data(),
                    "\x7f"
                    "ELF\2\1",
                    6) != 0 ||
        header.machine != aarch64 || header.program_header_bytes != sizeof(ProgramHeader))
        return file;
    for (std::uint64_t i = 0; i < header.program_header_count; ++i) {
        ProgramHeader part{};
        if (!read_at(in, header.program_headers + i * sizeof part, part)) break;
        constexpr std::uint32_t load = 1, note = 4, execute = 1;
        if (part.type == load && (part.flags & execute) != 0) {
            const std::uint64_t first = part.offset & ~std::uint64_t{page_bytes - 1};
            const std::uint64_t last =
                (part.offset + part.file_bytes + page_bytes - 1) & ~std::uint64_t{page_bytes - 1};
            if (last > first) file.executable.push_back({first, last - first});
        } else if (part.type == note && file.build_id.empty()) {
            file.build_id = build_id(in, part);
        }
    }
    return file;
}

}  // namespace waymark::record
