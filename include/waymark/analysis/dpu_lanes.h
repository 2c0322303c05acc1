/// A picture of which task ran when.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"

namespace waymark::analysis {

/// A task in user or supervisor state, and the share of each of 64 equal parts of the time in which it ran, from 0 to
/// 1.
struct DpuLane {
    static constexpr std::size_t columns = 64;
    std::string who;
    std::array<double, columns> parts{};
};
/// Sorted by task ID, user state first.
[[nodiscard]] std::vector<DpuLane> dpu_lanes(const DpuCosts& costs, const DpuSaid& said);

}  // namespace waymark::analysis
