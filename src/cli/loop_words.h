/// Sentences about loops that several commands print.
#pragma once

#include <string_view>

namespace waymark::cli {

inline constexpr std::string_view hardware_loops =
    "hardware loops: entries (an interrupt splits one in two), and iterations of the body";
inline constexpr std::string_view loops_by_flow = "loops: entries, and iterations (executions of the head)";
inline constexpr std::string_view no_hardware_loop = "the trace contains no loop";

}  // namespace waymark::cli
