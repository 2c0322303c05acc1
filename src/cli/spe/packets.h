/// What `waymark packets` does with a perf.data file of the Statistical Profiling Extension.
#pragma once

#include <string>
#include <vector>

#include "../options.h"
#include "../output.h"

namespace waymark::cli {

/// `types`: names of packets; empty: all. Offsets are those in the file.
[[nodiscard]] Status run_spe_packets(const InputOptions& input, const std::string& format,
                                     const std::vector<std::string>& types);

}  // namespace waymark::cli
