#include "head_search.h"

#include <algorithm>
#include <utility>

namespace waymark::follow::head {

using Kind = Histories::Kind;

namespace {

[[nodiscard]] Isa with_thumb_ee(Isa isa, const SentPlace& sent) {
    if (!sent.thumb_ee || (isa != Isa::t32 && isa != Isa::tee)) return isa;
    return *sent.thumb_ee ? Isa::tee : Isa::t32;
}

}  // namespace

void Search::run(std::span<const Observation> observations) {
    Outset outset;
    const auto seed = [&](std::uint32_t k, const Shared& shared) {
        paths_.seed(k, shared);
        outset = {k, paths_.a64, paths_.odds.measured(), obstacles_};
    };
    seed(0, {});
    for (std::uint32_t k = 0; k + 1 < observations.size() && !exhausted(); ++k) {
        if (outset.first == k)
            if (const Barren* const same = find_barren(observations.subspan(k), outset.a64)) {
                k += static_cast<std::uint32_t>(same->run.size()) - 1;
                paths_.odds.add(same->measured);
                obstacles_.untraced += same->met.untraced;
                obstacles_.repeated += same->met.repeated;
                seed(k + 1, {paths_.before.past, std::min(paths_.before.cut, k)});
                continue;
            }
        step(observations[k], k);
        if (paths_.forgotten) {
            // There are too many paths: their common part is kept, and the search begins again.
            const Shared shared = *std::exchange(paths_.forgotten, {});
            if (shared.past == paths_.before.past && paths_.a64 == outset.a64)
                note_barren(outset, observations.subspan(outset.first, k + 1 - outset.first));
            seed(k + 1, shared);
            continue;
        }
        if (paths_.alive()) continue;
        // No path explains this packet after the earlier ones, so try to explain it alone.
        if (paths_.seeded_at < k) {
            seed(k, {});
            step(observations[k], k);
            paths_.forgotten.reset();
        }
        if (!paths_.alive()) seed(k + 1, {});
    }
    if (!exhausted())
        arrive(std::get<seen::Sync>(observations.back().seen), static_cast<std::uint32_t>(observations.size() - 1));
}

const Search::Barren* Search::find_barren(std::span<const Observation> next, std::optional<bool> a64) {
    const auto same = std::find_if(barren_.begin(), barren_.end(), [&](const Barren& b) {
        ++program_.steps;
        return b.a64 == a64 && b.run.size() < next.size() &&
               std::equal(b.run.begin(), b.run.end(), next.begin(),
                          [](const Observation& x, const Observation& y) { return x.seen == y.seen; });
    });
    return same == barren_.end() ? nullptr : &*same;
}

void Search::note_barren(const Outset& outset, std::span<const Observation> run) {
    const auto chooses = [](const Observation& o) {
        return std::holds_alternative<seen::Sync>(o.seen) || std::holds_alternative<seen::Restart>(o.seen);
    };
    if (std::any_of(run.begin(), run.end(), chooses)) return;
    const Odds::Measured now = paths_.odds.measured();
    barren_.push_back({run,
                       outset.a64,
                       {now.tested - outset.measured.tested, now.passed - outset.measured.passed},
                       {.untraced = obstacles_.untraced - outset.obstacles.untraced,
                        .repeated = obstacles_.repeated - outset.obstacles.repeated}});
}

void Search::step(const Observation& observation, std::uint32_t k) {
    paths_.packet = k;
    std::visit([&](const auto& o) { take(o); }, observation.seen);
    paths_.settle(k + 1);
}

std::vector<Search::Known> Search::known(const Path& path, std::uint32_t end) const {
    std::vector<PathStep> steps;
    if (path.start != none && !path.kept) steps.push_back(Paths::start_of(path));
    for (std::uint32_t i = path.past; i != none; i = paths_.pasts.at(i).before) steps.push_back(paths_.pasts.at(i));
    std::vector<Known> out;
    std::vector<Place> taken, stack;
    const auto close = [&](std::uint32_t cut) {
        if (out.empty()) return;
        Known& last = out.back();
        last.end = cut;
        last.standing.returns.assign(taken.rbegin(), taken.rend());  // the entry that was taken last was deepest
        last.standing.returns.insert(last.standing.returns.end(), stack.rbegin(), stack.rend());
        if (last.end <= last.first) out.pop_back();
    };
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) switch (step->kind) {
            case PathStep::Kind::start: {
                close(step->cut);
                taken.clear();
                stack = paths_.stacks.entries(step->stack);
                const Histories::History history = paths_.histories.at(step->history);
                Standing standing{.current = step->place, .last = step->place};
                const auto place_of = [](const Histories::Entry& e) { return Place{e.address, e.isa}; };
                if (history[0].kind == Kind::known) standing.last = place_of(history[0]);
                for (unsigned i = 0; i < 2; ++i)
                    if (history[i + 1].kind == Kind::known) standing.earlier[i] = place_of(history[i + 1]);
                out.push_back({step->packet, none, std::move(standing)});
                break;
            }
            case PathStep::Kind::taken: taken.push_back(step->place); break;
            case PathStep::Kind::against: out.back().standing.last = step->place; break;
        }
    close(path.start == none ? path.cut : end);
    return out;
}

// ---- outcomes

void Search::take(const seen::Outcomes& o) {
    if (paths_.everywhere) return;
    for (unsigned i = 0; i < o.count && !paths_.all.empty(); ++i) {
        leave_to_stack();
        const bool taken = (o.taken >> i & 1U) != 0;
        paths_.go_on([&](const Path& path, Keep& keep) { outcome(path, taken, keep); });
    }
}

void Search::outcome(const Path& path, bool taken, Keep& keep) {
    if (path.lost) {
        // In unknown code, calls and returns change the return stack.
        Path to = path;
        lose(to);
        return keep(to);
    }
    const Walk& w = program_.walk(path.place());
    Path to = path;
    if (w.end == WalkEnd::no_memory) return leave(to, keep);
    if (w.end != WalkEnd::waypoint) return;
    const isa::Instruction& i = w.instruction;
    to.check(w.last, taken ? 1 : 0);
    to.fresh = false;
    if (!taken) {
        // In A32 and A64 state, the instruction itself shows whether it is conditional.
        if ((path.isa == Isa::a32 || path.isa == Isa::a64) && !i.conditional) return;
        to.current = w.after.value;
        return keep(to);
    }
    const Place back{w.after, path.isa};
    if (i.waypoint == isa::Waypoint::indirect) {
        if (rules_.indirect == Rules::Indirect::waits) {
            if (rules_.return_stack && i.link) to.stack = paths_.stacks.push(back, to.stack);
            to.current = w.last.value;
            to.waits = true;
            return keep(to);
        }
        if (rules_.return_stack) take_return(to, i.link ? std::optional(back) : std::nullopt, keep);
        return;
    }
    to.current = i.target.value;
    to.isa = i.target_isa;
    if (rules_.return_stack && i.link) to.stack = paths_.stacks.push(back, to.stack);
    keep(to);
}

void Search::take_return(Path to, const std::optional<Place>& back, Keep& keep) {
    if (to.stack == empty_stack) return;
    if (to.stack == none) return paths_.to_any_call(to, back);
    const Stacks::Entry entry = paths_.stacks.top(to.stack);
    to.current = entry.place.address.value;
    to.isa = entry.place.isa;
    to.waits = false;
    to.stack = back ? paths_.stacks.push(*back, entry.below) : entry.below;
    keep(to);
}

void Search::leave_to_stack() {
    if (paths_.everywhere) return;
    if (std::none_of(paths_.all.begin(), paths_.all.end(), [](const Path& p) { return p.waits; })) return;
    paths_.go_on([&](const Path& path, Keep& keep) {
        if (!path.waits) return keep(path);
        if (rules_.return_stack) take_return(path, {}, keep);
    });
}

void Search::leave(Path to, Keep& keep) {
    if (!paths_.histories.last_known(to.history)) return;  // nothing would be known about the path
    lose(to);
    keep(to);
}

// ---- addresses

bool Search::base_known(const Path& path, const SentPlace& sent) const {
    return paths_.histories.at(path.history)[sent.repeats.value_or(0) % 3].kind == Kind::known;
}

Place Search::complete(const Path& path, const SentPlace& sent) const {
    const Histories::Entry base = paths_.histories.at(path.history)[sent.repeats.value_or(0) % 3];
    Isa isa = Isa::a32;
    if (sent.isa)
        isa = *sent.isa;
    else if (rules_.isa_of_base)
        isa = base.isa;
    else if (sent.a64.value_or(path.isa == Isa::a64))
        isa = Isa::a64;
    else
        isa = (sent.repeats ? base.isa == Isa::t32 : sent.halfword) ? Isa::t32 : Isa::a32;
    Place place{base.address, isa};
    if (!sent.repeats) {
        const unsigned shift = Program::shift_of(sent, isa);
        const std::uint64_t below = (std::uint64_t{1} << shift) - 1;
        const std::uint64_t covered =
            sent.whole ? ~std::uint64_t{0} : ((std::uint64_t{1} << sent.width) - 1) << shift | below;
        place.address = {(base.address.value & ~covered) | sent.bits << shift};
    }
    if (isa != Isa::a64) place.address.value &= 0xffff'ffffU;
    place.isa = with_thumb_ee(isa, sent);
    return place;
}

bool Search::agrees(const SentPlace& sent, const Place& place) {
    if (sent.repeats) return true;
    const unsigned shift = Program::shift_of(sent, place.isa);
    const std::uint64_t mask = (std::uint64_t{1} << sent.width) - 1;
    return (place.address.value >> shift & mask) == sent.bits;
}

bool Search::means_anything(const SentPlace& sent) const {
    return !sent.whole && program_.places_of(sent) > program_.limits().places;
}

void Search::name(Path& path, const Place& place) {
    if (!paths_.histories.last_known(path.history) && path.start != none &&
        !paths_.histories.last_known(path.start_history)) {
        // The base against which the packets since the start are completed correctly.
        path.start_history = paths_.histories.replace(path.start_history, 0, {place.address, place.isa, Kind::known});
        if (path.kept) paths_.remember(path, PathStep::Kind::against, place);
    }
    path.history = paths_.histories.push(path.history, {place.address, place.isa, Kind::known});
}

void Search::arrive_at(Path& path, const Place& place) {
    name(path, place);
    path.current = place.address.value;
    path.isa = place.isa;
    path.lost = path.fresh = path.waits = false;
}

void Search::doubt(Path& path) {
    if (path.believed != none || path.lost) return;
    if (paths_.odds.by_chance(path.checks) <= doubtful) {
        path.believed = path.checks;
        return;
    }
    path.past = paths_.before.past;
    path.cut = paths_.before.cut;
    path.forget_start();
}

bool Search::begin_at(const SentPlace& sent) {
    if (program_.places_of(sent) > program_.limits().places) return false;
    paths_.everywhere = false;
    const auto begin = [&](const Place& place) {
        Path path = paths_.beginning();
        arrive_at(path, {place.address, with_thumb_ee(place.isa, sent)});
        paths_.all.push_back(path);
    };
    if (sent.whole && (sent.isa || rules_.isa_of_base || sent.a64)) {
        begin(complete(Path{}, sent));
    } else if (sent.whole) {
        for (const Isa isa : rules_.isas)
            if (program_.fits(sent, isa)) {
                Path path;
                path.isa = isa;
                begin(complete(path, sent));
            }
    } else {
        program_.for_each_place(sent, begin);
    }
    paths_.odds.places = static_cast<double>(paths_.all.size());
    return true;
}

void Search::take(const seen::Branch& o) {
    if (paths_.everywhere) {
        begin_at(o.to);
        return;
    }
    paths_.go_on([&](const Path& path, Keep& keep) { branch(path, o.to, keep); });
}

void Search::take(const seen::Jump& o) {
    if (paths_.everywhere) {
        if (!o.out_of_sight) begin_at(o.to);
        return;
    }
    paths_.go_on([&](const Path& path, Keep& keep) { jump(path, o.to, o.out_of_sight, {}, keep); });
}

void Search::branch(const Path& path, const SentPlace& sent, Keep& keep) {
    if (path.lost) return jump(path, sent, false, {}, keep);
    Path to = path;
    std::optional<Place> only;  // the target of a direct branch
    const Walk& w = program_.walk(path.place());
    const bool base = paths_.histories.last_known(path.history);
    if (w.end != WalkEnd::waypoint && w.end != WalkEnd::no_memory) return;
    if (w.end == WalkEnd::waypoint) {
        to.check(w.last, 2);
        if (w.instruction.waypoint != isa::Waypoint::indirect)
            only = Place{w.instruction.target, w.instruction.target_isa};
        if (rules_.return_stack && w.instruction.link) to.stack = paths_.stacks.push({w.after, path.isa}, to.stack);
    } else {
        if (!base && !sent.whole) return;  // in unknown code from the beginning
        lose(to);                          // until the address
    }
    if (only && !base && !sent.whole) {
        if (!agrees(sent, *only)) return;
        arrive_at(to, *only);
        return keep(to);
    }
    jump(to, sent, false, only, keep);
}

void Search::jump(const Path& path, const SentPlace& sent, bool lost_there, const std::optional<Place>& only,
                  Keep& keep) {
    Path to = path;
    if (!is_known(path, sent)) paths_.keep_start(to);  // the address may mean several places
    complete_for(path, sent, [&](const Place& place) {
        if (only && *only != place) return;
        Path there = to;
        doubt(there);
        arrive_at(there, place);
        if (lost_there || place.isa == Isa::jazelle) lose(there);
        keep(there);
    });
}

void Search::take(const seen::Reached& o) {
    if (paths_.everywhere) return;
    paths_.go_on([&](const Path& path, Keep& keep) {
        if (path.fresh) return;  // it may name an instruction before the path's present place
        Path to = path;
        std::optional<Place> place;
        if (is_known(path, o.at)) place = complete(path, o.at);
        if (path.lost) {
            if (place && rules_.reached_is_base && paths_.histories.last_known(to.history)) name(to, *place);
            return keep(to);
        }
        reach(to, place, o.at, keep);
    });
}

/// Walks to the named instruction; no waypoint comes before it.
void Search::reach(Path to, const std::optional<Place>& place, const SentPlace& sent, Keep& keep) {
    Address at{to.current};
    for (std::uint64_t walked = 0; walked < longest_bytes;) {
        const auto i = program_.at({at, to.isa});
        if (!i) return leave(to, keep);
        if (place ? at == place->address : agrees(sent, {at, to.isa})) {
            Path there = to;
            there.check(at, 3);
            const Address after = i->waypoint != isa::Waypoint::none ? at : follow::advance(at, i->bytes, to.isa);
            if (rules_.reached_is_base || !paths_.histories.last_known(to.history)) arrive_at(there, {at, to.isa});
            there.current = after.value;
            keep(there);
            if (place) return;
        }
        if (i->waypoint != isa::Waypoint::none || i->undefined) return;
        at = follow::advance(at, i->bytes, to.isa);
        walked += i->bytes;
    }
}

// ---- synchronisation

void Search::take(const seen::Sync& o) {
    if (o.continues && !paths_.everywhere) {
        paths_.go_on([&](const Path& path, Keep& keep) {
            if (!path.lost && !path.fresh && path.place() != o.at) return;
            Path to = path;
            if (!path.lost) to.check(o.at.address, 3);
            arrive_at(to, o.at);
            to.stack = empty_stack;
            keep(to);
        });
        if (!paths_.all.empty()) return;
    }
    restart(o.at);
}

void Search::restart(const std::optional<Place>& at) {
    // Tracing was off, so the path before it has to be chosen separately.
    std::optional<Path> before = choose();
    const double sure = before ? paths_.odds.sure_of(*before, 1.0) : 0.0;
    const bool any = before && (before->start != none || before->past != none);
    if (any && sure >= least_confidence) {
        confidence_ = std::min(confidence_, sure);
        note(*before);
    } else {
        before.reset();
        confidence_ = 1.0;
    }
    paths_.everywhere = false;
    Path path = before.value_or(Path{});
    if (at) {
        arrive_at(path, *at);
    } else {
        path.lost = true;
        path.waits = path.fresh = false;
    }
    path.stack = empty_stack;
    path.forget_checks();
    if (at && path.start == none) {
        // The path begins here, at the synchronisation packet itself.
        path.forget_start();
        path.start = paths_.packet;
        path.start_current = path.current;
        path.start_isa = path.isa;
        path.start_history = path.history;
        path.start_stack = empty_stack;
    }
    paths_.all.assign(1, path);
    paths_.odds.places = fixed_bits_of_sync;
}

// ---- the end

std::optional<Path> Search::choose() {
    if (paths_.everywhere || paths_.all.empty()) return {};
    std::uint32_t most = 0;
    for (const Path& path : paths_.all) most = std::max(most, path.checks);
    std::erase_if(paths_.all, [&](const Path& path) { return path.checks + paths_.odds.margin() < most; });
    Path chosen = paths_.all.front();
    if (paths_.all.size() == 1) return chosen;
    for (const Path& path : paths_.all) chosen.checks = std::min(chosen.checks, path.checks);
    const Shared common = paths_.shared_past();
    chosen.past = common.past;
    chosen.cut = common.cut;
    chosen.start = none;
    chosen.kept = false;
    return chosen;
}

void Search::note(const Path& path) {
    const double places = paths_.odds.places;
    places_shown_ = std::max(places_shown_, places < 1 ? 1 : static_cast<std::uint64_t>(places));
    checks_shown_ += path.checks;
}

void Search::arrive(const seen::Sync& o, std::uint32_t last) {
    if (paths_.everywhere) return;
    paths_.packet = last;
    if (o.continues)
        paths_.go_on([&](const Path& path, Keep& keep) {
            if (path.lost || path.waits || (!path.fresh && path.place() == o.at)) keep(path);
        });
    left_ = paths_.all.size();
    chosen_ = choose();
    if (!chosen_) return;
    confirmed_ = o.continues && chosen_->start != none && !chosen_->lost && !chosen_->waits;
    const double places = paths_.odds.places;
    confidence_ = std::min(confidence_, paths_.odds.sure_of(*chosen_, confirmed_ && places > 1 ? 1.0 / places : 1.0));
    note(*chosen_);
}

}  // namespace waymark::follow::head
