#include "waymark/command_line/status_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "waymark/command_line/output.h"

namespace waymark::command_line {

namespace {

constexpr unsigned fewest_rows = 4;

winsize size_of_terminal() {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) size = {};
    return size;
}

/// Writes the text in one call, so that other output cannot split it.
void write_whole(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

bool can_move_cursor() {
    const char* const term = std::getenv("TERM");
    const std::string_view name = term == nullptr ? "" : term;
    return !name.empty() && name != "dumb";
}

/// The first `most` characters of a text.
std::string cut_to(std::string text, std::size_t most) {
    while (listing::shown_width(text) > most) {
        while ((static_cast<unsigned char>(text.back()) & 0xc0U) == 0x80U) text.pop_back();
        text.pop_back();
    }
    return text;
}

}  // namespace

StatusLine::StatusLine()
    : active_(::isatty(STDERR_FILENO) == 1 && can_move_cursor() && size_of_terminal().ws_row >= fewest_rows) {}

StatusLine::~StatusLine() { end(); }

void StatusLine::show(std::string_view text) {
    if (!active_) return;
    const winsize size = size_of_terminal();
    if (size.ws_row < fewest_rows || size.ws_col == 0) return;
    if (rows_ != 0 && rows_ != size.ws_row) end();
    if (rows_ == 0) {
        rows_ = size.ws_row;
        // ESC D makes room if the cursor is in the last row. Setting the margins moves the cursor, so its position is
        // saved and restored.
        write_whole(fmt::format("\033D\0337\033[1;{}r\0338\033[1A", rows_ - 1));
    }
    write_whole(fmt::format("\0337\033[{};1H\033[K{}\0338", rows_, cut_to(one_line(text), size.ws_col - 1U)));
}

void StatusLine::end() {
    if (rows_ != 0) write_whole(fmt::format("\0337\033[{};1H\033[K\033[r\0338", rows_));
    rows_ = 0;
}

}  // namespace waymark::command_line
