/// The facts about a mapped file that a recording keeps: its executable parts and its build ID.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/record/ring.h"

namespace waymark::record {

struct MappedFile {
    struct Part {
        std::uint64_t offset{}, bytes{};  ///< in the file, whole pages
        std::uint64_t address{};          ///< address of `offset` in the file's own headers
    };
    std::vector<Part> executable{};  ///< none if it is no ELF file
    std::vector<std::uint8_t> build_id{};
};

/// For a file that cannot be read, or whose headers are wrong, the facts that could be read.
[[nodiscard]] MappedFile read_mapped_file(const std::string& path);

/// A stretch of memory and its place in the file.
struct MappedPiece {
    std::uint64_t address{}, bytes{}, file_offset{};
    friend bool operator==(const MappedPiece&, const MappedPiece&) = default;
};
/// The pieces of the mapping that are executable by the file's headers; the whole mapping if the file has none: QEMU
/// maps without the right to execute, so the host may have joined separate mappings of the program.
[[nodiscard]] std::vector<MappedPiece> executable_pieces(const MappedFile& file, const MapPart& part);

}  // namespace waymark::record
