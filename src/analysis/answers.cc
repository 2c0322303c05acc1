#include "waymark/analysis/answers.h"

namespace waymark::analysis {

namespace {
void add(Costs& to, const Costs& costs) {
    if (to.size() < costs.size()) to.resize(costs.size());
    for (std::size_t i = 0; i < costs.size(); ++i) to[i] += costs[i];
}
}  // namespace

std::vector<FunctionCosts> function_costs(const Answers& answers) {
    std::vector<FunctionCosts> result(answers.functions.size());
    for (FunctionCosts& f : result) f.self.resize(answers.metrics.size());
    if (answers.calls.empty()) {
        for (const Instruction& i : answers.instructions)
            if (i.function < result.size()) add(result[i.function].self, i.costs.empty() ? Costs{i.times} : i.costs);
        return result;
    }
    for (FunctionCosts& f : result) f.inclusive.resize(answers.metrics.size());
    // Parents stand before their children, so from the back every node's sum is whole when it is added to its parent's.
    std::vector<Costs> sums(answers.calls.size());
    for (std::size_t i = answers.calls.size(); i-- > 0;) {
        const CallNode& node = answers.calls[i];
        add(sums[i], node.self);
        if (node.parent != none) add(sums[node.parent], sums[i]);
        if (node.function >= result.size()) continue;
        FunctionCosts& f = result[node.function];
        f.calls += node.calls;
        add(f.self, node.self);
        bool outermost = true;
        for (Index up = node.parent; up != none && outermost; up = answers.calls[up].parent)
            outermost = answers.calls[up].function != node.function;
        if (outermost) add(f.inclusive, sums[i]);
    }
    return result;
}

}  // namespace waymark::analysis
