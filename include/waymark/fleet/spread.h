/// How captures of a job differ from each other, which the sum of many captures hides.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// The profile of a capture, small enough to be stored for 100,000 captures: its costs by groups of functions. The name
/// of a function determines its group, so it is in the same group in all captures and builds.
struct CaptureProfile {
    static constexpr std::size_t groups = 32;
    std::string capture;   ///< its path
    std::string program;   ///< names of the files that ran; captures of one program are compared
    std::uint64_t cost{};  ///< total in the first metric
    std::array<std::uint64_t, groups> by_group{};  ///< of `cost`
};

[[nodiscard]] CaptureProfile profile_of(const answers::Answers& answers, const PlannedCapture& capture);

/// A capture whose profile differs.
struct OutlyingCapture {
    std::string capture;
    /// Half the sum of the differences between the shares of groups in this capture and in all others: 0 if all shares
    /// are equal, 1 if the captures have no group in common. Never more than the same distance computed with single
    /// functions.
    double distance{};
};

/// Captures of one program.
struct ProgramSpread {
    std::string program;
    std::uint64_t captures{};
    std::uint64_t least{}, median{}, most{};      ///< costs of the captures
    double median_distance{};                     ///< from all others
    std::array<std::uint64_t, 10> by_distance{};  ///< number of captures by tenths of distance
    std::vector<OutlyingCapture>
        outliers;  ///< captures with a distance of at least `least_outlying`, the most distant first
};

/// Distance from which a capture is an outlier.
inline constexpr double least_outlying = 0.3;

/// By program. The order of the profiles does not matter.
[[nodiscard]] std::vector<ProgramSpread> spread_of(std::vector<CaptureProfile> profiles);

/// Adds tables of programs and outliers, and a chart of distances, to answers that are the sum of the captures.
void add_spread(answers::Answers& sum, const std::vector<ProgramSpread>& spread);

}  // namespace waymark::fleet
