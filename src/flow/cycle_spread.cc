#include "waymark/flow/cycle_spread.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

namespace waymark::flow {

namespace {

/// Whether it is unknown after this event how much ran since the last range.
bool loses_flow(const What& what) {
    if (const auto* gap = std::get_if<Gap>(&what)) return gap->reason != GapReason::padding;
    if (const auto* on = std::get_if<TraceOn>(&what))
        return on->reason != TraceOnReason::enabled && on->reason != TraceOnReason::debug_restart;
    if (const auto* conflict = std::get_if<Inconsistency>(&what))
        return concerns_flow(conflict->conflict) && conflict->conflict != Conflict::branch_disagrees;
    if (const auto* untraced = std::get_if<Untraced>(&what)) return untraced->instructions == 0;
    if (const auto* mark = std::get_if<Mark>(&what)) return mark->kind == Mark::Kind::uncommitted;
    return std::holds_alternative<NoMemory>(what) || std::holds_alternative<Atoms>(what) ||
           std::holds_alternative<Reached>(what);
}

bool counts_flow(const What& what) {
    const auto* cycles = std::get_if<Cycles>(&what);
    return cycles != nullptr && cycles->of == Cycles::Of::flow;
}

/// Splits a number in proportion to weights: each part is rounded, and the parts add up to the number.
class Parts {
public:
    Parts(std::uint32_t number, std::uint64_t weights) : number_(number), weights_(weights) {}
    std::uint32_t next(std::uint64_t weight) {
        const std::uint32_t part = weight >= weights_  ? number_
                                   : weight >> 32 == 0 ? static_cast<std::uint32_t>(number_ * weight / weights_)
                                                       : static_cast<std::uint32_t>(number_ / (weights_ / weight));
        number_ -= part;
        weights_ -= std::min(weight, weights_);
        return part;
    }

private:
    std::uint32_t number_;
    std::uint64_t weights_;
};

/// The ranges of neighbouring batches need one common base.
constexpr std::uint64_t farthest = std::uint64_t{1} << 31;

}  // namespace

void CycleSpread::consume(const Batch& batch) {
    blocks_ = batch.blocks;
    if (!waiting_.ranges.empty() && batch.base.value - waiting_.base.value > farthest) release();
    if (in_head_) return keep_head(batch);
    take(batch, 0, 0);
}

Split CycleSpread::split() const {
    // A worker's own sink would not know the flow between its pieces.
    const Split split = next_->split();
    return split == Split::per_worker ? Split::none : split;
}

std::unique_ptr<Sink> CycleSpread::fork() const { return std::unique_ptr<Sink>(new CycleSpread(next_->fork())); }

void CycleSpread::join(Sink& sink) {
    auto& fork = static_cast<CycleSpread&>(sink);
    const Elements& first = fork.in_head_ ? fork.waiting_ : fork.head_;
    if (!fork.blocks_.empty()) consume({fork.blocks_, first.base, first.ranges, first.events});
    if (fork.in_head_) return;
    if (fork.head_given_up_) release();
    next_->join(*fork.next_);
    waiting_ = std::move(fork.waiting_);
    window_ = std::move(fork.window_);
}

void CycleSpread::release() {
    if (std::exchange(in_head_, false)) {
        head_given_up_ = true;
        next_->begin_at(begun_in_);
    }
    if (!waiting_.ranges.empty() || !window_.holes.empty()) window_.lost = true;
    pass_on(waiting_.ranges.size(), waiting_.events.size());
}

std::optional<Offset> CycleSpread::first() const {
    std::optional<Offset> first;
    if (!waiting_.ranges.empty()) first = waiting_.base + waiting_.ranges.front().offset;
    for (const Event& event : waiting_.events) first = first ? std::min(*first, event.offset) : event.offset;
    return first;
}

/// Stores a fork's elements before its first count.
void CycleSpread::keep_head(const Batch& batch) {
    const auto counts = std::find_if(batch.events.begin(), batch.events.end(),
                                     [](const Event& event) { return counts_flow(event.what); });
    const bool ends = counts != batch.events.end();
    const auto events = static_cast<std::size_t>(counts - batch.events.begin()) + (ends ? 1 : 0);
    const std::size_t ranges = ends ? counts->before : batch.ranges.size();
    for (const Event& event : batch.events.first(events))
        if (const auto* context = std::get_if<Context>(&event.what)) context_ = *context;
    append({batch.blocks, batch.base, batch.ranges.first(ranges), batch.events.first(events)});
    if (!ends) {
        if (waiting_.ranges.size() > most_ranges) release();
        return;
    }
    in_head_ = false;
    head_ = std::exchange(waiting_, {});
    next_->begin_at(context_);
    take(batch, ranges, events);
}

void CycleSpread::append(const Batch& batch) {
    if (waiting_.ranges.empty()) waiting_.base = batch.base;
    const std::size_t before = waiting_.ranges.size();
    waiting_.ranges.insert(waiting_.ranges.end(), batch.ranges.begin(), batch.ranges.end());
    if (const auto moved = static_cast<std::uint32_t>(batch.base.value - waiting_.base.value); moved != 0)
        for (std::size_t i = before; i < waiting_.ranges.size(); ++i) waiting_.ranges[i].offset += moved;
    for (const Event& event : batch.events) {
        waiting_.events.push_back(event);
        waiting_.events.back().before += static_cast<std::uint32_t>(before);
    }
}

/// Takes the part of a batch from these indices on.
void CycleSpread::take(const Batch& batch, std::size_t from_range, std::size_t from_event) {
    std::size_t event = waiting_.events.size(), counted = 0;
    append({batch.blocks, batch.base, batch.ranges.subspan(from_range), batch.events.subspan(from_event)});
    if (from_range != 0)
        for (std::size_t i = event; i < waiting_.events.size(); ++i)
            waiting_.events[i].before -= static_cast<std::uint32_t>(from_range);
    for (; event < waiting_.events.size(); ++event) {
        const What& what = waiting_.events[event].what;
        if (counts_flow(what)) {
            event = count(event);
            counted = event + 1;
        } else if (loses_flow(what)) {
            window_.lost = true;
        } else if (std::holds_alternative<TraceOn>(what)) {
            window_.off = true;
        } else if (std::holds_alternative<Untraced>(what)) {
            window_.holes.push_back(event);
        }
    }
    if (counted != 0) pass_on(window_.begin, counted);
    if (waiting_.ranges.size() - window_.begin + window_.passed > most_ranges) release();
}

/// A window ends. Returns the index of its count, before which an event may have been added.
std::size_t CycleSpread::count(std::size_t event) {
    const std::size_t end = waiting_.events[event].before;
    const auto cycles = std::get<Cycles>(waiting_.events[event].what).cycles;
    if (cycles) {
        const bool known = !window_.lost && end - window_.begin + window_.passed <= most_ranges;
        const std::optional<std::size_t> added = known ? spread(end, *cycles) : std::nullopt;
        event += added.value_or(0);
        auto& count = std::get<Cycles>(waiting_.events[event].what);
        count.of = added ? Cycles::Of::ranges : Cycles::Of::unknown;
        if (added) {
            count.several = end - window_.begin > 1;
            count.off = window_.off;
        }
    }
    window_ = {};
    window_.begin = end;
    return event;
}

/// Returns the number of events that it added; nullopt, without effect, if it is not known what ran.
std::optional<std::size_t> CycleSpread::spread(std::size_t end, std::uint32_t cycles) {
    std::uint64_t instructions = 0;
    for (std::size_t i = window_.begin; i < end; ++i) instructions += instructions_of(waiting_.ranges[i]);
    for (const std::size_t hole : window_.holes)
        instructions += std::get<Untraced>(waiting_.events[hole].what).instructions;
    if (instructions == 0) return std::nullopt;
    Parts parts(cycles, instructions);
    std::size_t at = window_.begin, added = 0;
    const auto spread_to = [&](std::size_t last) {
        for (; at < last; ++at) waiting_.ranges[at].cycles = parts.next(instructions_of(waiting_.ranges[at]));
    };
    for (const std::size_t hole : window_.holes) {
        const Event untraced = waiting_.events[hole + added];
        spread_to(untraced.before);
        const std::uint32_t unseen = parts.next(std::get<Untraced>(untraced.what).instructions);
        ++added;
        waiting_.events.insert(waiting_.events.begin() + static_cast<std::ptrdiff_t>(hole + added),
                               Event{untraced.before, untraced.offset, Cycles{.cycles = unseen}});
    }
    spread_to(end);
    return added;
}

std::uint64_t CycleSpread::instructions_of(const Range& range) const {
    return std::uint64_t{blocks_[range.block()].instructions} * range.times;
}

void CycleSpread::pass_on(std::size_t ranges, std::size_t events) {
    if (ranges == 0 && events == 0) return;
    next_->consume({blocks_, waiting_.base, std::span<const Range>(waiting_.ranges).first(ranges),
                    std::span<const Event>(waiting_.events).first(events)});
    waiting_.ranges.erase(waiting_.ranges.begin(), waiting_.ranges.begin() + static_cast<std::ptrdiff_t>(ranges));
    waiting_.events.erase(waiting_.events.begin(), waiting_.events.begin() + static_cast<std::ptrdiff_t>(events));
    for (Event& event : waiting_.events) event.before -= static_cast<std::uint32_t>(ranges);
    const std::size_t of_others = std::min(ranges, window_.begin);
    window_.begin -= of_others;
    window_.passed += ranges - of_others;
    // Holes that were passed on belong to a window that is abandoned.
    std::erase_if(window_.holes, [&](std::size_t hole) { return hole < events; });
    for (std::size_t& hole : window_.holes) hole -= events;
}

}  // namespace waymark::flow
