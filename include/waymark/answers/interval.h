/// How far a share of samples can be trusted.
#pragma once

#include <cstdint>

namespace waymark::answers {

/// The 95 % interval of a share by Wilson's score, which is also valid for small numbers.
struct Interval {
    double low{}, high{};
};
[[nodiscard]] Interval wilson_95(std::uint64_t part, std::uint64_t all);
/// The same for a part of all, seen in `observations` independent observations.
[[nodiscard]] Interval wilson_95_of(std::uint64_t part, std::uint64_t all, std::uint64_t observations);
/// Groups with fewer samples are not reliable.
inline constexpr std::uint64_t few_samples = 30;

}  // namespace waymark::answers
