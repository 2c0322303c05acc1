/// Names come from files, and a file may hold any bytes. These functions make UTF-8 of them, and text of one line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace waymark {

/// Stands for a byte that is no part of a character: U+FFFD.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Bytes of the UTF-8 character that `text`, which is not empty, begins with; 0: it begins with none.
[[nodiscard]] inline std::size_t utf8_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    // Longer than need be, surrogates, beyond U+10FFFF.
    const unsigned char second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

/// Calls `put` with `text` in pieces that are UTF-8; each byte that is no part of a character becomes U+FFFD.
template <class Put>
void utf8_pieces(std::string_view text, Put&& put) {
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        put(length == 0 ? replacement_character : text.substr(0, length));
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

/// What is not UTF-8 becomes U+FFFD.
[[nodiscard]] inline std::string utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    utf8_pieces(text, [&](std::string_view c) { out += c; });
    return out;
}

/// Whether `character`, which `utf8_character` has measured, is a control character: C0, DEL or C1.
[[nodiscard]] inline bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character.front());
    return first < 0x20 || first == 0x7f ||
           (first == 0xc2 && character.size() == 2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

/// A name as part of a line: UTF-8, with `\t`, `\n` and `\r` written for tab, line feed and carriage return, and U+FFFD
/// for every other control character. It ends neither a line nor a field, and a terminal obeys nothing in it. A
/// backslash stays as it is, so only JSON distinguishes a tab from a backslash followed by a t.
[[nodiscard]] inline std::string one_line(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    utf8_pieces(text, [&](std::string_view c) {
        out += c == "\t" ? "\\t" : c == "\n" ? "\\n" : c == "\r" ? "\\r" : is_control(c) ? replacement_character : c;
    });
    return out;
}

}  // namespace waymark
