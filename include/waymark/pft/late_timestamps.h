/// Timestamps of a piece of a stream whose high bits were sent before it (follow::Parallel). ETMv3 has
/// the same.
#pragma once

#include <vector>

#include "waymark/follow/parallel.h"
#include "waymark/follow/time_order.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

/// Values of timestamps that were reported without the last timestamp before them.
struct LateTimestamps {
    std::vector<TimestampValue> sent;
    bool to_the_end = false;  ///< no timestamp since was complete
    follow::TimeOrder times;  ///< of those that were

    /// A timestamp comes, and `last` has taken it in.
    void see(const TimestampValue& value, const TimestampState& last) {
        if (last.known()) to_the_end = false;
        if (to_the_end) sent.push_back(value);
    }
    /// A decoder that has read all before would have reported one of them. `last`, `before`: at the end of what came
    /// before; afterwards, behind the incomplete ones.
    [[nodiscard]] bool contradict(const Config& config, TimestampState& last, follow::TimeOrder& before) const {
        bool any = false;
        for (const TimestampValue& value : sent) {
            last.update(value, config);
            any |= before.take({.value = last.value(config), .known = last.known()}).has_value();
        }
        return any || times.contradicts(before);
    }
};

/// Timestamps of a piece that were reported before the first complete one, completed in their elements; gives back the
/// last of them. `now`: the last timestamp in front of the piece. `zero_is_known`: a time of 0 is one.
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
