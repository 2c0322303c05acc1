/// Finds the DWARF version of a program, for readers that only support older versions.
#pragma once

#include <filesystem>

namespace waymark::image {

/// The newest version of DWARF among the units in the file itself; 0: there is none, or the file cannot be read.
[[nodiscard]] unsigned dwarf_version(const std::filesystem::path& path);

}  // namespace waymark::image
