/// Commands of a shell in tests.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace waymark {

/// A path as one word: TMPDIR may have spaces.
inline std::string shell_word(const std::filesystem::path& path) {
    std::string out = "'";
    for (const char c : path.string()) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

/// Output of other programs is compared with their English output.
inline const bool in_english = ::setenv("LC_ALL", "C.UTF-8", 1) == 0;

}  // namespace waymark
