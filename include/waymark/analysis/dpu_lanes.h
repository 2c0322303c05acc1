/// Who had the core when, as a picture.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"

namespace waymark::analysis {

/// A task in user or supervisor state, and how much of each of 64 equal parts of the time it ran, from 0 to 1.
struct DpuLane {
    static constexpr std::size_t columns = 64;
    std::string who;
    std::array<double, columns> parts{};
};
/// By task ID, user state first.
[[nodiscard]] std::vector<DpuLane> dpu_lanes(const DpuCosts& costs, const DpuSaid& said);

}  // namespace waymark::analysis
