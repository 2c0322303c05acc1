/// `waymark info` for captures other than snapshot folders.
#pragma once

#include <string>

#include "options.h"
#include "waymark/command_line/output.h"

namespace waymark::cli {

/// For bytes without a description: what the bytes themselves prove. The input is a file, possibly compressed, or
/// standard input.
[[nodiscard]] ExitStatus run_bare_info(const InputOptions& input, const std::string& format);
/// For a perf.data file of the Statistical Profiling Extension.
[[nodiscard]] ExitStatus run_profile_info(const InputOptions& input, const std::string& format);

/// For a file of branch lists.
[[nodiscard]] ExitStatus run_branch_list_info(const InputOptions& input, const std::string& format);

}  // namespace waymark::cli
