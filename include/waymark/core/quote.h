/// Escapes text from files, which may contain any bytes. There is one function for each place where such text appears;
/// in its result the text cannot act as a command, as markup or as a further field. For text of one line, in terminals
/// and tables: `one_line` (utf8.h).
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "waymark/core/utf8.h"

namespace waymark {

/// A word of a command that can be copied into a shell. A control character, which terminals do not show, is written as
/// in `one_line`, so the word then names something else.
[[nodiscard]] inline std::string shell_word(std::string_view text) {
    const std::string line = one_line(text);
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_^";
    const auto safe = [&](char c) { return plain.find(c) != plain.npos || static_cast<unsigned char>(c) >= 0x80; };
    bool all = !line.empty() && line[0] != '=';
    for (const char c : line) all = all && safe(c);
    if (all) return line;
    std::string out = "'";
    for (const char c : line) c == '\'' ? out += "'\\''" : out += c;
    return out + "'";
}

/// The same for a file name, so that commands do not mistake it for an option.
[[nodiscard]] inline std::string shell_file(std::string_view path) {
    return shell_word(path.starts_with('-') ? "./" + std::string(path) : std::string(path));
}

/// A JSON string with its quotes. Invalid UTF-8 becomes U+FFFD; marks of direction are escaped, so that the string is
/// unchanged and displayed in stored order. `put` receives its pieces.
template <class Put>
void json_pieces(std::string_view text, Put&& put) {
    constexpr std::string_view whole = "\"";
    put(whole);
    utf8_pieces(text, [&](std::string_view c) {
        const auto first = static_cast<unsigned char>(c[0]);
        constexpr std::string_view digits = "0123456789abcdef";
        if (first >= 0x80 && is_direction_mark(c)) {
            unsigned value = first & (c.size() == 2 ? 0x1fU : 0x0fU);
            for (const char next : c.substr(1)) value = value << 6 | (static_cast<unsigned char>(next) & 0x3fU);
            std::string code = "\\u";
            for (unsigned shift = 16; shift != 0; shift -= 4) code += digits[value >> (shift - 4) & 0xfU];
            return put(std::string_view(code));
        }
        if (first >= 0x20 && c != "\"" && c != "\\") return put(c);
        switch (c[0]) {
            case '"': return put(std::string_view("\\\""));
            case '\\': return put(std::string_view("\\\\"));
            case '\b': return put(std::string_view("\\b"));
            case '\f': return put(std::string_view("\\f"));
            case '\n': return put(std::string_view("\\n"));
            case '\r': return put(std::string_view("\\r"));
            case '\t': return put(std::string_view("\\t"));
            default: {
                const std::string code{'\\', 'u', '0', '0', digits[first >> 4], digits[first & 0xf]};
                return put(std::string_view(code));
            }
        }
    });
    put(whole);
}
[[nodiscard]] inline std::string json_text(std::string_view text) {
    std::string out;
    out.reserve(text.size() + 2);
    json_pieces(text, [&](std::string_view piece) { out += piece; });
    return out;
}

/// Text of an element or attribute of XML or HTML. Control characters become spaces, and characters that XML lacks
/// become U+FFFD. `put` receives its pieces.
template <class Put>
void xml_pieces(std::string_view text, Put&& put) {
    utf8_pieces(text, [&](std::string_view c) {
        const auto first = static_cast<unsigned char>(c[0]);
        if (c == "&")
            put(std::string_view("&amp;"));
        else if (c == "<")
            put(std::string_view("&lt;"));
        else if (c == ">")
            put(std::string_view("&gt;"));
        else if (c == "\"")
            put(std::string_view("&quot;"));
        else if (c == "'")
            put(std::string_view("&#39;"));
        else if (first < 0x20)
            put(std::string_view(" "));
        else
            put(is_control(c) || c == "\xef\xbf\xbe" || c == "\xef\xbf\xbf" ? replacement_character : c);
    });
}
[[nodiscard]] inline std::string xml_text(std::string_view text) {
    std::string out;
    xml_pieces(text, [&](std::string_view piece) { out += piece; });
    return out;
}

/// Whether a spreadsheet would execute a text as a formula. Some spreadsheets ignore white space before it.
[[nodiscard]] inline bool is_formula(std::string_view text) {
    if (text.empty()) return false;
    if (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') return true;
    const auto first = text.find_first_not_of(" \t\r\n");
    if (first == text.npos) return false;
    // The same signs in the width of East Asian characters.
    static constexpr std::array<std::string_view, 8> signs{"=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20"};
    return std::any_of(signs.begin(), signs.end(),
                       [&](std::string_view sign) { return text.substr(first).starts_with(sign); });
}

/// Whether a text is a decimal number: `-12.5`, `+3`. Spreadsheets do not execute it.
[[nodiscard]] inline bool is_decimal(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    bool digits = false, point = false;
    for (const char c : text) {
        if (c == '.' && !point)
            point = true;
        else if (c >= '0' && c <= '9')
            digits = true;
        else
            return false;
    }
    return digits;
}

/// A field of CSV, in quotes if necessary. Control characters that readers reject become U+FFFD.
[[nodiscard]] inline std::string csv_field(std::string_view value) {
    std::string text;
    utf8_pieces(value, [&](std::string_view c) {
        text += is_control(c) && c != "\t" && c != "\n" && c != "\r" ? replacement_character : c;
    });
    // The mark that makes spreadsheets treat a field as text; it is also added to text that begins with the mark, so
    // that it can be removed again.
    const bool marked = (is_formula(text) && !is_decimal(text)) || text.starts_with('\'');
    if (marked) text.insert(text.begin(), '\'');
    if (!marked && text.find_first_of(",\"\r\n") == text.npos) return text;
    std::string out = "\"";
    for (const char c : text) c == '"' ? out += "\"\"" : out += c;
    return out + '"';
}

/// Text of an XML comment, in which two hyphens are not allowed.
[[nodiscard]] inline std::string xml_comment(std::string_view text) {
    std::string out;
    xml_pieces(text, [&](std::string_view piece) { out += piece == "-" ? std::string_view(" ") : piece; });
    return out;
}

/// The quoted name of a table or column in SQL.
[[nodiscard]] inline std::string sql_name(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) c == '"' ? out += "\"\"" : out += c;
    return out + '"';
}

/// A frame of a folded stack, in which semicolons separate frames.
[[nodiscard]] inline std::string folded_frame(std::string_view name) {
    std::string out = one_line(name);
    for (char& c : out)
        if (c == ';') c = ':';
    return out;
}

/// A value of a QEMU option: commas end it, so they are doubled.
[[nodiscard]] inline std::string qemu_value(std::string_view text) {
    std::string out;
    for (const char c : text) c == ',' ? out += ",," : out += c;
    return out;
}

/// The name of Slurm's output file: `%` introduces a placeholder.
[[nodiscard]] inline std::string slurm_output(std::string_view path) {
    std::string out;
    for (const char c : path) c == '%' ? out += "%%" : out += c;
    return out;
}

}  // namespace waymark
