/// The destination and the formats of listings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/answers/table.h"

namespace waymark::listing {

enum class LineFormat {
    text,  ///< for reading
    tsv,   ///< tab-separated values, below a line with the names of the columns
    json,  ///< a JSON object on each line
};
/// The format with this name, such as `tsv`; text if there is none.
[[nodiscard]] LineFormat format_of(std::string_view name);

/// Receives text in whole lines, in UTF-8, and in order.
class TextSink {
public:
    virtual ~TextSink() = default;
    /// Borrowed for the call.
    virtual void write(std::string_view lines) = 0;
    /// The same for text with colours in it (`Coloured`).
    virtual void write_coloured(std::string_view lines) { write(lines); }
    /// Whether the reader sees colours.
    [[nodiscard]] virtual bool colours() const { return false; }
    /// The width of the reader's terminal; 0 if there is none.
    [[nodiscard]] virtual std::size_t columns() const { return 0; }
};

/// A word in a colour.
class Coloured {
public:
    /// `text` becomes one line (`one_line`). If `colours` is false, no escape sequences are added.
    Coloured(std::string_view text, answers::Colour colour, bool colours);
    [[nodiscard]] const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// The width of a text on the screen: its number of characters, counted by their first bytes.
[[nodiscard]] std::size_t shown_width(std::string_view text);

/// A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

/// Text in lines of at most `columns`; a longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// A sentence about a capture, preceded by the capture's name unless the sentence begins with the name.
[[nodiscard]] std::string about(const std::string& capture, const std::string& sentence);

/// Prints how much of the run a capture covers, in a line for each state.
void print_account(TextSink& out, const answers::Account& account, std::size_t indent = 9);

/// Prints a JSON object as JSON over several lines, or as tab-separated values: a line for each leaf, with its path.
void print_document(TextSink& out, std::string_view json, LineFormat format);

}  // namespace waymark::listing
