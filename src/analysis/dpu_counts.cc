#include "waymark/analysis/dpu_counts.h"

#include <fmt/format.h>

#include <algorithm>

namespace waymark::analysis {

void add(DpuCounts& to, const DpuCounts& counts) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += counts[i];
}

void DpuSpread::take(const DpuCounts& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        least[i] = times == 0 ? counts[i] : std::min(least[i], counts[i]);
        most[i] = std::max(most[i], counts[i]);
    }
    add(sum, counts);
    ++times;
}

std::string to_text(const dpu::TaskContext& context) {
    return fmt::format("{} {}", context.supervisor ? "supervisor" : "user", context.id);
}

std::string to_text(const DpuOwner& owner) {
    switch (owner.kind) {
        case DpuOwner::Kind::context:
        case DpuOwner::Kind::sampled:
        case DpuOwner::Kind::tail_context: return to_text(owner.context);
        case DpuOwner::Kind::between:
            return fmt::format("<between {} and {}>", to_text(owner.context), to_text(owner.other));
        case DpuOwner::Kind::filtered: return "<filtered>";
        case DpuOwner::Kind::before: return "<before>";
        case DpuOwner::Kind::tail: return "<tail>";
        case DpuOwner::Kind::unattributed: return "<unattributed>";
    }
    return "?";
}

}  // namespace waymark::analysis
