/// Unknown costs, which are shown as unknown and never as 0.
#pragma once

#include <cstddef>

#include "waymark/answers/costs.h"

namespace waymark::answers {

/// Executed code took cycles: if its cost is 0, no cycle count covers it, so its cycles are not known.
[[nodiscard]] inline bool is_unknown(const Answers& a, const Costs& costs, std::size_t metric) {
    return a.metrics[metric].name == "cycles" && a.metrics.front().name == "instructions" &&
           cost_of(costs, metric) == 0 && cost_of(costs, 0) != 0;
}

/// The same for code that was entered but not traced, such as a handler that the unit excludes.
[[nodiscard]] inline bool is_unknown_unseen(const Answers& a, const Costs& costs, std::size_t metric) {
    return a.metrics[metric].name == "cycles" && a.metrics.front().name == "instructions" &&
           cost_of(costs, metric) == 0;
}

}  // namespace waymark::answers
