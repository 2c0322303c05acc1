/// Names of a DPU's counters, as a capture folder has them.
#pragma once

#include <array>
#include <string_view>

namespace waymark::capture {

inline constexpr std::array<std::string_view, 6> dpu_counters{"A0", "A1", "A2", "B0", "B1", "B2"};

}  // namespace waymark::capture
