/// A line at the bottom of the terminal for progress, while another program writes to the same terminal.
#pragma once

#include <string>
#include <string_view>

namespace waymark::command_line {

/// The rest of the terminal scrolls above the line (DECSTBM), so the program's output is never mixed with it. Works
/// only if standard error is a terminal that can move its cursor. Other processes may write at any time.
class StatusLine {
public:
    StatusLine();
    /// Releases the line.
    ~StatusLine();
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;

    [[nodiscard]] bool active() const { return active_; }
    /// Shows a text, cut to the width of the terminal.
    void show(std::string_view text);

private:
    void end();

    bool active_;
    unsigned rows_ = 0;  ///< height of the terminal when the line was reserved; 0: it is not reserved
};

}  // namespace waymark::command_line
