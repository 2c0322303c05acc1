/// What a recording says about a mapped file: its executable parts and its build ID.
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
        std::uint64_t address{};          ///< of `offset`, as the file has it
    };
    std::vector<Part> executable{};  ///< none if it is no ELF file
    std::vector<std::uint8_t> build_id{};
};

/// Of a file that cannot be read, or lies about itself, as much as there is.
[[nodiscard]] MappedFile read_mapped_file(const std::string& path);

/// A stretch of memory and where in the file it comes from.
struct MappedPiece {
    std::uint64_t address{}, bytes{}, file_offset{};
    friend bool operator==(const MappedPiece&, const MappedPiece&) = default;
};
/// The pieces of the mapping that the file says are executable; the whole mapping if the file says nothing: QEMU maps
/// without the right to execute, so the host may have joined what the program maps one by one.
[[nodiscard]] std::vector<MappedPiece> executable_pieces(const MappedFile& file, const MapPart& part);

}  // namespace waymark::record
