#include "head_program.h"

#include <algorithm>
#include <limits>

namespace waymark::follow::head {

using isa::Waypoint;

const Walk& Program::walk(Place place) {
    const auto [position, is_new] = walk_from_.try_emplace(place, static_cast<std::uint32_t>(walks_.size()));
    if (is_new) {
        const Walk& w =
            walks_.emplace_back(follow::walk(code_, rules_.space, place, {rules_.decode, longest_walk_bytes}));
        steps += w.instructions + (w.end == WalkEnd::waypoint ? 0 : 1);
    }
    return walks_[position];
}

void Program::find_waypoints() {
    for (const CodeExtent& extent : extents_)
        for (const Isa isa : rules_.isas) {
            const std::uint64_t size = isa == Isa::t32 ? 2 : 4;
            if (extent.bytes < size) continue;
            const std::uint64_t last = last_of(extent, isa);
            for (std::uint64_t at_ = (extent.first.value + size - 1) & ~(size - 1);
                 at_ >= extent.first.value && at_ <= last && last - at_ >= size - 1; at_ += size) {
                if (waypoints_.size() > limits_.places || exhausted()) {
                    waypoints_.clear();
                    after_calls_.clear();
                    return;
                }
                const auto i = at({{at_}, isa});
                if (!i || i->waypoint == Waypoint::none || i->undefined) continue;
                waypoints_.push_back({{at_}, isa});
                if (i->link) after_calls_.push_back({follow::advance({at_}, i->bytes, isa), isa});
            }
        }
}

bool Program::fits(const SentPlace& sent, Isa isa) const {
    if (sent.isa) return *sent.isa == isa;
    if (rules_.isa_of_base) return true;
    if (sent.a64 && *sent.a64 != (isa == Isa::a64)) return false;
    return isa == Isa::a64 || sent.halfword == (isa == Isa::t32);
}

std::uint64_t Program::places_of(const SentPlace& sent) const {
    if (sent.whole) return 1;
    if (sent.repeats) return std::numeric_limits<std::uint64_t>::max();
    std::uint64_t bytes = 0, sum = 0;
    for (const CodeExtent& extent : extents_) bytes += extent.bytes;
    for (const Isa isa : rules_.isas) {
        if (!fits(sent, isa)) continue;
        const unsigned width = sent.width + shift_of(sent, isa);
        sum += (width >= 64 ? 0 : bytes >> width) + extents_.size();
    }
    return sum;
}

}  // namespace waymark::follow::head
