/// Wraps lines for reading that are wider than the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace waymark::command_line {

/// Turns wrapping of standard output on. Do not call it for formats that programs read.
void wrap_lines();
/// The width at which lines are wrapped; 0 if lines are not wrapped.
[[nodiscard]] std::size_t wrap_columns();
/// Adds a line, wrapped at words to `columns`; continuation lines are indented further.
void add_wrapped(std::string& out, std::string_view line, std::size_t columns);

}  // namespace waymark::command_line
