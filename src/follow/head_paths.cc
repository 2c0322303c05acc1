#include "head_paths.h"

namespace waymark::follow::head {

void Paths::seed(std::uint32_t k, const Shared& shared) {
    all.clear();
    seeded_at = k;
    everywhere = true;
    before = shared;
    const std::vector<Place>& waypoints = program_.waypoints();
    if (waypoints.empty()) return;  // there are too many: a packet with an address must reduce their number
    everywhere = false;
    for (const Place& place : waypoints) {
        if (a64 && *a64 != (place.isa == Isa::a64)) continue;
        Path path = beginning();
        path.current = place.address.value;
        path.isa = path.seed_isa = place.isa;
        path.fresh = true;
        all.push_back(path);
    }
    odds.places = static_cast<double>(all.size());
    program_.steps += all.size();
}

void Paths::settle(std::uint32_t boundary) {
    for (Path& path : all) {
        if (path.start != none || path.lost || path.fresh || path.waits) continue;
        path.forget_start();
        path.start = boundary;
        path.start_current = path.current;
        path.start_isa = path.isa;
        path.start_stack = path.stack;
        path.start_history = path.history;
    }
}

Shared Paths::shared_past() {
    if (all.empty()) return {};
    Path every = all.front();
    keep_start(every);
    for (const Path& path : all) {
        const Shared both = common(every, path);
        every.past = both.past;
        every.cut = std::min(every.cut, both.cut);
    }
    return {every.past, std::min(every.cut, packet)};
}

/// Adds the past of another path. A past that was always in known code takes precedence over one that was in unknown
/// code.
void Paths::join(Path& path, const Path& other) {
    if (path.checks > other.checks && path.checks > other.checks + odds.margin()) return;
    if (other.checks > path.checks && other.checks > path.checks + odds.margin()) {
        path = other;
        return;
    }
    path.checks = std::max(path.checks, other.checks);
    path.emptied |= other.emptied;
    path.stack = stacks.common(path.stack, other.stack);
    if (path.past == other.past && path.cut == other.cut && path.start == other.start && path.kept == other.kept &&
        path.start_current == other.start_current && path.start_isa == other.start_isa &&
        path.start_history == other.start_history)
        return;
    const Shared both = common(path, other);
    path.past = both.past;
    path.cut = both.cut;
    path.forget_start();
}

void Paths::put(std::vector<Path>& next, bool& many, const Path& to) {
    if (too_many(next)) return;  // all would be forgotten
    if (!many && next.size() > few) {
        many = true;
        seen_.clear();
        for (std::uint32_t i = 0; i < next.size(); ++i) (void)seen_.try_emplace(state_of(next[i]), i);
    }
    if (many) {
        const auto [position, is_new] = seen_.try_emplace(state_of(to), static_cast<std::uint32_t>(next.size()));
        return is_new ? next.push_back(to) : join(next[position], to);
    }
    const State state = state_of(to);
    const auto same = std::find_if(next.begin(), next.end(), [&](const Path& p) { return state_of(p) == state; });
    same == next.end() ? next.push_back(to) : join(*same, to);
}

void Paths::to_any_call(const Path& path, const std::optional<Place>& back) {
    returned_ = true;
    const Histories::Entry last = histories.last(path.history);
    const bool known = last.kind == Histories::Kind::known;
    // Paths without other differences continue there together.
    const auto [found, is_new] = returning_.try_emplace(
        {known, known ? last.address.value : 0, known ? last.isa : path.seed_isa, back ? back->address.value : nowhere,
         back ? back->isa : Isa::a32, path.history, path.isa == Isa::a64},
        path);
    if (!is_new) join(found->second, path);
}

void Paths::to_all_calls(Path path, const Place& back, std::vector<Path>& next, bool& many) {
    keep_start(path);
    // If a decoder starts where the path starts, the missing entry can be given to it in advance, unless the path has
    // emptied its stack.
    const bool given = path.start != none && !path.emptied;
    for (const Place& place : program_.after_calls()) {
        if ((place.isa == Isa::a64) != (path.isa == Isa::a64)) continue;
        ++program_.steps;
        Path to = path;
        to.current = place.address.value;
        to.isa = place.isa;
        to.lost = to.fresh = to.waits = false;
        if (back.address.value != nowhere) to.stack = stacks.push(back, to.stack);
        if (given) {
            remember(to, PathStep::Kind::taken, place);
        } else if (to.start != none) {
            to.forget_start();
            to.cut = packet;
        }
        put(next, many, to);
        if (exhausted()) return;
    }
}

}  // namespace waymark::follow::head
