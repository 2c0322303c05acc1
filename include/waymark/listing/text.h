/// The destination and the formats of listings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/account.h"

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
};

/// A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

/// Text in lines of at most `columns`; a longer word has a line of its own.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

/// Prints how much of the run a capture covers, in a line for each state.
void print_account(TextSink& out, const answers::Account& account, std::size_t indent = 9);

/// Prints a JSON object as JSON over several lines, or as tab-separated values: a line for each leaf, with its path.
void print_document(TextSink& out, std::string_view json, LineFormat format);

}  // namespace waymark::listing
