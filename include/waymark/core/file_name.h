/// Makes file names from arbitrary names: a function, a program, a build ID.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "waymark/core/utf8.h"

namespace waymark {

/// Makes a file name from a name with arbitrary bytes: at most 200 bytes of UTF-8, with `_` in place of slashes and
/// control characters, and without a leading dot or dash. A longer name is cut, and ends in a hash of the whole name.
[[nodiscard]] inline std::string file_name(std::string_view name) {
    constexpr std::size_t most = 200, hash_bytes = 17;
    std::string out;
    std::size_t kept = 0;  // the length that leaves room for a hash
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
    utf8_pieces(name, [&](std::string_view c) {
        const bool first = out.empty() && (c == "." || c == "-");
        out += first || c == "/" || is_control(c) || c == replacement_character ? std::string_view("_") : c;
        if (out.size() + hash_bytes <= most) kept = out.size();
    });
    if (out.size() > most) {
        out.resize(kept);
        out += '-';
        for (unsigned shift = 64; shift != 0; shift -= 4) out += "0123456789abcdef"[hash >> (shift - 4) & 15U];
    }
    return out.empty() ? "_" : out;
}

}  // namespace waymark
