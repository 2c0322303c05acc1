/// Parts of a selection of program flow (flow_filter.h) as users give them, read. Messages name the options of the
/// command line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::pipeline {

/// Parses `FIRST..LAST` (--time) in seconds, as perf prints times; one of them may be missing. Result in ns. Errors:
/// `usage`.
[[nodiscard]] Result<std::pair<std::uint64_t, std::uint64_t>> read_time(const std::string& text);
/// Parses lists of CPUs (--cpu), such as `0-3,7`. Errors: `usage`.
[[nodiscard]] Result<std::vector<std::uint32_t>> read_cpus(const std::vector<std::string>& texts);

}  // namespace waymark::pipeline
