/// A line at the bottom of the terminal for progress, while another program writes to the same terminal.
#pragma once

#include <string>
#include <string_view>

namespace waymark::cli {

/// The rest of the terminal scrolls above the line (DECSTBM), so the program's output is never in one line with it.
/// Only if standard error is a terminal that can move its cursor; what is written by others may come at any time.
class StatusLine {
public:
    StatusLine();
    /// Gives the line back to the terminal.
    ~StatusLine();
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;

    [[nodiscard]] bool active() const { return active_; }
    /// Shows a text, cut to the width of the terminal.
    void show(std::string_view text);

private:
    void end();

    bool active_;
    unsigned rows_ = 0;  ///< of the terminal when the line was taken; 0: it is not taken
};

}  // namespace waymark::cli
