/// Small pieces of text handling shared by this layer's readers.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::capture::text {

constexpr std::string_view blanks = " \t\r\n\v\f";

// Not std::tolower: the format is ASCII whatever the locale.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

inline std::string lower(std::string_view text) {
    std::string result(text);
    std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
    return result;
}

inline bool equal_ignoring_case(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

inline std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Without one pair of surrounding quotes, if there is one.
inline std::string_view unquote(std::string_view text) {
    if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
        return trim(text.substr(1, text.size() - 2));
    return text;
}

/// The trimmed parts between separators outside parentheses; empty ones too, so a caller can report them.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '(') ++depth;
        if (text[i] == ')') --depth;
        if (text[i] != separator || depth > 0) continue;
        parts.push_back(trim(text.substr(begin, i - begin)));
        begin = i + 1;
    }
    parts.push_back(trim(text.substr(begin)));
    return parts;
}

/// A number by C's rules: 0x hexadecimal, 0 octal, else decimal. Nothing when any other character is in it or it does
/// not fit 64 bits.
inline std::optional<std::uint64_t> number(std::string_view text) {
    int base = 10;
    if (text.size() > 2 && text[0] == '0' && lower(text[1]) == 'x') {
        base = 16;
        text.remove_prefix(2);
    } else if (text.size() > 1 && text[0] == '0') {
        base = 8;
        text.remove_prefix(1);
    }
    std::uint64_t value = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// The candidate nearest to a mistyped word; empty when none is near: more than a third of it would have to change.
inline std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    std::string_view best;
    std::size_t best_distance = word.size() / 3 + 1;
    constexpr std::size_t longest = 64;  // keeps the quadratic comparison harmless on hostile input
    if (word.size() > longest) return best;
    const auto without_digits = [](std::string_view text) {
        std::string out;
        for (const char c : text)
            if (c < '0' || c > '9') out += lower(c);
        return out;
    };
    for (const std::string_view candidate : candidates) {
        if (candidate.size() > longest) continue;
        // Another number is another thing, such as a core that was left out, and no slip of the pen.
        if (without_digits(candidate) == without_digits(word) && candidate != word) continue;
        std::vector<std::size_t> row(candidate.size() + 1);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
        for (std::size_t i = 1; i <= word.size(); ++i) {
            std::size_t diagonal = row[0];
            row[0] = i;
            for (std::size_t j = 1; j < row.size(); ++j) {
                const std::size_t changed = diagonal + (lower(word[i - 1]) == lower(candidate[j - 1]) ? 0 : 1);
                diagonal = row[j];
                row[j] = std::min({row[j] + 1, row[j - 1] + 1, changed});
            }
        }
        if (row.back() < best_distance + (best.empty() ? 1 : 0)) {
            best = candidate;
            best_distance = row.back();
        }
    }
    return best;
}

}  // namespace waymark::capture::text
