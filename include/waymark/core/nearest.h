/// Suggestions for a mistyped word.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace waymark {

/// The candidate most similar to a mistyped word, ignoring case; empty if none is similar: more than a third of the
/// word would have to change, or only numbers differ. Lives as long as the candidates.
[[nodiscard]] inline std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
    std::string_view best;
    std::size_t best_distance = word.size() / 3 + 1;
    constexpr std::size_t longest = 64;  // keeps the quadratic comparison harmless on hostile input
    if (word.size() > longest) return best;
    // Not std::tolower, which depends on the locale.
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
    const auto without_digits = [&](std::string_view text) {
        std::string out;
        for (const char c : text)
            if (c < '0' || c > '9') out += lower(c);
        return out;
    };
    for (const std::string_view candidate : candidates) {
        if (candidate.size() > longest) continue;
        // A different number means a different thing, such as a core that was left out, not a typing error.
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

}  // namespace waymark
