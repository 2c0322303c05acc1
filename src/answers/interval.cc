#include "waymark/answers/interval.h"

#include <algorithm>
#include <cmath>

namespace waymark::answers {

Interval wilson_95(std::uint64_t part, std::uint64_t all) { return wilson_95_of(part, all, all); }

Interval wilson_95_of(std::uint64_t part, std::uint64_t all, std::uint64_t observations) {
    if (all == 0 || observations == 0) return {0, 1};
    constexpr double z = 1.959963984540054;
    const double n = static_cast<double>(observations), p = static_cast<double>(part) / static_cast<double>(all);
    const double middle = p + z * z / (2 * n), width = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    const double scale = 1 + z * z / n;
    // The share itself is inside the interval, even if rounding says otherwise.
    return {std::clamp((middle - width) / scale, 0.0, p), std::clamp((middle + width) / scale, p, 1.0)};
}

}  // namespace waymark::answers
