/// Output of commands to a file or standard output, buffered and checked for write errors; and progress on a terminal.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "waymark/core/numbers.h"
#include "waymark/core/result.h"
#include "waymark/core/utf8.h"
#include "waymark/listing/text.h"

namespace waymark::capture {
class PlacedFile;
}

namespace waymark::command_line {

/// Exit statuses, the same for every command and unit (README.md, Exit status). If several apply, `usage` takes
/// precedence over `unreadable`, and `unreadable` over `nothing`.
enum ExitStatus : int {
    decoded = 0,     ///< the command did its task
    nothing = 1,     ///< there is nothing to show; a gate failed, or trace was lost and --strict was given
    usage = 2,       ///< invalid command line
    unreadable = 3,  ///< an input cannot be read completely, or the output cannot be written
};

/// Replaces what a terminal would obey instead of showing: control characters (C0 except tab and line break, DEL, C1),
/// marks of direction and bytes outside of valid UTF-8 become U+FFFD. All text output and all of standard error passes
/// through it.
[[nodiscard]] std::string printable(std::string_view text);

/// Buffered text output. The first error sticks, and `close` reports it once. After `close` a regular file is complete,
/// or was not written at all; until then an older file stays in place.
class Output final : public listing::TextSink {
public:
    /// `-` and the empty path mean standard output. `usage`: the path is one of the inputs, or a file in a capture
    /// folder, which would be overwritten; `unreadable`: the file cannot be created.
    static Result<Output> open(const std::string& path, const std::vector<std::string>& inputs = {});
    Output(Output&& other) noexcept;
    Output& operator=(Output&&) = delete;
    ~Output() override;

    /// Line breaks and tabs of `format` itself are kept. Text arguments are names or contain names, so each becomes a
    /// part of one line (`one_line`).
    template <class... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        print_views(format, as_view(args)...);
    }
    /// Writes whole lines that the caller has composed (names in them must have passed `one_line`). They pass through
    /// `printable`.
    void write(std::string_view text) override;
    /// Lets the escape sequences of colours through.
    void write_coloured(std::string_view text) override { append(text); }
    /// Writes the bytes unchanged: for files that are not text.
    void write_exactly(std::string_view bytes) { append(bytes); }
    /// Flushes the output, so that a reader of a pipe sees it now.
    void write_now();
    /// Whether the output goes to a terminal that shows colours, and the environment variable NO_COLOR is not set.
    [[nodiscard]] bool colours() const override;
    /// The width of the terminal that the output goes to; 0 if it is not a terminal.
    [[nodiscard]] std::size_t columns() const override;
    /// Flushes and closes the output. Returns `unreadable` if a part could not be written; standard error then gives
    /// the reason.
    ExitStatus close();

private:
    static constexpr std::size_t flush_bytes = 1 << 16;
    template <class T>
    [[nodiscard]] static decltype(auto) as_view(const T& argument) {
        if constexpr (std::is_convertible_v<const T&, std::string_view>)
            return one_line(argument);
        else
            return (argument);
    }
    template <class... Args>
    void print_views(fmt::string_view format, const Args&... args) {
        // `vformat` is compiled only once, in fmt's own library, unlike `format_to`.
        write(fmt::vformat(format, fmt::make_format_args(args...)));
    }
    Output(std::unique_ptr<capture::PlacedFile> place, std::string path);
    void append(std::string_view text) {
        if (text.size() >= flush_bytes) return write_through(text);
        buffer_.append(text.data(), text.data() + text.size());
        if (buffer_.size() >= flush_bytes) flush();
    }
    void flush();
    void write_through(std::string_view text);

    std::unique_ptr<capture::PlacedFile> place_;
    std::FILE* file_;
    std::string path_;
    fmt::memory_buffer buffer_;
    int error_ = 0;
};

/// Prints `warning: …` and the like on standard error, after clearing a progress line. A text that was printed once is
/// not printed again, not even as another kind.
void say(std::string_view kind, std::string_view text);
/// Whether this run has printed the text, as any kind.
[[nodiscard]] bool was_said(std::string_view text);

/// A line on standard error that is rewritten in place: progress, speed, and remaining time. Only on a terminal.
class ProgressLine {
public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(std::uint64_t bytes, std::optional<std::uint64_t> of);
    /// Shows another text, at the same rate.
    void show(const std::string& text);
    [[nodiscard]] bool active() const { return active_; }

private:
    bool active_;
    std::chrono::steady_clock::time_point began_, shown_;
};

}  // namespace waymark::command_line
