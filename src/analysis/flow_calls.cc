#include "waymark/analysis/flow_calls.h"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace waymark::analysis {

FlowCalls::FlowCalls(FlowCode& code, bool open, Limits limits) : code_(code), open_(open), limits_(limits) {
    loss_.how = Loss::From::unknown;
}

// ---- what comes

void FlowCalls::consume(const flow::Batch& batch, FlowCounts& counts) {
    counts.reach(code_, batch.blocks);
    std::size_t at = 0;
    for (const flow::Event& e : batch.events) {
        ranges(batch, at, e.before, counts);
        at = e.before;
        if (observer_ != nullptr) observer_->happened(now(), e);
        event(e.what, counts);
    }
    ranges(batch, at, batch.ranges.size(), counts);
    flush();
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
            wait_behind(range.edge, edge.effect, counts.known.blocks[range.block()]);
            plain = false;
        }
    }
    last_edge_ = batch.ranges[to - 1].edge;
    plain_ = plain;
    run_ = run;
}

void FlowCalls::wait_behind(std::uint32_t edge, Effect effect, const flow::Block& block) {
    wait_edge_ = edge;
    indirect_ = block.end == flow::End::indirect;
    const std::uint64_t after = block.start + block.bytes;
    wait_return_ = after;
    wait_to_ = indirect_ ? nothing : (edge & 1U) == 0 || block.end == flow::End::not_a_waypoint ? after : block.target;
    switch (effect) {
        case Effect::call: wait_ = Wait::call; break;
        case Effect::function_return: wait_ = Wait::function_return; break;
        case Effect::exception_return: wait_ = Wait::exception_return; break;
        case Effect::jump: wait_ = Wait::jump; break;
        case Effect::leaves: wait_ = Wait::leaves; break;
        case Effect::stays: wait_ = Wait::no; break;
    }
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
                lose(false, counts);
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                lose(e.reason == flow::TraceOnReason::enabled, counts);
                add_stray_cycles(e.cycles, counts);
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                lose(true, counts);
            } else if constexpr (std::is_same_v<T, flow::Inconsistency>) {
                if (e.conflict == flow::Conflict::no_return_address ||
                    e.conflict == flow::Conflict::undefined_reached || e.conflict == flow::Conflict::runaway_walk ||
                    e.conflict == flow::Conflict::sync_disagrees)
                    lose(false, counts);
                else if (e.conflict != flow::Conflict::vmid_missing)
                    go_on_anywhere();
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                change_context(e, counts);
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                add_event_cycles(e.cycles, counts);
            } else if constexpr (std::is_same_v<T, flow::Exception>) {
                exception(e, counts);
            } else if constexpr (std::is_same_v<T, flow::ExceptionReturn>) {
                // What an implementation says of a branch that its opcode does not.
                if (wait_ == Wait::jump || wait_ == Wait::function_return) wait_ = Wait::exception_return;
            } else if constexpr (std::is_same_v<T, flow::Cycles>) {
                if (!e.of_flow) return add_stray_cycles(e.cycles, counts);
                add_event_cycles(e.cycles, counts);
                if (last_edge_ != no_edge) counts.block_cycles[last_edge_ / 2] += e.cycles;
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                go_on_anywhere();
            } else if constexpr (std::is_same_v<T, flow::Mark>) {
                if (e.kind == flow::Mark::Kind::transaction_failed) go_on_anywhere();
            } else {
                static_assert(std::is_same_v<T, flow::Trigger> || std::is_same_v<T, flow::Atoms> ||
                              std::is_same_v<T, flow::Reached>);
            }
        },
        what);
}

/// Cycles up to an event are those of the code before it, where that is known.
void FlowCalls::add_event_cycles(std::uint32_t cycles, FlowCounts& counts) {
    if (lost_ || switched_stack_)
        add_stray_cycles(cycles, counts);
    else if (cycles != flow::no_cycles)
        run_.cycles += cycles;
}

void FlowCalls::add_stray_cycles(std::uint32_t cycles, FlowCounts& counts) {
    if (cycles == flow::no_cycles) return;
    counts.cycles += cycles;
    stray_.cycles += cycles;
}

void FlowCalls::exception(const flow::Exception& e, FlowCounts& counts) {
    add_event_cycles(e.cycles, counts);
    if (e.preferred_return) {
        // Right after a branch, before the first instruction there, what the branch did is done all the same.
        if (!plain_) arrive(code_.place(e.preferred_return->value), counts);
    } else if (lost_) {
        counts.lost(loss_);
    } else {
        flush();
        end_wait(false, counts);
    }
    flush();
    Stack& stack = current();
    if (stack.empty()) {
        if (open_)
            keep({Go::begin, {}, {}});
        else
            stack.frames.push_back({.node = stack.root, .caller = stack.root});
    }
    ExceptionSum& sum = counts.exceptions[*e.type];
    ++sum.times;
    if (stack.interrupts != 0)
        ++sum.nested;
    else if (open_)
        ++stack.segments.back().first_exceptions[{stack.segments.back().peak, *e.type}];
    const FunctionId id = code_.exception(*e.type);
    push({.waits_for = e.preferred_return ? e.preferred_return->value : nothing,
          .function = id,
          .exception = e.type,
          .at = stack.clock},
         id);
    plain_ = lost_ = switched_off_ = switched_stack_ = false;
    last_edge_ = wait_edge_ = no_edge;
    indirect_ = false;
    // Without a vector, as in ETMv4, the handler is where flow goes on; if none of it is traced, an event says so.
    wait_ = Wait::vector;
    wait_to_ = e.vector ? e.vector->value : nothing;
    if (e.type->kind == flow::ExceptionClass::debug_halt) lose(false, counts);  // nothing executes
}

/// What is known of the last branch happens, though not what came after it. Sets where a loss would begin. Of a
/// handler that was lost, or is not traced, the exception is all there is.
FlowCalls::Wait FlowCalls::end_wait(bool lost, FlowCounts& counts) {
    loss_ = {};
    const Wait wait = std::exchange(wait_, Wait::no);
    if (wait != Wait::no && wait_to_ != nothing) {
        loss_.how = Loss::From::place;
        loss_.from = wait_to_;
        if (wait == Wait::call || wait == Wait::leaves || (wait == Wait::vector && !lost))
            arrive_behind(wait, code_.place(wait_to_), counts);
    } else if (wait == Wait::function_return) {
        go({Go::leave, {}, {}}, counts);
    } else if (wait == Wait::jump && wait_edge_ != no_edge) {
        loss_.how = Loss::From::function;
        loss_.from = counts.known.places[wait_edge_ / 2].address;
    }
    return wait;
}

void FlowCalls::lose(bool switched_off, FlowCounts& counts) {
    if (lost_) {
        switched_off_ = switched_off_ && switched_off;
        return;
    }
    flush();
    const Wait wait = end_wait(true, counts);
    if (wait == Wait::no && last_edge_ != no_edge) {
        const flow::Block& last = counts.known.blocks[last_edge_ / 2];
        loss_.how = Loss::From::place;
        loss_.from = (last_edge_ & 1U) != 0 && last.end == flow::End::direct ? last.target : last.start + last.bytes;
    }
    plain_ = false;
    lost_ = true;
    switched_off_ = switched_off;
    last_edge_ = no_edge;
}

/// The trace is believed, and flow goes on, but not where the image says.
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
    if (key == context_) return;
    flush();
    // A context changes amid a function: what led there happened before.
    if (!lost_) end_wait(false, counts);
    context_ = key;
    stack_ = nullptr;
    plain_ = false;
    switched_stack_ = true;
    report_frames();
}

void FlowCalls::arrive(const Arrival& place, FlowCounts& counts) {
    plain_ = true;
    if (open_ && !first_) {
        first_ = place;
        lost_ = false;
        keep({Go::begin, place, {}});
        return;
    }
    flush();
    if (wait_ != Wait::no && indirect_)
        if (WaySum* way = counts.way(wait_edge_, place.address)) ++way->times;
    const Wait wait = std::exchange(wait_, Wait::no);
    const bool lost = std::exchange(lost_, false), off = std::exchange(switched_off_, false);
    const bool switched = std::exchange(switched_stack_, false);
    const bool handed_over = std::exchange(handed_over_, false);
    if (lost) {
        loss_.to = place.address;
        loss_.regained = true;
        if (observer_ != nullptr) observer_->regained(now());
        // The call that the source before ended with is the one that this source begins in.
        if (handed_over && is_just_called(place))
            counts.lost(loss_);
        else
            go({off && place.begins ? Go::enter : Go::resume, place, loss_}, counts);
    } else if (switched) {
        go({Go::take_up, place, {}}, counts);
    } else {
        arrive_behind(wait, place, counts);
    }
}

/// The topmost frame is that of a call of this place, and nothing has run in it.
bool FlowCalls::is_just_called(const Arrival& place) {
    const Stack& stack = current();
    return !stack.empty() && stack.frames.back().edge != no_edge && stack.frames.back().to == place.address &&
           stack.frames.back().at == stack.clock;
}

void FlowCalls::arrive_behind(Wait wait, const Arrival& place, FlowCounts& counts) {
    Stack& stack = current();
    const bool named = place.entry == place.home;
    switch (wait) {
        case Wait::no: break;
        case Wait::call:
        case Wait::vector:
            push({.waits_for = wait == Wait::call ? wait_return_ : nothing,
                  .function = place.home,
                  .named = named,
                  .entered = place.address,
                  .edge = wait == Wait::call ? wait_edge_ : no_edge,
                  .to = place.address,
                  .at = stack.clock,
                  .returns_twice = place.returns_twice,
                  .unwinds = place.unwinds},
                 place.entry);
            break;
        case Wait::exception_return: go({Go::exception_return, place, {}}, counts); break;
        case Wait::function_return:
            // Nothing returns to where a function begins: a handler is entered so, or a call made by hand.
            if (!place.begins) {
                go({Go::function_return, place, {}}, counts);
                break;
            }
            [[fallthrough]];
        case Wait::jump:
        case Wait::leaves:
            if (!stack.empty() && stack.frames.back().function == place.home) break;
            go({wait == Wait::jump && named && !place.begins ? Go::jump : Go::tail, place, {}}, counts);
            break;
    }
}

// ---- the stack

FlowCalls::Stack& FlowCalls::current() {
    if (stack_ == nullptr) stack_ = &stack_of(context_);
    return *stack_;
}

FlowCalls::Stack& FlowCalls::stack_of(StackKey key) {
    if (const auto found = stacks_.find(key); found != stacks_.end()) return *found->second;
    if (!open_ && order_.size() >= limits_.stacks) {
        ++left_out_.contexts;
        return *order_.back().second;
    }
    auto stack = std::make_unique<Stack>();
    stack->index = order_.size();
    order_.emplace_back(key, stack.get());
    return *(stacks_[key] = std::move(stack));
}

/// Nodes that the tree of a stack may have.
std::size_t FlowCalls::room(const Stack& stack) const {
    if (open_) return CallTree::nowhere;
    const std::size_t all = std::max(std::min(fewest_nodes, limits_.nodes), limits_.nodes / (stack.index + 1));
    return all > stack.settled.size() ? all - stack.settled.size() : 0;
}

std::uint32_t FlowCalls::child(std::uint32_t parent, FunctionId function, std::uint64_t calls) {
    Stack& stack = *stack_;
    const std::uint32_t node = stack.tree.child(parent, function, room(stack));
    if (node == parent && stack.tree.node(node).function != function)
        left_out_.calls += calls;
    else
        stack.tree.node(node).calls += calls;
    return node;
}

void FlowCalls::flush() {
    if (run_ == Work{}) return;
    Stack& stack = current();
    stack.tree.node(stack.frames.back().node).self += run_;
    stack.clock += run_;
    total_ += run_;
    if (open_) stack.segments.back().work += run_;
    run_ = {};
}

/// A frame for a function that is called, by whatever is on top.
void FlowCalls::push(Frame frame, FunctionId function) {
    Stack& stack = current();
    if (stack.empty()) {
        if (open_) {
            // Only if nothing of this stack was seen before.
            stack.segments.emplace_back();
            stack.segments.back().node = stack.tree.add_loose();
            stack.frames.push_back({.node = stack.segments.back().node});
        } else {
            stack.frames.push_back({.node = stack.root, .caller = stack.root});
        }
    }
    frame.caller = stack.frames.back().node;
    frame.node = child(frame.caller, function, 1);
    if (frame.exception != nullptr) ++stack.interrupts;
    if (observer_ != nullptr) observer_->enter(now(), stack.depth(stack.frames.size()), function);
    stack.frames.push_back(frame);
    const std::size_t depth = stack.frames.size() - stack.bottom;
    if (open_) {
        Segment& segment = stack.segments.back();
        segment.peak = std::max(segment.peak, stack.frames.size());
    }
    if (depth > limits_.frames) drop_bottom(1);
}

void FlowCalls::drop_bottom(std::size_t count) {
    Stack& stack = *stack_;
    if (!open_) left_out_.frames += count;
    stack.cut = true;
    for (; count != 0 && !stack.empty(); --count)
        if (stack.frames[stack.bottom++].exception != nullptr) --stack.interrupts;
    if (open_ || stack.bottom < limits_.frames) return;
    stack.frames.erase(stack.frames.begin(), stack.frames.begin() + static_cast<std::ptrdiff_t>(stack.bottom));
    stack.above += stack.bottom;
    stack.bottom = 0;
}

/// Takes frames off until so many are left.
void FlowCalls::pop_to(std::size_t size, FlowCounts& counts) {
    Stack& stack = *stack_;
    size = std::max(size, stack.bottom);
    if (observer_ != nullptr && size < stack.frames.size()) observer_->leave(now(), stack.depth(size));
    while (stack.frames.size() > size) {
        const Frame& frame = stack.frames.back();
        if (frame.exception != nullptr) --stack.interrupts;
        if (frame.edge != no_edge)
            if (WaySum* way = counts.way(frame.edge, frame.to)) way->inclusive += stack.clock - frame.at;
        stack.frames.pop_back();
    }
}

/// Flow comes to where a frame waits for it.
void FlowCalls::return_from(std::size_t index, FlowCounts& counts) {
    const Frame& frame = stack_->frames[index];
    if (frame.exception != nullptr) counts.exception_took(*frame.exception, stack_->clock - frame.at);
    if (frame.edge != no_edge)
        if (WaySum* way = counts.way(frame.edge, frame.to)) ++way->returns;
    if (frame.returns_twice && frame.waits_for != nothing && index > stack_->bottom) {
        if (open_ && index == 1)
            stack_->segments.back().again = frame.waits_for;
        else
            stack_->frames[index - 1].again = frame.waits_for;
    }
    pop_to(index, counts);
}

// ---- frames that are kept aside

/// The frames from `from` on, which are about to be left, may be gone on with. Its lowest has returned by that.
FlowCalls::Aside FlowCalls::put_aside(std::size_t from) {
    Stack& stack = *stack_;
    Aside frames;
    for (std::size_t i = from; i < stack.frames.size(); ++i) {
        Frame& frame = stack.frames[i];
        frames.push_back({frame, stack.tree.nodes()[frame.node].function});
        frames.back().frame.at = stack.clock - frame.at;
        if (i == from) frames.back().frame.edge = no_edge;
        if (i != from) frame.edge = no_edge;  // what passes in it is not over
    }
    return frames;
}

void FlowCalls::keep_aside(Aside frames, FlowCounts& counts) {
    Stack& stack = *stack_;
    if (frames.size() > most_aside) return give_up(frames, counts);
    stack.frames_aside += frames.size();
    stack.aside.push_back(std::move(frames));
    std::size_t over = 0;
    for (; stack.frames_aside > most_aside; ++over) {
        stack.frames_aside -= stack.aside[over].size();
        give_up(stack.aside[over], counts);
        stack.aside_given_up = true;
    }
    stack.aside.erase(stack.aside.begin(), stack.aside.begin() + static_cast<std::ptrdiff_t>(over));
}

/// They will not be gone on with: what passed in them is what has passed.
void FlowCalls::give_up(const Aside& frames, FlowCounts& counts) const {
    for (const AsideFrame& f : frames)
        if (f.frame.edge != no_edge)
            if (WaySum* way = counts.way(f.frame.edge, f.frame.to)) way->inclusive += f.frame.at;
}

/// Goes on with frames that are kept aside, if some wait for the place.
bool FlowCalls::take_back(const Arrival& place, FlowCounts& counts) {
    Stack& stack = *stack_;
    std::size_t found = stack.aside.size(), index = 0;
    // What waits on top of its own switched; deeper, others were switched to from there and left with it.
    for (std::size_t i = 0; i < stack.aside.size() && found == stack.aside.size(); ++i)
        if (const Aside& a = stack.aside[i]; a.size() > 1 && a.back().frame.waits_for == place.address) {
            found = i;
            index = a.size() - 1;
        }
    for (std::size_t i = 0; i < stack.aside.size() && found == stack.aside.size(); ++i)
        for (std::size_t k = stack.aside[i].size(); k-- > 1 && found == stack.aside.size();)
            if (stack.aside[i][k].frame.waits_for == place.address) {
                found = i;
                index = k;
            }
    if (found == stack.aside.size()) return false;
    Aside frames = std::move(stack.aside[found]);
    stack.aside.erase(stack.aside.begin() + static_cast<std::ptrdiff_t>(found));
    stack.frames_aside -= frames.size();
    const AsideFrame left = frames[index];
    if (left.frame.edge != no_edge)
        if (WaySum* way = counts.way(left.frame.edge, left.frame.to)) {
            ++way->returns;
            way->inclusive += left.frame.at;
        }
    if (index + 1 < frames.size()) {
        Aside rest(frames.begin() + static_cast<std::ptrdiff_t>(index), frames.end());
        rest.front().frame.edge = no_edge;
        keep_aside(std::move(rest), counts);
    }
    frames.resize(index);

    // They take the place of the frame that switched to them.
    Frame& lowest = frames.front().frame;
    lowest.waits_for = nothing;
    lowest.at = {};
    if (stack.frames.size() - stack.bottom > 1) {
        Frame& switched = stack.frames.back();
        lowest.waits_for = switched.waits_for;
        lowest.edge = switched.edge;
        lowest.to = switched.to;
        lowest.at = stack.clock - switched.at;
        lowest.exception = switched.exception;
        switched.edge = no_edge;
        pop_to(stack.frames.size() - 1, counts);
    } else if (stack.empty()) {
        stack.frames.push_back({.node = stack.root, .caller = stack.root});
    }
    for (const AsideFrame& f : frames) {
        Frame frame = f.frame;
        frame.at = stack.clock - frame.at;
        frame.caller = stack.frames.back().node;
        frame.node = child(frame.caller, f.entry, 0);
        if (frame.exception != nullptr) ++stack.interrupts;
        if (observer_ != nullptr) observer_->enter(now(), stack.depth(stack.frames.size()), f.entry);
        stack.frames.push_back(frame);
    }
    if (const std::size_t depth = stack.frames.size() - stack.bottom; depth > limits_.frames)
        drop_bottom(depth - limits_.frames);
    return true;
}

// ---- where flow goes on

void FlowCalls::go(Operation operation, FlowCounts& counts) {
    Stack& stack = current();
    if (stack.empty() || !go_inside(operation, counts)) {
        if (open_)
            keep(operation);
        else
            go_below(operation, counts);
    }
    if (stack.empty() || operation.go == Go::begin || operation.go == Go::leave) return;
    stack.frames.back().function = operation.place.home;
    stack.frames.back().named = operation.place.entry == operation.place.home;
}

/// Whether it could be done with the frames that are known.
bool FlowCalls::go_inside(Operation& operation, FlowCounts& counts) {
    Stack& stack = *stack_;
    const std::size_t top = stack.frames.size() - 1;
    const bool at_base = stack.frames.size() - stack.bottom == 1;
    switch (operation.go) {
        case Go::begin: return true;
        case Go::tail:
            if (open_ && top == 0) return false;
            tail(operation.place);
            return true;
        case Go::leave:
            if (at_base) return false;
            pop_to(top, counts);
            return true;
        case Go::enter: {
            if (open_ && top == 0) return false;
            const bool returned = !at_base && stack.frames[top].waits_for == operation.place.address;
            if (operation.loss) {
                operation.loss->inside = returned;
                counts.lost(*operation.loss);
            }
            if (returned)
                return_from(top, counts);
            else
                push({.function = operation.place.home,
                      .named = true,
                      .entered = operation.place.address,
                      .at = stack.clock},
                     operation.place.entry);
            return true;
        }
        case Go::exception_return: {
            std::size_t i = stack.frames.size();
            while (i > stack.bottom + 1 && stack.frames[i - 1].exception == nullptr) --i;
            if (i <= stack.bottom + 1) return false;
            const bool there = stack.frames[i - 1].waits_for == operation.place.address;
            return_from(i - 1, counts);
            if (there) return true;
            operation = {Go::resume, operation.place, {}};
            return find_frame(operation, counts);
        }
        case Go::take_up:
            if (!(open_ && top == 0) && stack.frames[top].function == operation.place.home) return true;
            return find_frame(operation, counts);
        case Go::function_return:
        case Go::jump:
        case Go::resume: return find_frame(operation, counts);
    }
    return false;
}

/// The topmost frame in which setjmp or the like returned to the place.
std::size_t FlowCalls::frame_to_jump_back_to(const Arrival& place) const {
    const Stack& stack = *stack_;
    for (std::size_t i = stack.frames.size(); i-- > stack.bottom;)
        if (stack.frames[i].again == place.address && stack.frames[i].function == place.home) return i;
    return stack.frames.size();
}

/// The topmost frame that waits for the place, or whose function it lies in.
bool FlowCalls::find_frame(const Operation& operation, FlowCounts& counts) {
    Stack& stack = *stack_;
    const std::size_t top = stack.frames.size() - 1;
    const std::size_t last = stack.bottom;
    const std::uint64_t address = operation.place.address;
    // Flow is known to have gone there from what is on top.
    const bool goes = operation.go == Go::function_return || operation.go == Go::jump;
    const std::size_t again = goes && (top == last || stack.frames[top].waits_for != address)
                                  ? frame_to_jump_back_to(operation.place)
                                  : top + 1;
    for (std::size_t i = top + 1; i-- > last;) {
        const Frame& frame = stack.frames[i];
        if (i > last && frame.waits_for == address) {
            if (operation.loss) {
                Loss loss = *operation.loss;
                loss.inside = true;
                counts.lost(loss);
            }
            Aside left;
            if (goes && i < top) left = put_aside(i);
            return_from(i, counts);
            if (!left.empty()) keep_aside(std::move(left), counts);
            return true;
        }
        if (open_ && i == 0) return false;  // the base: whose function it is, and what it waits for, is not known
        const bool is_current = operation.go == Go::function_return && i == top;
        const bool done = goes && i < top && stack.frames[i + 1].unwinds;
        if (!frame.named || frame.function != operation.place.home || is_current || done) continue;
        if (goes && i != again) {
            if (again <= top) continue;
            if (open_) return false;  // of the frames that are not known, one may be marked
        }
        go_on_in(i, operation, counts);
        return true;
    }
    if (!goes || operation.place.entry == operation.place.home) return false;
    const std::size_t nameless = again <= top ? again : nameless_frame_of(operation);
    if (nameless > top || is_waited_for_aside(address)) return false;
    go_on_in(nameless, operation, counts);
    return true;
}

/// Flow is in the function of a frame, but not where that waits; the frames above it are left.
void FlowCalls::go_on_in(std::size_t frame, const Operation& operation, FlowCounts& counts) {
    const Stack& stack = *stack_;
    if (operation.loss)
        counts.lost(*operation.loss);
    else if (operation.go != Go::take_up && frame + 1 < stack.frames.size() &&
             stack.frames[frame + 1].waits_for != nothing)
        counts.resumed(
            {stack.frames[frame + 1].waits_for, operation.place.address, stack.frames[frame + 1].exception != nullptr});
    pop_to(frame + 1, counts);
}

/// Whether a frame that is kept aside waits for the address.
bool FlowCalls::is_waited_for_aside(std::uint64_t address) const {
    return std::any_of(stack_->aside.begin(), stack_->aside.end(), [&](const Aside& frames) {
        return std::any_of(frames.begin() + 1, frames.end(),
                           [&](const AsideFrame& f) { return f.frame.waits_for == address; });
    });
}

/// The frame whose function a place lies in that no symbol names: the one of which the nearest address at or before the
/// place is known. No address of another function lies between the beginning of the place's function and the place.
/// The number of frames if there is none.
std::size_t FlowCalls::nameless_frame_of(const Operation& operation) const {
    const Stack& stack = *stack_;
    std::size_t best = stack.frames.size();
    std::uint64_t nearest = 0;
    for (std::size_t i = stack.frames.size(); i-- > stack.bottom;) {
        const Frame& frame = stack.frames[i];
        const Frame* const above = i + 1 < stack.frames.size() ? &stack.frames[i + 1] : nullptr;
        // A function does not return to itself, and a frame that has called _Unwind_Resume is done.
        if (above == nullptr ? operation.go == Go::function_return : above->unwinds) continue;
        if (frame.named || frame.function != operation.place.home) continue;
        for (const std::uint64_t known : {frame.entered, above == nullptr ? nothing : above->waits_for})
            if (known <= operation.place.address && (best == stack.frames.size() || known > nearest)) {
                best = i;
                nearest = known;
            }
    }
    return best;
}

/// Nothing that is known fits: what lies below is not in the trace.
void FlowCalls::go_below(const Operation& operation, FlowCounts& counts) {
    if (operation.loss) counts.lost(*operation.loss);
    switch (operation.go) {
        case Go::function_return:
            if (!take_back(operation.place, counts)) find_caller(operation.place, counts);
            break;
        case Go::jump:
            if (take_back(operation.place, counts)) break;
            if (stack_->empty())
                start_anew(operation.place, false, counts);
            else
                tail(operation.place);
            break;
        case Go::leave:
            pop_to(0, counts);
            settle(*stack_);
            break;
        case Go::begin: break;
        case Go::enter: start_anew(operation.place, true, counts); break;
        case Go::tail:
        case Go::exception_return:
        case Go::resume:
        case Go::take_up: start_anew(operation.place, false, counts); break;
    }
}

/// What is not known of a fork's stack is found out when it is joined.
void FlowCalls::keep(const Operation& operation) {
    Stack& stack = current();
    if (!stack.segments.empty()) {
        Segment& before = stack.segments.back();
        for (std::size_t i = std::max<std::size_t>(1, stack.bottom); i < stack.frames.size(); ++i)
            before.above.push_back(stack.frames[i]);
        before.aside = std::exchange(stack.aside, {});
        before.aside_given_up = std::exchange(stack.aside_given_up, false);
        stack.frames_aside = 0;
    }
    stack.frames.clear();
    stack.bottom = 0;
    stack.interrupts = 0;
    const std::uint32_t node = stack.tree.add_loose();
    stack.segments.emplace_back();
    stack.segments.back().operation = operation;
    stack.segments.back().node = node;
    stack.frames.push_back(
        {.node = node, .function = operation.place.home, .named = operation.place.entry == operation.place.home});
}

/// A return to a function below all that is known.
void FlowCalls::find_caller(const Arrival& place, FlowCounts& counts) {
    Stack& stack = *stack_;
    const bool whole = !stack.empty() && !stack.cut;
    if (whole && stack.frames.front().function == place.home) {
        pop_to(1, counts);
        return;
    }
    if (!whole || stack.roots_found >= limits_.frames || stack.tree.size() + 2 > room(stack))
        return start_anew(place, false, counts);
    pop_to(0, counts);
    ++stack.roots_found;
    const std::uint32_t caller = stack.root;
    stack.root = stack.tree.add_above(caller, place.home);
    stack.frames.push_back(
        {.node = caller, .caller = stack.root, .function = place.home, .named = place.entry == place.home});
    if (observer_ != nullptr) observer_->enter(now(), 0, place.home);
}

void FlowCalls::start_anew(const Arrival& place, bool entered, FlowCounts& counts) {
    Stack& stack = current();
    pop_to(0, counts);
    settle(stack);
    const std::uint32_t node = child(stack.root, place.home, entered ? 1 : 0);
    stack.frames.push_back(
        {.node = node, .caller = stack.root, .function = place.home, .named = place.entry == place.home});
    if (observer_ != nullptr) observer_->enter(now(), 0, place.home);
}

void FlowCalls::settle(Stack& stack) const {
    std::vector<std::uint32_t> at(stack.tree.size(), CallTree::nowhere);
    at[stack.root] = 0;
    // The root itself holds what ran where nothing was known.
    CallTree::Node& unknown = stack.settled.node(0);
    unknown.self += stack.tree.node(stack.root).self;
    stack.settled.take(stack.tree, 0, static_cast<std::uint32_t>(stack.tree.size()), at, CallTree::nowhere);
    stack.tree = {};
    stack.root = 0;
    stack.roots_found = 0;
    stack.interrupts = 0;
    stack.frames.clear();
    stack.bottom = stack.above = 0;
    stack.cut = false;
}

void FlowCalls::tail(const Arrival& place) {
    Stack& stack = *stack_;
    Frame& frame = stack.frames.back();
    frame.node = child(frame.caller, place.entry, place.begins || place.entry != place.home ? 1 : 0);
    frame.function = place.home;
    frame.named = place.entry == place.home;
    frame.entered = place.address;
    frame.returns_twice |= place.returns_twice;
    frame.unwinds |= place.unwinds;
    if (observer_ != nullptr) {
        const std::uint32_t depth = stack.depth(stack.frames.size() - 1);
        observer_->leave(now(), depth);
        observer_->enter(now(), depth, place.entry);
    }
}

// ---- parts

void FlowCalls::join(FlowCalls& fork, FlowCounts& counts) {
    counts.reach(code_);
    flush();
    for (const flow::What& what : fork.early_) event(what, counts);
    if (!fork.first_) return;
    arrive(*fork.first_, counts);
    Stack* const first = &current();
    for (const auto& [key, other] : fork.order_) {
        Stack& mine = key == fork.order_.front().first ? *first : stack_of(key);
        join_stack(mine, *other, other == fork.order_.front().second, counts);
    }
    levels_.close(now());
    fork.levels_.close(fork.now());
    total_ += fork.total_;
    levels_.join(fork.levels_, now());
    context_ = fork.context_;
    stack_ = nullptr;
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
    last_edge_ = fork.last_edge_;
}

void FlowCalls::join_stack(Stack& mine, const Stack& other, bool first, FlowCounts& counts) {
    stack_ = &mine;
    const Work begin = mine.clock;
    std::vector<std::uint32_t> at(other.tree.size(), CallTree::nowhere);
    const auto put = [&](Frame frame) {
        frame.node = at[frame.node];
        frame.caller = at[frame.caller];
        frame.at += begin;
        if (frame.exception != nullptr) ++mine.interrupts;
        mine.frames.push_back(frame);
    };
    // Where there was no room for some, there was none for those before them.
    const auto take_aside = [&](const std::vector<Aside>& aside, bool given_up) {
        if (given_up) {
            for (const Aside& frames : mine.aside) give_up(frames, counts);
            mine.aside.clear();
            mine.frames_aside = 0;
        }
        for (const Aside& frames : aside) keep_aside(frames, counts);
    };
    for (std::size_t k = 0; k < other.segments.size(); ++k) {
        const Segment& s = other.segments[k];
        if (!first || k != 0) go(s.operation, counts);
        if (mine.empty() && (s.peak > 1 || s.work != Work{}))
            mine.frames.push_back({.node = mine.root, .caller = mine.root});
        if (!mine.empty()) {
            CallTree::Node& base = mine.tree.node(mine.frames.back().node);
            at[s.node] = mine.frames.back().node;
            base.self += other.tree.nodes()[s.node].self;
        }
        const std::uint32_t end =
            k + 1 < other.segments.size() ? other.segments[k + 1].node : static_cast<std::uint32_t>(other.tree.size());
        left_out_.calls += mine.tree.take(other.tree, s.node + 1, end, at, room(mine));
        mine.clock += s.work;
        const std::size_t depth = mine.frames.size() - mine.bottom;
        std::size_t forgotten = 0;
        const auto forget = [&](std::size_t peak) {
            if (depth + peak - 1 <= limits_.frames + forgotten) return;
            const std::size_t more = depth + peak - 1 - limits_.frames - forgotten;
            forgotten += more;
            drop_bottom(more);
        };
        for (const auto& [exception, times] : s.first_exceptions) {
            forget(exception.first);
            if (mine.interrupts != 0) counts.exceptions[exception.second].nested += times;
        }
        forget(s.peak);
        if (s.again != nothing && !mine.empty()) mine.frames.back().again = s.again;
        for (const Frame& frame : s.above) put(frame);
        take_aside(s.aside, s.aside_given_up);
    }
    for (std::size_t i = std::max<std::size_t>(1, other.bottom); i < other.frames.size(); ++i) put(other.frames[i]);
    take_aside(other.aside, other.aside_given_up);
}

void FlowCalls::finish(FlowCounts& counts) {
    flush();
    levels_.close(now());
    if (!lost_) lose(false, counts);
    if (loss_.how == Loss::From::place) counts.ends.push_back(loss_.from);
    for (const auto& [key, stack] : order_) {
        stack_ = stack;
        for (std::size_t i = stack->bottom; i < stack->frames.size(); ++i)
            if (const Frame& frame = stack->frames[i]; frame.exception != nullptr && frame.waits_for != nothing)
                counts.ends.push_back(frame.waits_for);
        pop_to(0, counts);
        for (const Aside& frames : stack->aside) give_up(frames, counts);
        stack->aside.clear();
        settle(*stack);
    }
    stack_ = nullptr;
}

// ---- the next source of a thread

void FlowCalls::hand_over(FlowCalls& next, FlowCounts& counts) {
    flush();
    levels_.close(now());
    if (!lost_) lose(true, counts);
    for (const auto& [key, stack] : order_) {
        next.take_over(*this, key, *stack, counts);
        // What passes in these frames is not over.
        stack->frames.clear();
        stack->bottom = 0;
        stack->aside.clear();
        stack->frames_aside = 0;
        settle(*stack);
    }
    next.context_ = context_;
    next.total_ = now();
    next.loss_ = std::exchange(loss_, {});
    next.switched_off_ = switched_off_;
    next.handed_over_ = true;
    next.stack_ = nullptr;
    if (context_ == StackKey{})
        next.report_entered();
    else
        next.report_frames();
    stack_ = nullptr;
}

void FlowCalls::take_over(const FlowCalls& from, StackKey key, const Stack& stack, const FlowCounts& counts) {
    stack_ = &stack_of(key);
    Stack& mine = *stack_;
    const std::vector<CodeFunction> known = from.code_.functions();
    const std::vector<CallTree::Node>& nodes = stack.tree.nodes();
    std::vector<std::uint32_t> at(nodes.size(), CallTree::nowhere);
    at[stack.root] = mine.root;
    // Only what frames hang from: what was called and left stays where it was counted.
    const auto place = [&](std::uint32_t node) {
        std::vector<std::uint32_t> up;
        for (; at[node] == CallTree::nowhere; node = nodes[node].parent) up.push_back(node);
        for (; !up.empty(); up.pop_back())
            at[up.back()] =
                child(at[nodes[up.back()].parent], code_.known_elsewhere(known[nodes[up.back()].function]), 0);
    };
    const auto take = [&](Frame frame) {
        frame.function = code_.known_elsewhere(known[frame.function]);
        if (frame.edge == no_edge) return frame;
        carried_.push_back(frame.edge >= FlowCounts::first_carried
                               ? from.carried_[frame.edge - FlowCounts::first_carried]
                               : CarriedCall{counts.known.blocks[frame.edge / 2], frame.to});
        frame.edge = FlowCounts::first_carried + static_cast<std::uint32_t>(carried_.size() - 1);
        return frame;
    };
    for (std::size_t i = stack.bottom; i < stack.frames.size(); ++i) {
        Frame frame = take(stack.frames[i]);
        place(frame.node);
        place(frame.caller);
        frame.node = at[frame.node];
        frame.caller = at[frame.caller];
        mine.frames.push_back(frame);
    }
    for (const Aside& frames : stack.aside) {
        Aside& aside = mine.aside.emplace_back();
        for (const AsideFrame& f : frames) aside.push_back({take(f.frame), code_.known_elsewhere(known[f.entry])});
        mine.frames_aside += aside.size();
    }
    mine.above = stack.above + stack.bottom;
    mine.cut = stack.cut;
    mine.interrupts = stack.interrupts;
    mine.clock = stack.clock;
    mine.aside_given_up = stack.aside_given_up;
}

std::vector<FlowCalls::Tree> FlowCalls::trees() const {
    std::vector<Tree> result;
    for (const auto& [key, stack] : order_) result.push_back({key, stack->settled});
    return result;
}

void FlowCalls::report_frames() {
    if (observer_ == nullptr) return;
    observer_->switch_to(now(), context_.context_id);
    report_entered();
}

void FlowCalls::report_entered() {
    if (observer_ == nullptr) return;
    const Stack& stack = current();
    for (std::size_t i = stack.bottom; i < stack.frames.size(); ++i)
        observer_->enter(now(), stack.depth(i), stack.tree.nodes()[stack.frames[i].node].function);
}

}  // namespace waymark::analysis
