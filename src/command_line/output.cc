#include "waymark/command_line/output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "waymark/capture/placed_file.h"
#include "waymark/command_line/terminal.h"
#include "waymark/core/numbers.h"
#include "waymark/core/utf8.h"
#include "wrap.h"

namespace waymark::command_line {

namespace {
/// Held while something is written to standard error, or where standard output is a terminal.
std::mutex& screen() {
    static std::mutex mutex;
    return mutex;
}
bool progress_shown = false, progress_over = false;

void clear_progress() {
    if (progress_shown) std::fputs("\r\033[K", stderr);
    progress_shown = false;
}

/// Output in a terminal ends a progress line there, so that the two do not mix.
void begin_output(const std::FILE* file) {
    if (file != stdout || !to_terminal()) return;
    const std::lock_guard lock(screen());
    if (std::exchange(progress_over, true)) return;
    clear_progress();
    std::fflush(stderr);
    begin_terminal_output();
}

void show_progress(std::string_view line) {
    const std::lock_guard lock(screen());
    if (progress_over) return;
    fmt::print(stderr, "\r\033[K{}", line);
    progress_shown = true;
}

/// Whether the text is printable ASCII, so that `printable` would change nothing; without a branch for each byte.
bool is_printable(std::string_view text) {
    // Of bytes alone: in a vector, sixteen at a time.
    std::uint8_t other = 0;
    for (const char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        const auto odd = static_cast<std::uint8_t>(static_cast<std::uint8_t>(byte - 0x20) >= 0x7f - 0x20 ? 0xff : 0);
        const auto blank = static_cast<std::uint8_t>((byte == '\n' ? 0xff : 0) | (byte == '\t' ? 0xff : 0));
        other = static_cast<std::uint8_t>(other | (odd & ~blank));
    }
    return other == 0;
}

}  // namespace

Result<Output> Output::open(const std::string& path, const std::vector<std::string>& inputs) {
    WM_ASSIGN_OR_RETURN(auto place, capture::PlacedFile::open(path, inputs));
    return Output(std::move(place), path.empty() || path == "-" ? "standard output" : path);
}

Output::Output(std::unique_ptr<capture::PlacedFile> place, std::string path)
    : place_(std::move(place)), file_(place_->file()), path_(std::move(path)) {}

Output::Output(Output&& other) noexcept
    : place_(std::move(other.place_)),
      file_(std::exchange(other.file_, nullptr)),
      path_(std::move(other.path_)),
      buffer_(std::move(other.buffer_)),
      error_(other.error_) {}

Output::~Output() {
    // Flush, so that output is not lost if an exception ends the program.
    if (file_ == stdout) flush();
}

void Output::write(std::string_view text) {
    if (is_printable(text))
        append(text);
    else
        append(printable(text));
}

void add_wrapped(std::string& out, std::string_view line, std::size_t columns) {
    // A line with tabs is for programs: it is not wrapped.
    if (line.size() <= columns || line.find('\t') != line.npos) {
        out += line;
        return;
    }
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string deeper(std::min(indent + 4, columns / 2), ' ');
    std::size_t width = 0, begin = 0, space = line.npos;
    for (std::size_t i = 0; i < line.size();) {
        if (line[i] == '\033') {  // a colour has no width
            i = std::min(line.find('m', i), line.size() - 1) + 1;
            continue;
        }
        if (width == columns) {
            const std::size_t end = space == line.npos || line[i] == ' ' ? i : space;
            const std::size_t last = line.find_last_not_of(' ', end - 1);
            out += line.substr(begin, last + 1 - begin);
            begin = std::min(line.find_first_not_of(' ', end), line.size());
            if (begin == line.size()) return;
            out += '\n' + deeper;
            i = std::max(i, begin);
            width = deeper.size() + listing::shown_width(line.substr(begin, i - begin));
            space = line.npos;
            continue;
        }
        if (line[i] == ' ' && i > begin + indent) space = i;
        ++width;
        i += std::max<std::size_t>(utf8_character(line.substr(i)), 1);
    }
    out += line.substr(begin);
}

/// On a terminal only complete lines are written; the rest of the last one stays in the buffer.
void Output::flush() {
    const std::size_t columns = file_ == stdout ? wrap_columns() : 0;
    std::string_view text(buffer_.data(), buffer_.size());
    std::string wrapped, rest;
    if (columns != 0) {
        for (std::size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
            add_wrapped(wrapped, text.substr(0, end), columns);
            wrapped += '\n';
            text.remove_prefix(end + 1);
        }
        rest = text;
        text = wrapped;
    }
    if (!text.empty()) begin_output(file_);
    if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) error_ = errno;
    buffer_.clear();
    buffer_.append(rest.data(), rest.data() + rest.size());
}

void Output::write_now() {
    flush();
    if (error_ == 0 && std::fflush(file_) != 0) error_ = errno;
}

void Output::write_through(std::string_view text) {
    if (file_ == stdout && wrap_columns() != 0) {
        buffer_.append(text.data(), text.data() + text.size());
        flush();
        return;
    }
    flush();
    begin_output(file_);
    if (error_ == 0 && std::fwrite(text.data(), 1, text.size(), file_) != text.size()) error_ = errno;
}

bool Output::colours() const {
    const auto set = [](const char* name) {
        const char* const value = std::getenv(name);
        return std::string_view(value == nullptr ? "" : value);
    };
    return file_ == stdout && to_terminal() && set("NO_COLOR").empty() && !set("TERM").empty() && set("TERM") != "dumb";
}

ExitStatus Output::close() {
    // The last line may lack a line break.
    if (file_ == stdout && wrap_columns() != 0 && buffer_.size() != 0 && buffer_[buffer_.size() - 1] != '\n')
        buffer_.push_back('\n');
    flush();
    error_ = place_->commit(error_);
    file_ = nullptr;
    if (error_ == 0) return decoded;
    say("error", fmt::format("cannot write {}: {}", path_, std::strerror(error_)));
    return unreadable;
}

std::string printable(std::string_view text) {
    if (is_printable(text)) return std::string(text);
    std::string out;
    out.reserve(text.size() + 16);
    utf8_pieces(
        text, [&](std::string_view c) { out += is_control(c) && c != "\n" && c != "\t" ? replacement_character : c; });
    return out;
}

std::size_t Output::columns() const { return file_ == stdout ? terminal_columns() : 0; }

namespace {

/// Messages printed so far, so that each is printed only once. Guarded by screen().
std::set<std::string>& said_texts() {
    static std::set<std::string> lines;
    return lines;
}

/// The text in the form in which it is printed after its kind.
std::string said_as(std::string_view text) {
    std::string line;
    // Lists in messages are indented; any other line break is part of a name.
    constexpr std::string_view next_item = "\n  ";
    while (!text.empty()) {
        const bool item = text.starts_with(next_item);
        const std::size_t end = std::min(text.find(next_item, item ? next_item.size() : 0), text.size());
        line += (item ? next_item : "");
        line += one_line(text.substr(item ? next_item.size() : 0, end - (item ? next_item.size() : 0)));
        text.remove_prefix(end);
    }
    return line;
}

}  // namespace

bool was_said(std::string_view text) {
    const std::lock_guard lock(screen());
    return said_texts().contains(said_as(text));
}

void say(std::string_view kind, std::string_view text) {
    const std::lock_guard lock(screen());
    std::string line = said_as(text);
    if (said_texts().contains(line)) return;
    clear_progress();
    const std::string whole = fmt::format("waymark: {}: {}\n", kind, line);
    // If standard error cannot be written either, nothing can be reported.
    if (!keep_for_later(whole)) std::fwrite(whole.data(), 1, whole.size(), stderr);
    // A run prints a few dozen different messages.
    constexpr std::size_t most_remembered = 1000;
    if (said_texts().size() < most_remembered) said_texts().insert(std::move(line));
}

ProgressLine::ProgressLine()
    : active_(isatty(STDERR_FILENO) == 1), began_(std::chrono::steady_clock::now()), shown_(began_) {}
ProgressLine::~ProgressLine() {
    const std::lock_guard lock(screen());
    clear_progress();
}

void ProgressLine::show(const std::string& text) {
    const auto now = std::chrono::steady_clock::now();
    if (!active_ || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    show_progress(text);
}

void ProgressLine::show(std::uint64_t bytes, std::optional<std::uint64_t> of) {
    using std::chrono::duration;
    const auto now = std::chrono::steady_clock::now();
    if (!active_ || now - shown_ < std::chrono::milliseconds(200)) return;
    shown_ = now;
    const double seconds = duration<double>(now - began_).count();
    const double rate = static_cast<double>(bytes) / seconds;
    std::string line = size_text(bytes);
    if (of && *of != 0) line = fmt::format("{:>6}  {} of {}", share_text(bytes, *of), line, size_text(*of));
    line += fmt::format("  {} MB/s", decimal_text(rate / 1e6));
    if (of && *of > bytes)
        line +=
            fmt::format("  {} s left", grouped(static_cast<std::uint64_t>(static_cast<double>(*of - bytes) / rate)));
    show_progress(line);
}

}  // namespace waymark::command_line
