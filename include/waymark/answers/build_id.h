/// Checks build IDs from files of other programs.
#pragma once

#include <cstddef>
#include <string_view>

namespace waymark::answers {

/// Whether a text is empty or a valid build ID: hexadecimal, at most 64 bytes. Files are named after it and searched by
/// it, so every reader checks it.
[[nodiscard]] inline bool is_build_id(std::string_view text) {
    constexpr std::size_t most_digits = 128;
    return text.size() <= most_digits && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

}  // namespace waymark::answers
