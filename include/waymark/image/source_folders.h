/// Which folders hold the sources of a program.
#pragma once

#include <filesystem>
#include <vector>

namespace waymark::image {

/// Of each unit of compilation, the folder in which the compiler ran and that of the unit's own file, or the innermost
/// that holds both. Neither the root nor folders of the system's configuration and devices (/etc, /proc, …). Empty:
/// there is no debug information. `debug_folders`: as `DebugInfo::open` takes them.
[[nodiscard]] std::vector<std::filesystem::path> source_folders(
    const std::filesystem::path& file, const std::vector<std::filesystem::path>& debug_folders = {});

}  // namespace waymark::image
