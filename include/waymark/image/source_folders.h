/// Finds the folders with the sources of a program.
#pragma once

#include <filesystem>
#include <vector>

namespace waymark::image {

/// For each compilation unit, the folder in which the compiler ran and the folder of the unit's own file, or the
/// innermost folder that contains both. Excludes the root and folders of the system's configuration and devices (/etc,
/// /proc, …). Empty if there is no debug information. `debug_folders`: as for `DebugInfo::open`.
[[nodiscard]] std::vector<std::filesystem::path> source_folders(
    const std::filesystem::path& file, const std::vector<std::filesystem::path>& debug_folders = {});

}  // namespace waymark::image
