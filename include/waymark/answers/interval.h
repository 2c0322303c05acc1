/// How far a share of samples can be trusted.
#pragma once

#include <cstdint>

namespace waymark::answers {

/// The 95 % interval of a share by Wilson's score: honest for small numbers too.
struct Interval {
    double low{}, high{};
};
[[nodiscard]] Interval wilson_95(std::uint64_t part, std::uint64_t all);
/// The same of a part of all, seen in `observations` that do not depend on each other.
[[nodiscard]] Interval wilson_95_of(std::uint64_t part, std::uint64_t all, std::uint64_t observations);
/// Below this, a group says little.
inline constexpr std::uint64_t few_samples = 30;

}  // namespace waymark::answers
