/// Shortens long names of functions. The page of the report does the same (web/src/ui/text.ts).
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/utf8.h"

namespace waymark {

/// Replaces the arguments in angle brackets and parentheses of a name by an ellipsis: `sort<…>(…)`. Text in brackets
/// after a space is not an argument. The name stays unchanged if brackets do not match, and for operators whose names
/// contain brackets.
[[nodiscard]] inline std::string without_arguments(std::string_view name) {
    if (name.find("operator") != name.npos) return std::string(name);
    std::string out;
    std::size_t depth = 0;
    for (const char c : name) {
        if ((c == '<' || c == '(') && (depth != 0 || (!out.empty() && out.back() != ' '))) {
            if (depth++ == 0) (out += c) += "…";
        } else if ((c == '>' || c == ')') && depth != 0) {
            if (--depth == 0) out += c;
        } else if (depth == 0) {
            out += c;
        }
    }
    return depth == 0 ? out : std::string(name);
}

/// Shortens a name to at most `most` characters, which are at least 3: first its arguments are replaced, then its
/// middle, so that its beginning and end stay. `name` is UTF-8.
[[nodiscard]] inline std::string shortened(std::string_view name, std::size_t most) {
    const auto characters = [](std::string_view text) {
        std::vector<std::string_view> out;
        for (; !text.empty(); text.remove_prefix(out.back().size()))
            out.push_back(text.substr(0, std::max<std::size_t>(utf8_character(text), 1)));
        return out;
    };
    if (name.size() <= most || characters(name).size() <= most) return std::string(name);
    // A name in brackets was made by Waymark; it and a name that consists only of arguments are kept.
    const bool brackets = name.front() == '(' || name.front() == '[' || name.front() == '<';
    const std::string bare = brackets ? std::string(name) : without_arguments(name);
    const std::vector<std::string_view> all = characters(bare);
    if (all.size() <= most) return bare;
    const std::size_t front = most / 2, back = most - 1 - front;
    std::string out;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (i < front || i >= all.size() - back) out += all[i];
        if (i == front) out += "…";
    }
    return out;
}

}  // namespace waymark
