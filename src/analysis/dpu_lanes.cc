#include "waymark/analysis/dpu_lanes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "waymark/analysis/dpu_tables.h"

namespace waymark::analysis {

std::vector<DpuLane> dpu_lanes(const DpuCosts& costs, const DpuSaid& said) {
    constexpr std::size_t columns = DpuLane::columns;
    const std::uint64_t all = std::max<std::uint64_t>(costs.time(), 1);
    std::map<std::pair<bool, std::uint8_t>, DpuLane> lanes;
    for (const DpuStay& s : costs.stays()) {
        DpuLane& lane = lanes.try_emplace({s.context.supervisor, s.context.id}).first->second;
        for (std::size_t c = static_cast<std::size_t>(s.begin * columns / all); c < columns; ++c) {
            const double first = static_cast<double>(all) * static_cast<double>(c) / columns;
            const double last = static_cast<double>(all) * static_cast<double>(c + 1) / columns;
            if (first >= static_cast<double>(s.end)) break;
            lane.parts[c] +=
                (std::min(last, static_cast<double>(s.end)) - std::max(first, static_cast<double>(s.begin))) /
                (last - first);
        }
    }
    std::vector<DpuLane> out;
    for (auto& [context, lane] : lanes) {
        lane.who = context_text(said, {context.first, context.second});
        out.push_back(std::move(lane));
    }
    return out;
}

}  // namespace waymark::analysis
