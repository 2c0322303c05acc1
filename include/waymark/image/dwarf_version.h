/// Which version of DWARF a program was compiled with, for readers that know the older ones alone.
#pragma once

#include <filesystem>

namespace waymark::image {

/// The newest version of DWARF that a unit in the file itself has; 0: there is none, or the file cannot be read.
[[nodiscard]] unsigned dwarf_version(const std::filesystem::path& path);

}  // namespace waymark::image
