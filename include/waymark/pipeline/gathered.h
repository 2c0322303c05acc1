/// Combines sentences about problems by kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/capture.h"

namespace waymark::pipeline {

/// A sentence without the parts that distinguish it from others of its kind: numbers, names in single quotes or square
/// brackets, and the place before the first `: `.
[[nodiscard]] inline std::string without_particulars(std::string_view sentence) {
    std::string out;
    bool quoted = false, bracketed = false, number = false;
    const std::size_t place = sentence.find(": ");
    const std::string_view rest = place == sentence.npos ? sentence : sentence.substr(place);
    const auto is_word = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    for (std::size_t i = 0; i < rest.size(); ++i) {
        const char c = rest[i];
        // An apostrophe inside a word is no quote.
        if (c == '\'' && !(i != 0 && i + 1 < rest.size() && is_word(rest[i - 1]) && is_word(rest[i + 1])))
            quoted = !quoted;
        bracketed = c == '[' || (bracketed && c != ']');
        number = (c >= '0' && c <= '9') || (number && ((c >= 'a' && c <= 'f') || c == 'x' || c == ','));
        if (!quoted && !bracketed && !number) out += c;
    }
    return out;
}

/// Joins sentences of one kind, which differ only in numbers, names in quotes and places. From the fourth sentence on
/// they are counted, and the first three places are listed; for sentences without a place, the names in quotes are
/// listed. The kinds keep the order of their first sentence. For every command that lists problems.
[[nodiscard]] std::vector<std::string> gathered(const std::vector<std::string>& sentences);
/// The same for problems found while a capture was read.
[[nodiscard]] std::vector<std::string> gathered(const std::vector<capture::Problem>& problems);

}  // namespace waymark::pipeline
