#include "waymark/follow/follower.h"

namespace waymark::follow {

flow::What why_lost(WalkEnd end, Address after) {
    if (end == WalkEnd::no_memory) return flow::NoMemory{after};
    return flow::Inconsistency{
        end == WalkEnd::undefined ? flow::Conflict::undefined_reached : flow::Conflict::runaway_walk, after, {}};
}

}  // namespace waymark::follow
