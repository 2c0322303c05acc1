/// The terminal that standard output goes to: how wide it is, and the pager that output goes through. Everything here
/// is for the thread that runs the command.
#pragma once

#include <cstddef>
#include <string>

namespace waymark::cli {

/// Standard output goes to a terminal, directly or through the pager.
[[nodiscard]] bool to_terminal();

/// Columns of the terminal that standard output goes to; 0 if it goes to none.
[[nodiscard]] std::size_t terminal_columns();
/// The width for text that is wrapped: the terminal's, but no more than 100; 100 without a terminal.
[[nodiscard]] std::size_t text_columns();

/// `--no-pager` was given.
void refuse_pager();

/// To be called before anything is written to standard output. The first call starts the pager if output goes to a
/// terminal: $PAGER, else `less`, which ends by itself if all fits the screen. None with --no-pager, with PAGER=cat or
/// an empty one, and on a terminal that cannot move its cursor (TERM=dumb).
void begin_terminal_output();

/// Keeps a line for standard error until the pager has ended, since it would be written into its screen; false: there
/// is no pager, so write it now.
[[nodiscard]] bool keep_for_later(const std::string& line);

/// Ends the output: waits until the user leaves the pager, then writes what was kept. To be called once, after all
/// output was written.
void end_terminal_output();

}  // namespace waymark::cli
