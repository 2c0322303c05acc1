/// Lines for reading that are wider than the terminal go on in the next line at a word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace waymark::cli {

/// From now on lines on standard output do. Not to be called for formats that programs read.
void wrap_lines();
/// The width at which lines go on in the next one; 0: they do not.
[[nodiscard]] std::size_t wrap_columns();
/// Adds a line, of any width, as lines of `columns`, broken at words; all but the first are indented further.
void add_wrapped(std::string& out, std::string_view line, std::size_t columns);

}  // namespace waymark::cli
