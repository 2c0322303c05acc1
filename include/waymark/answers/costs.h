/// Sums of costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/saturating.h"

namespace waymark::answers {

/// Returns 0 if the costs have no such metric.
[[nodiscard]] inline std::uint64_t cost_of(const Costs& costs, std::size_t metric) {
    return metric < costs.size() ? costs[metric] : 0;
}
/// For an instruction without costs, its execution count is the cost in the first metric.
[[nodiscard]] inline std::uint64_t cost_of(const Instruction& i, std::size_t metric) {
    return !i.costs.empty() ? cost_of(i.costs, metric) : metric == 0 ? i.times : 0;
}

inline void add(Costs& to, const Costs& costs) {
    if (to.size() < costs.size()) to.resize(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) add_saturating(to[i], costs[i]);
}

/// Parent of a node in the call tree; `none` if it has no parent, or one that does not precede it.
[[nodiscard]] inline Index parent_of(const Answers& a, Index i) {
    const Index parent = a.calls[i].parent;
    return parent < i ? parent : none;
}
/// The inclusive cost of each node of the call tree.
[[nodiscard]] inline std::vector<std::uint64_t> inclusive_costs(const Answers& a, std::size_t metric) {
    std::vector<std::uint64_t> sums(a.calls.size());
    for (Index i = static_cast<Index>(sums.size()); i-- > 0;) {
        sums[i] = saturating(sums[i], cost_of(a.calls[i].self, metric));
        if (const Index up = parent_of(a, i); up != none) sums[up] = saturating(sums[up], sums[i]);
    }
    return sums;
}

/// Whether a function ran, or was called: tables of functions then have a row for it.
[[nodiscard]] bool ran(const FunctionCosts& costs);

}  // namespace waymark::answers
