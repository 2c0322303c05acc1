/// Where listings go, and in which form.
#pragma once

#include <string>
#include <string_view>

namespace waymark::listing {

enum class LineFormat {
    text,  ///< for reading
    tsv,   ///< tab-separated values, below a line with the names of the columns
    json,  ///< a JSON object per line
};
/// That of this name, such as `tsv`; text if there is none.
[[nodiscard]] LineFormat format_of(std::string_view name);

/// Takes text in whole lines, in UTF-8, and in order.
class TextSink {
public:
    virtual ~TextSink() = default;
    /// Borrowed for the call.
    virtual void write(std::string_view lines) = 0;
};

/// Text as a JSON string, quotes included. What is not UTF-8 in it becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace waymark::listing
