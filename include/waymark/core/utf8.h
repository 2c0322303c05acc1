/// Names come from files, and a file may contain any bytes. These functions convert them to valid UTF-8, and to text of
/// one line.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace waymark {

/// U+FFFD, which replaces a byte outside of any valid character.
inline constexpr std::string_view replacement_character = "\xef\xbf\xbd";

/// Size of the UTF-8 character at the beginning of `text`, which is not empty; 0 if it is invalid.
[[nodiscard]] inline std::size_t utf8_character(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    // Overlong forms, surrogates and code points beyond U+10FFFF are invalid.
    const unsigned char second = byte(1);
    if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
        (first == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

/// Calls `put` with `text` in pieces of valid UTF-8; each invalid byte becomes U+FFFD.
template <class Put>
void utf8_pieces(std::string_view text, Put&& put) {
    while (!text.empty()) {
        const std::size_t length = utf8_character(text);
        put(length == 0 ? replacement_character : text.substr(0, length));
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

/// Replaces invalid UTF-8 by U+FFFD.
[[nodiscard]] inline std::string utf8(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    utf8_pieces(text, [&](std::string_view c) { out += c; });
    return out;
}

/// Whether `character`, measured by `utf8_character`, changes the direction of the text around it (in Unicode:
/// Bidi_Control), or separates lines or paragraphs. A name with such marks looks like another name.
[[nodiscard]] inline bool is_direction_mark(std::string_view character) {
    // U+2028 to U+202E, and U+2066 to U+2069.
    const auto in = [&](std::string_view first, std::string_view last) {
        return character >= first && character <= last;
    };
    return character == "\xd8\x9c" || character == "\xe2\x80\x8e" || character == "\xe2\x80\x8f" ||
           in("\xe2\x80\xa8", "\xe2\x80\xae") || in("\xe2\x81\xa6", "\xe2\x81\xa9");
}

/// Whether `character`, measured by `utf8_character`, cannot be shown in a line of text: a control character (C0, DEL
/// or C1) or a mark of direction.
[[nodiscard]] inline bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character.front());
    if (first < 0x80) return first < 0x20 || first == 0x7f;
    return (first == 0xc2 && static_cast<unsigned char>(character.back()) < 0xa0) || is_direction_mark(character);
}

/// Replaces each mark of direction by U+FFFD; other text stays.
[[nodiscard]] inline std::string without_direction_marks(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const std::size_t length = std::max<std::size_t>(utf8_character(text), 1);
        out += is_direction_mark(text.substr(0, length)) ? replacement_character : text.substr(0, length);
        text.remove_prefix(length);
    }
    return out;
}

/// A name as part of a line: UTF-8, with `\t`, `\n` and `\r` for tab, line feed and carriage return, and U+FFFD for
/// every other control character and mark of direction. It ends neither a line nor a field, and contains nothing that a
/// terminal obeys. A backslash stays unchanged, so only JSON distinguishes a tab from a backslash followed by a t.
[[nodiscard]] inline std::string one_line(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    utf8_pieces(text, [&](std::string_view c) {
        out += c == "\t" ? "\\t" : c == "\n" ? "\\n" : c == "\r" ? "\\r" : is_control(c) ? replacement_character : c;
    });
    return out;
}

}  // namespace waymark
