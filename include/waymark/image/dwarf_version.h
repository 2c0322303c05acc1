/// Finds the DWARF version of a program, for readers that only support older versions.
#pragma once

#include <filesystem>

namespace waymark::image {

/// The newest version of DWARF that a unit in the file itself has; 0: there is none, or the file cannot be read.
[[nodiscard]] unsigned dwarf_version(const std::filesystem::path& path);

}  // namespace waymark::image
