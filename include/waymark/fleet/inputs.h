/// Finds captures by the user's inputs: files, folders, lists and patterns.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::fleet {

/// The captures that inputs name, as absolute paths, sorted, without duplicates.
struct FoundCaptures {
    std::vector<std::string> paths;
    std::uint64_t repeated{};         ///< number of inputs that named one of them again
    std::vector<std::string> barren;  ///< folders without any capture
};

/// Inputs: `NAME`: a capture (a file or folder), or a folder that is searched recursively for perf.data files and
/// capture folders. `@LIST`: a file with an input in each line; empty lines and lines that begin with # are skipped. A
/// name with * ? or [ that does not exist is a shell pattern. Relative names begin at the working directory. Errors:
/// `not_found`: there is no such file, or nothing matches the pattern; `unreadable`: a list or folder; `usage`: a name
/// that is not UTF-8, which plans cannot contain.
[[nodiscard]] Result<FoundCaptures> find_captures(const std::vector<std::string>& inputs);

}  // namespace waymark::fleet
