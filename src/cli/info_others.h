/// `waymark info` of captures that are no snapshot folder.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "options.h"
#include "output.h"

namespace waymark::cli {

/// Bytes that nothing describes, with what they prove of themselves: a file, also compressed, or standard input.
[[nodiscard]] ExitStatus run_bare_info(const InputOptions& input, const std::string& format);
/// A perf.data file of the Statistical Profiling Extension.
[[nodiscard]] ExitStatus run_profile_info(const InputOptions& input, const std::string& format);

/// A file of branch lists.
[[nodiscard]] ExitStatus run_branch_list_info(const InputOptions& input, const std::string& format);

/// `json`, or `tsv`: a line for each leaf, with its path.
void print_info_for_programs(Output& out, const nlohmann::ordered_json& info, const std::string& format);

}  // namespace waymark::cli
