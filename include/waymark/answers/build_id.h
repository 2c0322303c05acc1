/// Build IDs in files that others wrote.
#pragma once

#include <cstddef>
#include <string_view>

namespace waymark::answers {

/// Whether a text is a build ID, or empty for none: hexadecimal, of at most 64 bytes. Files are named after it and
/// looked for by it, so every reader checks it.
[[nodiscard]] inline bool is_build_id(std::string_view text) {
    constexpr std::size_t most_digits = 128;
    return text.size() <= most_digits && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

}  // namespace waymark::answers
