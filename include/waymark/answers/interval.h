/// How far a share of samples can be trusted.
#pragma once

#include <cstdint>

namespace waymark::answers {

/// The 95 % interval of a share by Wilson's score: honest for small numbers too.
struct Interval {
    double low{}, high{};
};
[[nodiscard]] Interval wilson_95(std::uint64_t part, std::uint64_t all);
/// Below this, a group says little.
inline constexpr std::uint64_t few_samples = 30;

}  // namespace waymark::answers
