/// What is said of hardware loops, in every command's words.
#pragma once

#include <string_view>

namespace waymark::cli {

inline constexpr std::string_view hardware_loops =
    "hardware loops: runs, of which an interrupt makes two, and times their body ran";
inline constexpr std::string_view no_hardware_loop = "no loop is in the trace";

}  // namespace waymark::cli
