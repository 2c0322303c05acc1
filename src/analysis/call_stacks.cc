#include "waymark/analysis/call_stacks.h"

#include <algorithm>

namespace waymark::analysis {

void CallStacks::use(StackKey key) {
    key_ = key;
    stack_ = nullptr;
}

CallStacks::Stack& CallStacks::stack_of(StackKey key) {
    if (const auto found = stacks_.find(key); found != stacks_.end()) return *found->second;
    if (!open_ && order_.size() >= limits_.stacks) {
        ++left_out_.contexts;
        return *order_.back().second;
    }
    auto stack = std::make_unique<Stack>();
    stack->serial = ++serials_;
    stack->index = order_.size();
    order_.emplace_back(key, stack.get());
    return *(stacks_[key] = std::move(stack));
}

/// Nodes that the tree of a stack may have.
std::size_t CallStacks::room(const Stack& stack) const {
    if (open_) return CallTree::nowhere;
    const std::size_t all = std::max(std::min(fewest_nodes, limits_.nodes), limits_.nodes / (stack.index + 1));
    return all > stack.settled.size() ? all - stack.settled.size() : 0;
}

std::uint32_t CallStacks::child(std::uint32_t parent, FunctionId function, std::uint64_t calls) {
    Stack& stack = *stack_;
    std::uint32_t node = stack.tree.child_at_once(parent, function);
    if (node == CallTree::nowhere) node = stack.tree.child(parent, function, room(stack));
    const bool no_room = node == parent && stack.tree.node(node).function != function;
    (no_room ? left_out_.calls : stack.tree.node(node).calls) += calls;
    if (watched_) [[unlikely]] {
        if (!stack.tree.is_settled(parent, function)) watched_->give_up();
        if (calls != 0) no_room ? watched_->left_out() : watched_->called(node);
    }
    return node;
}

bool CallStacks::is_just_called(const Arrival& place) {
    const Stack& stack = current();
    return !stack.empty() && stack.frames.back().edge != no_edge && stack.frames.back().to == place.address &&
           stack.frames.back().at == stack.clock;
}

void CallStacks::call(const Arrival& place, std::uint64_t waits_for, std::uint32_t edge) {
    Frame& frame = push(place.entry);
    frame.waits_for = waits_for;
    frame.function = place.home;
    frame.edge = edge;
    frame.named = place.entry == place.home;
    frame.entered = place.address;
    frame.to = place.address;
    frame.returns_twice = place.returns_twice;
    frame.unwinds = place.unwinds;
    if (watched_ && place.returns_twice) [[unlikely]]
        watched_->give_up();
}

void CallStacks::interrupt(const flow::ExceptionType& exception, std::uint64_t waits_for, FlowCounts& counts) {
    Stack& stack = current();
    if (stack.empty()) {
        if (open_)
            keep({Go::begin, {}, {}});
        else
            stack.frames.push_back({.node = stack.root, .caller = stack.root});
    }
    ExceptionSum& sum = counts.exceptions[exception];
    ++sum.times;
    if (stack.interrupts != 0)
        ++sum.nested;
    else if (open_)
        ++stack.segments.back().first_exceptions[{stack.segments.back().peak, exception}];
    const FunctionId id = code_.exception(exception);
    Frame& frame = push(id, &exception);
    frame.waits_for = waits_for;
    frame.function = id;
}

/// A frame for a function that is called, by whatever is on top, or for an exception. It is made in its place: a copy
/// would wait for its parts.
CallStacks::Frame& CallStacks::push(FunctionId function, const flow::ExceptionType* exception) {
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
    const std::uint32_t caller = stack.frames.back().node, node = child(caller, function, 1);
    if (exception != nullptr) ++stack.interrupts;
    if (observer_ != nullptr) observer_->enter(now(), stack.depth(stack.frames.size()), function);
    Frame& frame = stack.frames.emplace_back();
    frame.caller = caller;
    frame.node = node;
    frame.exception = exception;
    frame.at.instructions = stack.clock.instructions;
    frame.at.cycles = stack.clock.cycles;
    const std::size_t depth = stack.frames.size() - stack.bottom;
    if (open_) {
        Segment& segment = stack.segments.back();
        segment.peak = std::max(segment.peak, stack.frames.size());
    }
    if (watched_) [[unlikely]] {
        watched_->pushed(stack.frames.size());
        if (depth > limits_.frames) watched_->give_up();
    }
    if (depth > limits_.frames) drop_bottom(1);
    return stack.frames.back();
}

void CallStacks::drop_bottom(std::size_t count) {
    Stack& stack = *stack_;
    if (!open_) left_out_.frames += count;
    stack.cut = true;
    for (; count != 0 && !stack.empty(); --count)
        if (stack.frames[stack.bottom++].exception != nullptr) --stack.interrupts;
    if (open_ || stack.bottom < limits_.frames) return;
    stack.frames.erase_first(stack.bottom);
    stack.above += stack.bottom;
    stack.bottom = 0;
}

/// Takes frames off until so many are left.
void CallStacks::pop_to(std::size_t size, FlowCounts& counts) {
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

/// Flow comes to where a frame waits for it. `lost`: what happened before it is not known, so how long an exception
/// took is not known, either.
void CallStacks::return_from(std::size_t index, bool lost, FlowCounts& counts) {
    const Frame& frame = stack_->frames[index];
    if (frame.exception != nullptr && !lost) counts.exception_took(*frame.exception, stack_->clock - frame.at);
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

void CallStacks::settle(Stack& stack, FlowCounts& counts) {
    repeats_.take_counted(stack.serial, [&](const auto& known, const auto& rest) { add(known, rest, counts); });
    stack.serial = ++serials_;
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

void CallStacks::tail(const Arrival& place) {
    Stack& stack = *stack_;
    Frame& frame = stack.frames.back();
    frame.node = child(frame.caller, place.entry, place.begins || place.entry != place.home ? 1 : 0);
    frame.function = place.home;
    frame.named = place.entry == place.home;
    frame.entered = place.address;
    frame.returns_twice |= place.returns_twice;
    frame.unwinds |= place.unwinds;
    if (watched_) [[unlikely]]
        watched_->replaced(stack.frames.size(), place);
    if (observer_ != nullptr) {
        const std::uint32_t depth = stack.depth(stack.frames.size() - 1);
        observer_->leave(now(), depth);
        observer_->enter(now(), depth, place.entry);
    }
}

void CallStacks::report_frames() {
    if (observer_ == nullptr) return;
    observer_->switch_to(now(), key_.context_id);
    report_entered();
}

void CallStacks::report_entered() {
    if (observer_ == nullptr) return;
    const Stack& stack = current();
    for (std::size_t i = stack.bottom; i < stack.frames.size(); ++i)
        observer_->enter(now(), stack.depth(i), stack.tree.nodes()[stack.frames[i].node].function);
}

// ---- frames that are kept aside

/// The frames from `from` on, which are about to be left, may be gone on with. Its lowest has returned by that.
CallStacks::Aside CallStacks::put_aside(std::size_t from) {
    Stack& stack = *stack_;
    Aside frames;
    for (std::size_t i = from; i < stack.frames.size(); ++i) {
        Frame& frame = stack.frames[i];
        frames.push_back({frame, stack.tree.nodes()[frame.node].function});
        frames.back().frame.at = stack.clock - frame.at;
        if (i == from) frames.back().frame.edge = no_edge;
        frames.back().frame.way = 0;
        frame.way = 0;
        if (i != from) frame.edge = no_edge;  // what passes in it is not over
    }
    return frames;
}

void CallStacks::keep_aside(Aside frames, FlowCounts& counts) {
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
void CallStacks::give_up(const Aside& frames, FlowCounts& counts) const {
    for (const AsideFrame& f : frames)
        if (f.frame.edge != no_edge)
            if (WaySum* way = counts.way(f.frame.edge, f.frame.to)) way->inclusive += f.frame.at;
}

/// Goes on with frames that are kept aside, if some wait for the place.
bool CallStacks::take_back(const Arrival& place, FlowCounts& counts) {
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
    lowest.way = 0;
    if (stack.frames.size() - stack.bottom > 1) {
        Frame& switched = stack.frames.back();
        lowest.waits_for = switched.waits_for;
        lowest.edge = switched.edge;
        lowest.to = switched.to;
        lowest.at = stack.clock - switched.at;
        lowest.exception = switched.exception;
        switched.edge = no_edge;
        switched.way = 0;
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

}  // namespace waymark::analysis
