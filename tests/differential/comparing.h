/// Shared by the tests against OpenCSD: lists from both sides, compared, and the known quirks that were applied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::comparing {

/// How often each known difference was met, by a sentence on it.
using Quirks = std::map<std::string, std::uint64_t>;

/// `noun`: what was compared, `elements`.
inline void print(const std::string& title, std::size_t count, std::string_view noun, const Quirks& quirks) {
    std::printf("%s: %zu %.*s compared\n", title.c_str(), count, static_cast<int>(noun.size()), noun.data());
    for (const auto& [name, times] : quirks)
        std::printf("    %8llu  %s\n", static_cast<unsigned long long>(times), name.c_str());
}

/// The first difference, with its surroundings; empty if there is none. `same(a, b)`, `text(a)` without a line end.
template <class T, class Same, class Text>
[[nodiscard]] std::string first_difference(const std::vector<T>& ours, const std::vector<T>& theirs, Same&& same,
                                           Text&& text) {
    const auto [o, t] = std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end(), same);
    if (o == ours.end() && t == theirs.end()) return {};
    const auto at = static_cast<std::size_t>(o - ours.begin());
    std::string out =
        "number " + std::to_string(at) + " of " + std::to_string(ours.size()) + " and " + std::to_string(theirs.size());
    const auto show = [&](const char* who, const std::vector<T>& list, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < std::min(to, list.size()); ++i) out += who + text(list[i]);
    };
    show("\n   both ", ours, at - std::min<std::size_t>(at, 4), at);
    show("\n   ours ", ours, at, at + 4);
    show("\n theirs ", theirs, at, at + 4);
    return out;
}

}  // namespace waymark::comparing
