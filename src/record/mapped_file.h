/// What a profile says of a mapped file: which parts of it are executable, and its build id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace waymark::record {

struct MappedFile {
    struct Part {
        std::uint64_t offset{}, bytes{};  ///< in the file, whole pages
    };
    std::vector<Part> executable{};  ///< none if it is no AArch64 ELF file
    std::vector<std::uint8_t> build_id{};
};

/// Of a file that cannot be read, or lies about itself, as much as there is.
[[nodiscard]] MappedFile read_mapped_file(const std::string& path);

}  // namespace waymark::record
