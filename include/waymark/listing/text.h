/// The destination and the formats of listings.
#pragma once

#include <string>
#include <string_view>

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

}  // namespace waymark::listing
