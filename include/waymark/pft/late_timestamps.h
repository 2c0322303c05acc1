/// Timestamps of a piece of a stream whose high bits were sent before the piece (follow::Parallel). Also used for
/// ETMv3.
#pragma once

#include <vector>

#include "waymark/follow/parallel.h"
#include "waymark/follow/time_order.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

/// Values of timestamps that were reported without knowing the preceding timestamp.
struct LateTimestamps {
    std::vector<TimestampValue> sent;
    bool to_the_end = false;  ///< all timestamps since then were incomplete
    follow::TimeOrder times;  ///< times of the complete ones

    /// A timestamp was added to `last`.
    void see(const TimestampValue& value, const TimestampState& last) {
        if (last.known()) to_the_end = false;
        if (to_the_end) sent.push_back(value);
    }
    /// Whether a decoder that has read everything before would have reported one of them. `last`, `before`: the state
    /// at the end of the preceding part; updated to the state after the incomplete ones.
    [[nodiscard]] bool contradict(const Config& config, TimestampState& last, follow::TimeOrder& before) const {
        bool any = false;
        for (const TimestampValue& value : sent) {
            last.update(value, config);
            any |= before.take({.value = last.value(config), .known = last.known()}).has_value();
        }
        return any || times.contradicts(before);
    }
};

/// Completes, in their elements, the timestamps of a piece that were reported before the first complete one; returns
/// the last of them. `now`: the last timestamp before the piece. `zero_is_known`: a time of 0 is valid.
[[nodiscard]] inline TimestampState complete_timestamps(const Config& config, TimestampState now,
                                                        const LateTimestamps& late, const follow::Batches& batches,
                                                        bool zero_is_known = true) {
    auto sent = late.sent.begin();
    for (const auto& batch : batches)
        for (flow::Event& event : batch->events) {
            if (sent == late.sent.end()) return now;
            auto* reported = std::get_if<flow::Timestamp>(&event.what);
            if (reported == nullptr) continue;
            now.update(*sent++, config);
            reported->value = now.value(config);
            reported->known = now.known() && (zero_is_known || now.transmitted() != 0);
        }
    return now;
}

}  // namespace waymark::pft
