#include "waymark/analysis/flow_calls.h"

#include <type_traits>
#include <utility>

#include "waymark/flow/breaks_flow.h"

namespace waymark::analysis {

FlowCalls::FlowCalls(FlowCode& code, bool open, const Limits& limits)
    : code_(code), open_(open), stacks_(code, open, limits) {
    loss_.how = Loss::From::unknown;
}

void FlowCalls::consume(const flow::Batch& batch, FlowCounts& counts) {
    counts.reach(code_, batch.blocks);
    stacks_.count_in(counts);
    std::size_t at = 0;
    const bool step_by_step = !stacks_.remembers_repeats();
    const flow::Repeat* next = batch.repeats.data();
    const flow::Repeat* const end = step_by_step ? next : next + batch.repeats.size();
    const auto up_to = [&](std::size_t to) {
        while (next != end && next->first < to) {
            ranges(batch, at, next->first, counts);
            const flow::Repeat* const first = next;
            for (at = next->first; next != end && next->first == at && at < to; ++next) at += next->count;
            repeat(batch, {first, next}, counts);
        }
        ranges(batch, at, to, counts);
        at = to;
    };
    const auto take = [&](const flow::Event& e) {
        if (CallObserver* const observer = stacks_.observer()) observer->happened(now(), e);
        event(e.what, counts);
    };
    for (const flow::Event& e : batch.events) {
        up_to(e.before);
        if (const auto* exception = std::get_if<flow::Exception>(&e.what)) {
            flow::Event named = e;
            std::get<flow::Exception>(named.what).type = &code_.type_of(*exception);
            take(named);
        } else {
            take(e);
        }
    }
    up_to(batch.ranges.size());
    flush();
}

/// Handles repeats in order: known ones in one step each, others step by step.
void FlowCalls::repeat(const flow::Batch& batch, std::span<const flow::Repeat> repeats, FlowCounts& counts) {
    while (!repeats.empty()) {
        std::uint32_t behind = no_edge;
        if (!plain_) {
            if (is_ordinary() && wait_edge_ != no_edge && wait_ == wait_of(counts.known.edges[wait_edge_].effect))
                behind = wait_edge_;
            else
                arrive(counts.known.places[batch.ranges[repeats.front().first].block()], counts);
        }
        flush();
        if (const std::size_t done = stacks_.repeat(repeats, behind, counts); done != 0) {
            const flow::Repeat& last = repeats[done - 1];
            last_edge_ = batch.ranges[last.first + last.count - 1].edge;
            plain_ = behind == no_edge;
            wait_ = Wait::no;
            if (!plain_) wait_behind(behind, counts.known.edges[behind].effect, counts.known.blocks[behind / 2]);
            repeats = repeats.subspan(done);
            if (repeats.empty()) return;
        }
        const flow::Repeat& unknown = repeats.front();
        ranges(batch, unknown.first, unknown.first + unknown.count, counts);
        repeats = repeats.subspan(1);
        if (!stacks_.is_watching()) continue;
        flush();
        stacks_.remember(batch.ranges.subspan(unknown.first, unknown.count), plain_ ? no_edge : wait_edge_, counts);
    }
}

void FlowCalls::ranges(const flow::Batch& batch, std::size_t from, std::size_t to, FlowCounts& counts) {
    if (from == to) return;
    const FlowCode::Edge* const edges = counts.known.edges.data();
    std::uint64_t* const times = counts.times.data();
    Work run = run_;
    bool plain = plain_;
    for (std::size_t i = from; i < to; ++i) {
        const flow::Range& range = batch.ranges[i];
        if (!plain) [[unlikely]] {
            run_ = run;
            arrive(counts.known.places[range.block()], counts);
            run = run_;
            plain = true;
        }
        const FlowCode::Edge edge = edges[range.edge];
        times[range.edge] += range.times;
        run.instructions += std::uint64_t{edge.instructions} * range.times;
        if (range.cycles != flow::no_cycles) {
            run.cycles += range.cycles;
            counts.block_cycles[range.block()] += range.cycles;
        }
        if (edge.effect != Effect::stays) [[unlikely]] {
            if (edge.crosses) {
                run_ = run;
                cross(range, counts);
                run = run_;
            }
            wait_behind(range.edge, edge.effect, counts.known.blocks[range.block()]);
            plain = false;
        }
    }
    last_edge_ = batch.ranges[to - 1].edge;
    plain_ = plain;
    run_ = run;
}

/// Divides a block that just ran among its functions; cycles are divided by instructions. A function that execution
/// enters without a branch counts as entered by a jump.
void FlowCalls::cross(const flow::Range& range, FlowCounts& counts) {
    const std::uint64_t all = counts.known.edges[range.edge].instructions;
    const std::uint64_t cycles = range.cycles == flow::no_cycles ? 0 : range.cycles;
    const auto up_to = [&](std::uint64_t instructions) {
        return Work{instructions * range.times, cycles * instructions / all};
    };
    Work done;
    run_ = run_ - up_to(all);
    for (const FlowCode::Crossing& crossing : counts.known.crossings_of(range.block())) {
        const Work now = up_to(crossing.instructions);
        run_ += now - done;
        done = now;
        flush();
        wait_edge_ = no_edge;
        arrive_behind(Wait::leaves, crossing.place, counts);
    }
    run_ += up_to(all) - done;
}

void FlowCalls::wait_behind(std::uint32_t edge, Effect effect, const flow::Block& block) {
    wait_edge_ = edge;
    indirect_ = block.end == flow::End::indirect;
    const std::uint64_t after = block.start + block.bytes;
    wait_return_ = after;
    wait_to_ = indirect_ ? nothing : (edge & 1U) == 0 || block.end == flow::End::not_a_waypoint ? after : block.target;
    wait_ = wait_of(effect);
}

FlowCalls::Wait FlowCalls::wait_of(Effect effect) {
    // Both enumerations have the same order.
    static_assert(static_cast<int>(Wait::call) == static_cast<int>(Effect::call) &&
                  static_cast<int>(Wait::function_return) == static_cast<int>(Effect::function_return) &&
                  static_cast<int>(Wait::exception_return) == static_cast<int>(Effect::exception_return) &&
                  static_cast<int>(Wait::jump) == static_cast<int>(Effect::jump) &&
                  static_cast<int>(Wait::leaves) == static_cast<int>(Effect::leaves));
    return static_cast<Wait>(effect);
}

void FlowCalls::event(const flow::What& what, FlowCounts& counts) {
    if (open_ && !first_) {
        early_.push_back(what);
        if (const auto* context = std::get_if<flow::Context>(&what)) begin_at(*context);
        return;
    }
    std::visit(
        [&](const auto& e) {
            using T = std::decay_t<decltype(e)>;
            if constexpr (std::is_same_v<T, Gap>) {
                lose(e.reason == GapReason::stopped, counts);
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                const bool enabled = e.reason == flow::TraceOnReason::enabled;
                lose(enabled, counts, enabled && wait_ != Wait::vector && wait_ != Wait::exception_return);
                if (e.cycles != flow::no_cycles) add_stray_cycles(e.cycles, counts);
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                lose(true, counts);
            } else if constexpr (std::is_same_v<T, flow::Inconsistency>) {
                if (flow::breaks_flow(what))
                    lose(false, counts);
                else if (flow::concerns_flow(e.conflict))
                    go_on_anywhere();
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                change_context(e, counts);
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                if (!e.counted_again) add_event_cycles(e.cycles, counts);
            } else if constexpr (std::is_same_v<T, flow::Exception>) {
                exception(e, counts);
            } else if constexpr (std::is_same_v<T, flow::ExceptionReturn>) {
                // The trace of this implementation shows the kind of a branch that its opcode does not show.
                if (wait_ == Wait::jump || wait_ == Wait::function_return) wait_ = Wait::exception_return;
            } else if constexpr (std::is_same_v<T, flow::Cycles>) {
                if (e.of != flow::Cycles::Of::ranges) add_stray_cycles(e.cycles.value_or(0), counts);
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                lose(false, counts);
                counts.lost({.how = e.from_known ? Loss::From::place : Loss::From::unknown,
                             .from = e.from.value,
                             .to = e.to.value,
                             .regained = true});
                stacks_.add_stray({e.instructions, 0});
                counts.unseen_instructions += e.instructions;
            } else if constexpr (std::is_same_v<T, flow::Atoms>) {
                // Without a known image, the flow was lost before.
                if (!lost_) lose(false, counts);
            } else if constexpr (std::is_same_v<T, flow::Mark>) {
                if (e.kind == flow::Mark::Kind::transaction_failed) go_on_anywhere();
                if (flow::breaks_flow(what) && !lost_) {
                    lose(false, counts);
                    counts.lost(loss_);
                }
            } else {
                static_assert(std::is_same_v<T, flow::Trigger> || std::is_same_v<T, flow::Reached>);
            }
        },
        what);
}

/// Cycles up to an event belong to the code before the event, if that code is known.
void FlowCalls::add_event_cycles(std::uint32_t cycles, FlowCounts& counts) {
    if (cycles == flow::no_cycles) return;
    if (lost_ || switched_stack_) return add_stray_cycles(cycles, counts);
    run_.cycles += cycles;
    // The cycles of a block that an exception cut short come with the exception.
    if (last_edge_ != no_edge) counts.block_cycles[last_edge_ / 2] += cycles;
}

void FlowCalls::add_stray_cycles(std::uint64_t cycles, FlowCounts& counts) {
    counts.cycles += cycles;
    stacks_.add_stray({0, cycles});
}

void FlowCalls::exception(const flow::Exception& e, FlowCounts& counts) {
    add_event_cycles(e.cycles, counts);
    bool falls = false;
    fell_ = false;
    if (e.preferred_return) {
        // After a branch, before the first instruction of its target, the effect of the branch is not applied yet. If
        // no branch led into the next function, as after a system call, that function is entered only if flow returns
        // there.
        falls = is_ordinary() && falls_on(counts) && wait_to_ == e.preferred_return->value;
        if (!plain_ && !falls) arrive(code_.place(e.preferred_return->value), counts);
    } else if (lost_) {
        counts.lost(loss_);
    } else if (is_chained(e)) {
        flush();
        stacks_.go({Go::chained, {}, {}}, counts);
    } else {
        flush();
        end_wait(false, counts);
    }
    flush();
    interrupted_at_ = e.preferred_return ? e.preferred_return->value : nothing;
    stacks_.interrupt(*e.type, interrupted_at_, falls, counts);
    plain_ = lost_ = switched_off_ = switched_stack_ = false;
    last_edge_ = wait_edge_ = no_edge;
    indirect_ = false;
    // Without a vector, as in ETMv4, the handler is the place where flow continues. If the handler is not traced, an
    // event says so.
    wait_ = Wait::vector;
    wait_to_ = e.vector ? e.vector->value : nothing;
    if (e.type->kind == flow::ExceptionClass::debug_halt) lose(false, counts);  // nothing executes
}

/// Whether the exception replaces the return of the one before (tail-chaining). A return to a known place gives that
/// place as the preferred return address. An ETMv3 then withdraws what makes a branch an exception return.
bool FlowCalls::is_chained(const flow::Exception& e) const {
    using enum flow::ExceptionClass;
    if (wait_ == Wait::exception_return) return true;
    const flow::ExceptionClass kind = e.type->kind;
    const bool of_m_profile = kind == nmi || kind == external_interrupt || (kind >= hard_fault && kind <= lockup);
    return of_m_profile && indirect_ && (wait_ == Wait::function_return || wait_ == Wait::jump);
}

/// Applies the known effect of the last branch, without the flow that followed it, and records where a loss would
/// begin. If a handler was lost or is not traced, only its exception is known.
FlowCalls::Wait FlowCalls::end_wait(bool lost, FlowCounts& counts) {
    loss_ = {};
    fell_ = false;
    const bool falls = falls_on(counts);
    const Wait wait = std::exchange(wait_, Wait::no);
    loss_.handler = lost && wait == Wait::vector;
    if (wait != Wait::no && wait_to_ != nothing) {
        loss_.how = Loss::From::place;
        loss_.from = wait_to_;
        fell_ = lost && falls;
        if (wait == Wait::call || (wait == Wait::leaves && !fell_) || (wait == Wait::vector && !lost))
            arrive_behind(wait, code_.place(wait_to_), counts);
    } else if (wait == Wait::function_return) {
        stacks_.go({Go::leave, {}, {}}, counts);
    } else if (wait == Wait::jump && wait_edge_ != no_edge) {
        loss_.how = Loss::From::function;
        loss_.from = counts.known.places[wait_edge_ / 2].address;
    }
    return wait;
}

/// `amid`: the unit was switched off, and nothing in the flow before explains it.
void FlowCalls::lose(bool switched_off, FlowCounts& counts, bool amid) {
    if (lost_) {
        switched_off_ = (switched_off_ || untouched_) && switched_off;
        untouched_ = false;
        return;
    }
    flush();
    const Wait wait = end_wait(true, counts);
    if (wait == Wait::no && last_edge_ != no_edge) {
        const flow::Block& last = counts.known.blocks[last_edge_ / 2];
        loss_.how = Loss::From::place;
        loss_.from = (last_edge_ & 1U) != 0 && last.end == flow::End::direct ? last.target : last.start + last.bytes;
    }
    loss_.off = amid && !switched_stack_;
    plain_ = false;
    lost_ = true;
    switched_off_ = switched_off;
    last_edge_ = no_edge;
}

/// Flow continues at the address in the trace, although the image contradicts it.
void FlowCalls::go_on_anywhere() {
    if (!plain_) return;
    plain_ = false;
    wait_ = Wait::leaves;
    wait_to_ = nothing;
    wait_edge_ = no_edge;
    indirect_ = false;
}

void FlowCalls::change_context(const flow::Context& context, FlowCounts& counts) {
    levels_.change(context, now());
    const StackKey key{context.context_id, context.vmid};
    if (key == stacks_.key()) return;
    flush();
    // The context changes inside a function: the branch that led there happened before the change.
    if (!lost_) end_wait(false, counts);
    stacks_.use(key);
    fell_ = loss_.off = false;  // another thread continues
    plain_ = false;
    switched_stack_ = true;
    stacks_.report_frames();
}

void FlowCalls::arrive(const Arrival& place, FlowCounts& counts) {
    plain_ = true;
    if (!is_ordinary()) [[unlikely]]
        return arrive_anew(place, counts);
    flush();
    arrive_behind(take_wait(place, counts), place, counts);
}

/// Returns the effect of the last branch, given that flow arrived at `place`.
FlowCalls::Wait FlowCalls::take_wait(const Arrival& place, FlowCounts& counts) {
    if (wait_ != Wait::no && indirect_) {
        if (WaySum* way = counts.way(wait_edge_, place.address)) ++way->times;
        stacks_.watch_way(wait_edge_, place.address);
    }
    return std::exchange(wait_, Wait::no);
}

/// Flow arrives after a loss, after another stack or another source ran, or for the first time.
void FlowCalls::arrive_anew(const Arrival& place, FlowCounts& counts) {
    if (open_ && !first_) {
        first_ = place;
        lost_ = untouched_ = false;
        stacks_.keep({Go::begin, place, {}});
        return;
    }
    flush();
    const Wait wait = take_wait(place, counts);
    untouched_ = false;
    const bool lost = std::exchange(lost_, false), off = std::exchange(switched_off_, false);
    const bool switched = std::exchange(switched_stack_, false);
    const bool handed_over = std::exchange(handed_over_, false);
    if (lost) {
        loss_.to = place.address;
        loss_.regained = true;
        loss_.begins = place.begins;
        // If trace was lost in a handler, the interrupted code may have continued unseen.
        if (std::exchange(loss_.handler, loss_.handler && off) && !off && interrupted_at_ != nothing)
            counts.lost({.how = Loss::From::place, .from = interrupted_at_, .to = loss_.to, .regained = true});
        if (CallObserver* const observer = stacks_.observer()) observer->regained(now());
        // If the previous source ended with a call, this source begins in the called function. If flow continues at the
        // expected address, nothing ran in between.
        if (std::exchange(fell_, false) && loss_.from == place.address) arrive_behind(Wait::leaves, place, counts);
        const bool goes_on = handed_over || (loss_.how == Loss::From::place && loss_.from == place.address);
        stacks_.go({off && place.begins ? Go::enter : Go::resume, place, loss_, no_edge, goes_on}, counts);
    } else if (switched) {
        stacks_.go({Go::take_up, place, {}}, counts);
    } else {
        arrive_behind(wait, place, counts);
    }
}

void FlowCalls::arrive_behind(Wait wait, const Arrival& place, FlowCounts& counts) {
    const bool named = place.entry == place.home;
    switch (wait) {
        case Wait::no: break;
        case Wait::call: stacks_.call(place, wait_return_, wait_edge_); break;
        case Wait::vector: stacks_.call(place, nothing, no_edge); break;
        case Wait::exception_return: stacks_.go({Go::exception_return, place, {}}, counts); break;
        case Wait::function_return:
            // No return leads to the beginning of a function: a handler is entered that way, or a call was made by
            // hand.
            if (!place.begins) {
                if (!stacks_.returns(place, counts)) stacks_.go({Go::function_return, place, {}}, counts);
                break;
            }
            [[fallthrough]];
        case Wait::jump:
        case Wait::leaves:
            if (stacks_.is_in(place.home)) break;
            stacks_.go({wait == Wait::jump && named && !place.begins ? Go::jump : Go::tail,
                        place,
                        {},
                        wait == Wait::function_return ? no_edge : taken_edge(counts)},
                       counts);
            break;
    }
}

/// The code behind the last block is in another function, and no branch leads there.
bool FlowCalls::falls_on(const FlowCounts& counts) const {
    return wait_ == Wait::leaves && wait_edge_ != no_edge && taken_edge(counts) == no_edge;
}

/// The edge of the last branch, if there was a taken branch.
std::uint32_t FlowCalls::taken_edge(const FlowCounts& counts) const {
    if (wait_edge_ == no_edge || (wait_edge_ & 1U) == 0) return no_edge;
    const flow::End end = counts.known.blocks[wait_edge_ / 2].end;
    return end == flow::End::direct || end == flow::End::indirect ? wait_edge_ : no_edge;
}

void FlowCalls::flush() {
    if ((run_.instructions | run_.cycles) == 0) return;
    stacks_.run(run_);
    run_ = {};
}

// ---- parts

void FlowCalls::join(FlowCalls& fork, FlowCounts& counts) {
    counts.reach(code_);
    stacks_.count_in(counts);
    flush();
    for (const flow::What& what : fork.early_) event(what, counts);
    if (!fork.first_) return;
    arrive(*fork.first_, counts);
    levels_.close(now());
    fork.levels_.close(fork.now());
    stacks_.join(fork.stacks_, counts);
    levels_.join(fork.levels_, now());
    plain_ = fork.plain_;
    wait_ = fork.wait_;
    wait_edge_ = fork.wait_edge_;
    wait_return_ = fork.wait_return_;
    wait_to_ = fork.wait_to_;
    indirect_ = fork.indirect_;
    lost_ = fork.lost_;
    switched_off_ = fork.switched_off_;
    switched_stack_ = fork.switched_stack_;
    loss_ = fork.loss_;
    fell_ = fork.fell_;
    interrupted_at_ = fork.interrupted_at_;
    last_edge_ = fork.last_edge_;
}

void FlowCalls::finish(FlowCounts& counts) {
    stacks_.count_in(counts);
    flush();
    levels_.close(now());
    if (!lost_) lose(false, counts);
    if (loss_.how == Loss::From::place) counts.ends.push_back(loss_.from);
    stacks_.finish(counts);
}

void FlowCalls::hand_over(FlowCalls& next, FlowCounts& counts) {
    stacks_.count_in(counts);
    flush();
    levels_.close(now());
    if (!lost_) lose(true, counts);
    stacks_.hand_over(next.stacks_, counts);
    next.loss_ = std::exchange(loss_, {});
    next.fell_ = fell_;
    next.interrupted_at_ = interrupted_at_;
    next.switched_off_ = switched_off_;
    next.handed_over_ = true;
    next.untouched_ = untouched_;
}

// ---- a part alone

std::optional<KeptCalls> FlowCalls::keep(const FlowCounts& counts) {
    if (!plain_ || !is_ordinary()) return {};
    flush();
    KeptCalls out{.stacks = stacks_.keep()};
    if (last_edge_ != no_edge) {
        out.last = counts.known.blocks[last_edge_ / 2];
        out.taken = (last_edge_ & 1U) != 0;
    }
    return out;
}

void FlowCalls::begin_from(const KeptCalls& kept, std::optional<std::uint32_t> last, const flow::Context& context,
                           FlowCounts& counts) {
    stacks_.count_in(counts);
    stacks_.take_up(kept.stacks);
    levels_.begin(context, now());
    plain_ = true;
    lost_ = untouched_ = false;
    if (last) last_edge_ = *last * 2 + (kept.taken ? 1 : 0);
    stacks_.report_first_frames();
}

void FlowCalls::count_anew(const flow::Context& context, FlowCounts& counts) {
    flush();
    stacks_.take_up(stacks_.keep());
    counts.count_anew();
    levels_ = {};
    levels_.begin(context, now());
}

}  // namespace waymark::analysis
