// Observations of protocols that give the address of an indirect branch after its outcome (Rules::Indirect::waits).
#include <algorithm>

#include "head_search.h"

namespace waymark::follow::head {

using Kind = Histories::Kind;

/// The known past up to here is kept; the base of later packets is not known from here on.
void Search::cut(Path& path) {
    if (path.start == none) return;
    paths_.keep_start(path);
    path.forget_start();
    path.cut = paths_.packet;
}

void Search::name_unknown(Path& path, const SentPlace& sent) {
    Histories::Entry entry{};
    if (sent.repeats) {
        const Histories::Entry repeated = paths_.histories.at(path.history)[*sent.repeats % 3];
        if (repeated.kind == Kind::within) entry = repeated;
        cut(path);
    }
    path.history = paths_.histories.push(path.history, entry);
}

void Search::depart(Path& path) {
    path.lost = true;
    path.waits = path.fresh = false;
}

// ---- addresses

void Search::take(const seen::Arrival& o) {
    if (o.at.a64) paths_.a64 = o.at.a64;
    if (paths_.everywhere) {
        begin_at(o.at);
        return;
    }
    const auto forks = [&](const Path& path) {
        return (path.lost || path.waits || path.fresh) && !is_known(path, o.at);
    };
    if (std::any_of(paths_.all.begin(), paths_.all.end(), forks)) {
        if (means_anything(o.at)) {
            ++obstacles_.repeated;
            return paths_.forget();
        }
        // The origin of the paths makes no difference to the places where they may continue.
        paths_.go_on([&](const Path& path, Keep& keep) {
            Path to = path;
            if (forks(path)) {
                if (path.waits) to.check({path.current}, 2);
                doubt(to);
                depart(to);
                paths_.keep_start(to);
            }
            keep(to);
        });
    }
    paths_.go_on([&](const Path& path, Keep& keep) { arrive_on(path, o.at, keep); });
    // If tracing began again at one of several places, the number of paths is the number of places that the checks
    // distinguish.
    if (paths_.odds.places < 1 && paths_.all.size() > 1) paths_.odds.places = static_cast<double>(paths_.all.size());
}

void Search::arrive_on(const Path& path, const SentPlace& sent, Keep& keep) {
    Path to = path;
    if (!path.lost && !path.waits && !path.fresh) {
        // The trace repeats the place of execution.
        if (is_known(path, sent)) {
            if (complete(path, sent) != path.place()) return;
        } else {
            if (!agrees(sent, path.place()) || !program_.fits(sent, path.isa)) return;
            if (sent.repeats) cut(to);
        }
        to.check({path.current}, 3);
        arrive_at(to, path.place());
        return keep(to);
    }
    if (path.waits) to.check({path.current}, 2);
    complete_for(path, sent, [&](const Place& place) {
        Path there = to;
        doubt(there);
        arrive_at(there, place);
        keep(there);
    });
}

void Search::take(const seen::Named& o) {
    if (paths_.everywhere) return;
    paths_.go_on([&](const Path& path, Keep& keep) {
        Path to = path;
        if (is_known(path, o.at))
            name(to, complete(path, o.at));
        else
            name_unknown(to, o.at);
        keep(to);
    });
}

void Search::take(const seen::Width& o) {
    paths_.a64 = o.a64;
    if (paths_.everywhere) return;
    paths_.go_on([&](const Path& path, Keep& keep) {
        Path to = path;
        if ((path.isa == Isa::a64) != o.a64) {
            if (!path.lost && !path.waits) return;
            to.isa = o.a64 ? Isa::a64 : Isa::a32;
        }
        keep(to);
    });
}

// ---- exceptions

void Search::take(const seen::Interrupted& o) {
    if (paths_.everywhere) return;
    if (!o.at_target) leave_to_stack();
    paths_.go_on([&](const Path& path, Keep& keep) {
        Path to = path;
        if (!o.at || path.lost) {
            if (o.at) is_known(path, *o.at) ? name(to, complete(path, *o.at)) : name_unknown(to, *o.at);
            depart(to);
            return keep(to);
        }
        if (path.waits) {  // at its target
            to.check({path.current}, 2);
            is_known(path, *o.at) ? name(to, complete(path, *o.at)) : name_unknown(to, *o.at);
            depart(to);
            return keep(to);
        }
        interrupt(path, *o.at, keep);
    });
}

/// Walks to the instruction that was not executed; no waypoint comes before it.
void Search::interrupt(const Path& path, const SentPlace& sent, Keep& keep) {
    std::optional<Place> place;
    if (is_known(path, sent)) place = complete(path, sent);
    if (path.fresh) {
        // The exception may come at any instruction of the block.
        Path to = path;
        if (place) {
            const Walk& w = program_.walk(*place);
            if (place->isa != path.isa || w.end != WalkEnd::waypoint || w.last.value != path.current) return;
            name(to, *place);
        } else {
            name_unknown(to, sent);
        }
        depart(to);
        return keep(to);
    }
    Address at{path.current};
    for (std::uint64_t walked = 0; walked < longest_bytes;) {
        const Place here{at, path.isa};
        if (place ? here == *place : !sent.repeats && agrees(sent, here) && program_.fits(sent, here.isa)) {
            Path there = path;
            there.check(at, 3);
            name(there, here);
            depart(there);
            keep(there);
            if (place) return;
        }
        const auto i = program_.at(here);
        if (!i) {
            if (!place) return;
            Path to = path;
            lose(to);
            name(to, *place);
            return keep(to);
        }
        if (i->waypoint != isa::Waypoint::none) break;
        at = follow::advance(at, i->bytes, path.isa);
        walked += i->bytes;
    }
    if (!sent.repeats || place) return;
    // The place may be any instruction before the next waypoint instruction.
    Path to = path;
    name_unknown(to, sent);
    depart(to);
    keep(to);
}

// ---- source addresses

void Search::take(const seen::Source& o) {
    if (paths_.everywhere) return;
    leave_to_stack();
    paths_.go_on([&](const Path& path, Keep& keep) { source(path, o.at, keep); });
}

void Search::source(const Path& path, const SentPlace& sent, Keep& keep) {
    std::optional<Place> place;
    if (is_known(path, sent)) place = complete(path, sent);
    const auto name_it = [&](Path& to, Address at) {
        const Isa isa = path.isa == Isa::a64 ? Isa::a64 : sent.halfword ? Isa::t32 : Isa::a32;
        if (!place && sent.repeats) cut(to);
        name(to, {at, isa});
    };
    if (path.lost || path.fresh) {
        Path to = path;
        if (!place) {
            name_unknown(to, sent);
            lose(to);
            to.fresh = false;
            return keep(to);
        }
        name_it(to, place->address);
        to.current = place->address.value;
        to.lost = to.fresh = false;
        return outcome(to, true, keep);
    }
    // The waypoint instructions before the given one were not taken.
    Path to = path;
    for (std::uint64_t walked = 0; walked < longest_bytes;) {
        const Walk& w = program_.walk(to.place());
        if (w.end == WalkEnd::no_memory) return leave(to, keep);
        if (w.end != WalkEnd::waypoint) return;
        if (place ? w.last == place->address : agrees(sent, {w.last, path.isa})) {
            Path there = to;
            name_it(there, w.last);
            outcome(there, true, keep);
            if (place) return;
        }
        if (place && (w.last > place->address || w.last.value < path.current)) return;
        if (path.isa != Isa::t32 && !w.instruction.conditional) return;
        to.check(w.last, 0);
        to.current = w.after.value;
        walked += w.bytes;
    }
}

// ---- discontinuities

void Search::take(const seen::Restart&) { restart({}); }

void Search::take(const seen::Untraced&) {
    ++obstacles_.untraced;
    if (!paths_.everywhere) paths_.forget();
}

void Search::take(const seen::Departed&) {
    if (paths_.everywhere) return;
    paths_.go_on([&](const Path& path, Keep& keep) {
        Path to = path;
        lose(to);
        to.fresh = false;
        keep(to);
    });
}

}  // namespace waymark::follow::head
