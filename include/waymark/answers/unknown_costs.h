/// Costs that are not known, which are written as such and never as 0.
#pragma once

#include <cstddef>

#include "waymark/answers/costs.h"

namespace waymark::answers {

/// What ran took cycles: where there are none, no count of cycles covers it, and they are not known.
[[nodiscard]] inline bool is_unknown(const Answers& a, const Costs& costs, std::size_t metric) {
    return a.metrics[metric].name == "cycles" && a.metrics.front().name == "instructions" &&
           cost_of(costs, metric) == 0 && cost_of(costs, 0) != 0;
}

/// The same of code that was entered and not traced, such as a handler that the unit leaves out.
[[nodiscard]] inline bool is_unknown_unseen(const Answers& a, const Costs& costs, std::size_t metric) {
    return a.metrics[metric].name == "cycles" && a.metrics.front().name == "instructions" &&
           cost_of(costs, metric) == 0;
}

}  // namespace waymark::answers
