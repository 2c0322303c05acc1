/// Shared code of the page's sections: indices, texts, costs, and the choice of rows to keep.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/own_code.h"

namespace waymark::report {

/// `none` is -1.
inline std::int64_t index(answers::Index i) { return i == answers::none ? -1 : static_cast<std::int64_t>(i); }

/// Numbers texts that occur more than once.
class SharedTexts {
public:
    std::size_t add(const std::string& text) {
        const auto [found, is_new] = numbers_.try_emplace(text, texts_.size());
        if (is_new) texts_.push_back(&found->first);
        return found->second;
    }
    void write(Json& json, std::string_view name) const {
        json.strings(name, texts_, [](const std::string* text) -> const std::string& { return *text; });
    }

private:
    std::unordered_map<std::string, std::size_t> numbers_;  // its keys do not move
    std::vector<const std::string*> texts_;
};

/// An array of columns, one per metric.
template <class Rows, class CostsOf>
void write_costs(Json& json, std::string_view name, const answers::Answers& a, const Rows& rows, CostsOf&& costs_of) {
    json.key(name).begin_array();
    for (std::size_t metric = 0; metric < a.metrics.size(); ++metric) {
        json.begin_array();
        for (const auto& row : rows) json.number(answers::cost_of(costs_of(row), metric));
        json.end_array();
    }
    json.end_array();
}

/// Functions that ran, and the program's own functions; of other functions that never ran, coverage has only counts.
inline std::vector<bool> looked_into(const answers::Answers& answers) {
    std::vector<bool> out = answers::own_functions(answers);
    for (const answers::Instruction& i : answers.instructions)
        if (i.seen == answers::Seen::executed && i.function < out.size()) out[i.function] = true;
    return out;
}

/// Indices of the greatest `rows`, in ascending order; among equal rows, the first.
template <class Greater>
std::vector<std::size_t> greatest(std::size_t rows, std::size_t most, Greater&& greater) {
    std::vector<std::size_t> kept(rows);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    if (rows <= most) return kept;
    std::nth_element(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(most), kept.end(),
                     [&](std::size_t a, std::size_t b) {
                         if (greater(a, b)) return true;
                         return !greater(b, a) && a < b;
                     });
    kept.resize(most);
    std::sort(kept.begin(), kept.end());
    return kept;
}

}  // namespace waymark::report
