/// The terminal that standard output goes to: its width, and the pager. Only the thread that runs the command may use
/// these functions.
#pragma once

#include <cstddef>
#include <string>

namespace waymark::command_line {

/// Whether standard output goes to a terminal, directly or through the pager.
[[nodiscard]] bool to_terminal();

/// Width of the terminal that standard output goes to; 0 if it is not a terminal.
[[nodiscard]] std::size_t terminal_columns();
/// The width for wrapped text: the terminal's, but at most 100; 100 without a terminal.
[[nodiscard]] std::size_t text_columns();

/// `--no-pager` was given.
void refuse_pager();

/// Call this before anything is written to standard output. The first call starts the pager if output goes to a
/// terminal: $PAGER, or `less`, which ends by itself if everything fits the screen. There is no pager with --no-pager,
/// if PAGER is `cat` or empty, and on a terminal that cannot move its cursor (TERM=dumb).
void begin_terminal_output();

/// Keeps a line for standard error until the pager has ended, so that it does not disturb the pager's screen. Returns
/// false if there is no pager: print it now.
[[nodiscard]] bool keep_for_later(const std::string& line);

/// Ends the output: waits until the user leaves the pager, then prints the kept lines. Call this once, after all output
/// was written.
void end_terminal_output();

}  // namespace waymark::command_line
