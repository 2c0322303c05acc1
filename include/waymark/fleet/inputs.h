/// Captures by what a user names: files, folders, lists and patterns.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::fleet {

/// The captures that inputs name, as absolute paths, sorted, each once.
struct FoundCaptures {
    std::vector<std::string> paths;
    std::uint64_t repeated{};         ///< inputs that named one of them again
    std::vector<std::string> barren;  ///< folders without any capture
};

/// `NAME`: a capture (a file, or a folder that is one); or a folder that is searched for perf.data files and capture
/// folders at any depth. `@LIST`: a file with an input in each line; empty lines and those that begin with # are
/// skipped. What contains * ? or [ and does not exist is a pattern, as of a shell. Relative names begin at the working
/// directory. Errors: `not_found`: no file has this name, or none fits the pattern; `unreadable`: a list or folder;
/// `usage`: a name that is not UTF-8, which no plan can contain.
[[nodiscard]] Result<FoundCaptures> find_captures(const std::vector<std::string>& inputs);

}  // namespace waymark::fleet
