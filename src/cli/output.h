/// Where commands write: a file or standard output, buffered, with write errors noticed; and progress on a terminal.
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

#include "waymark/answers/table.h"
#include "waymark/core/numbers.h"
#include "waymark/core/result.h"
#include "waymark/core/utf8.h"
#include "waymark/listing/text.h"

namespace waymark::capture {
class PlacedFile;
}

namespace waymark::cli {

/// Exit statuses, the same for every command and unit (README.md, Exit status). A command that could give several gives
/// `usage` before `unreadable` before `nothing`.
enum ExitStatus : int {
    decoded = 0,     ///< what was asked for was done
    nothing = 1,     ///< there is nothing to show; a gate failed, or with --strict something was lost
    usage = 2,       ///< invalid command line
    unreadable = 3,  ///< an input cannot be read, or not to its end; or the output not be written
};

/// Text that a terminal shows and does not obey: control characters (C0 but for tab and line break, DEL, C1), marks of
/// direction and bytes that are no part of a UTF-8 character become U+FFFD. All text output and all of standard error
/// goes through it.
[[nodiscard]] std::string printable(std::string_view text);
/// Whether the text is printable ASCII, so that `printable` would replace nothing. May be false for printable UTF-8.
[[nodiscard]] bool is_printable(std::string_view text);

using answers::Colour;

/// A word in a colour. The escape sequences around it are the only ones that `Output` lets through.
class Coloured {
public:
    /// `text` becomes one line (`one_line`); without `colours` there is nothing around it.
    Coloured(std::string_view text, Colour colour, bool colours);
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// One argument of `Output::print`: text becomes one line, and all else stays what it is.
class OneLine {
public:
    explicit OneLine(std::string_view text) : text_(text) {
        if (is_printable(text) && text.find_first_of("\t\n") == text.npos) return;
        cleaned_ = one_line(text);
        text_ = cleaned_;
    }
    OneLine(const OneLine&) = delete;
    OneLine& operator=(const OneLine&) = delete;
    [[nodiscard]] std::string_view text() const { return text_; }

private:
    std::string cleaned_;
    std::string_view text_;
};

/// What `Output::print` gives to fmt for an argument of this type.
template <class T>
using Shown = std::conditional_t<std::is_same_v<std::remove_cvref_t<T>, Coloured>, std::string_view, T>;

/// Buffered text output. The first error sticks, and `close` reports it once. A regular file is there whole after that,
/// or not at all, and what was there before stays until then.
class Output final : public listing::TextSink {
public:
    /// `-` and the empty path are standard output. `usage`: the path is that of one of the inputs, or of a file in a
    /// capture folder, which would be lost; `unreadable`: the file cannot be created.
    static Result<Output> open(const std::string& path, const std::vector<std::string>& inputs = {});
    Output(Output&& other) noexcept;
    Output& operator=(Output&&) = delete;
    ~Output() override;

    /// Line breaks and tabs of `format` itself are written as they are. Arguments that are text are names, or contain
    /// them, so each becomes a part of one line (`one_line`).
    template <class... Args>
    void print(fmt::format_string<Shown<Args>...> format, Args&&... args) {
        constexpr bool colours = (std::is_same_v<std::remove_cvref_t<Args>, Coloured> || ...);
        print_kept<colours>(format, as_argument(args)...);
    }
    /// Whole lines, which the caller has composed (`one_line` is for names in them): what `printable` replaces is
    /// replaced.
    void write(std::string_view text) override;
    /// The bytes as they are: for files that are no text in a terminal.
    void write_exactly(std::string_view bytes) { append(bytes); }
    /// What was written so far is there for readers, which standard output may be piped to.
    void write_now();
    /// It goes to a terminal that shows colours, and the environment variable NO_COLOR does not ask for none.
    [[nodiscard]] bool colours() const;
    /// The width of the terminal it goes to; 0 if it goes to none.
    [[nodiscard]] std::size_t columns() const;
    /// Writes everything out. `unreadable`: a part could not be written, and standard error says why.
    ExitStatus close();

private:
    static constexpr std::size_t flush_bytes = 1 << 16;
    template <class T>
    [[nodiscard]] static decltype(auto) as_argument(const T& argument) {
        if constexpr (std::is_convertible_v<const T&, std::string_view>)
            return OneLine(argument);
        else
            return (argument);
    }
    template <class T>
    [[nodiscard]] static decltype(auto) as_view(const T& argument) {
        if constexpr (std::is_same_v<T, OneLine> || std::is_same_v<T, Coloured>)
            return std::string_view(argument.text());
        else
            return (argument);
    }
    template <bool colours, class... Args>
    void print_kept(fmt::string_view format, const Args&... args) {
        print_views<colours>(format, as_view(args)...);
    }
    template <bool colours, class... Args>
    void print_views(fmt::string_view format, const Args&... args) {
        // Unlike `format_to` this is compiled once, in fmt's own library.
        const std::string text = fmt::vformat(format, fmt::make_format_args(args...));
        if constexpr (colours)
            append(text);
        else
            write(text);
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

/// How many places a text takes on the screen: bytes that begin a character.
[[nodiscard]] std::size_t shown_width(std::string_view text);

/// `warning: …` and the like on standard error; a progress line on it is cleared first. What a run said it does not say
/// again, not even as another kind.
void say(std::string_view kind, std::string_view text);
/// Whether this run said the text, as any kind.
[[nodiscard]] bool was_said(std::string_view text);

/// A line on standard error that is rewritten in place: how much is done, how fast, how long yet. Only on a terminal.
class ProgressLine {
public:
    ProgressLine();
    ~ProgressLine();
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(std::uint64_t bytes, std::optional<std::uint64_t> of);
    /// Shows a text of one's own, as often as the other.
    void show(const std::string& text);
    [[nodiscard]] bool active() const { return active_; }

private:
    bool active_;
    std::chrono::steady_clock::time_point began_, shown_;
};

using listing::json_string;

}  // namespace waymark::cli
