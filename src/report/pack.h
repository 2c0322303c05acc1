/// Compresses text for embedding in a page.
#pragma once

#include <string>
#include <string_view>

namespace waymark::report {

/// Deflated without a header (RFC 1951) and written in base64 (RFC 4648); `atob` and
/// `DecompressionStream("deflate-raw")` reverse it. The text contains nothing that could end an element of HTML.
[[nodiscard]] std::string pack(std::string_view text);

}  // namespace waymark::report
