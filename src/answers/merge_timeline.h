/// Merges timelines: a sum keeps the timelines of a few captures, each on its own axis, since times of different
/// captures cannot be related.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "merge_rows.h"

namespace waymark::answers {

inline constexpr std::string_view timeline_is_a_sample =
    "The timeline is a sample: times of captures cannot be related, so it shows some of them, each from its own begin "
    "and with less detail.";

[[nodiscard]] bool has_timeline(const Answers& a);

/// Keeps the captures that come first in an order that depends only on their own names and timelines. So the same ones
/// are kept, in whatever order captures are added.
class MergedTimelines {
public:
    /// `maps` translates functions of `a` to the sum.
    void add(Answers& a, const RowMover::Maps& maps);
    /// `maps` translates functions of the sum to the result.
    void finish(Answers& out, const RowMover::Maps& maps);

private:
    /// Captures with the same unit of time are adjacent, and only the first unit is kept.
    using Key = std::tuple<std::size_t, std::string, std::uint64_t, std::uint64_t, std::string, std::uint64_t>;
    struct Sample {
        TimelineSample row;
        std::vector<Track> tracks{};  ///< the first is the capture's own
        std::vector<Slice> slices{};
        std::vector<TimelineMark> marks{};
        std::vector<Series> series{};
    };
    void keep(const TimeAxis& axis, Sample sample);
    std::map<Key, Sample> kept_;
};

}  // namespace waymark::answers
