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

/// Number of further nodes that the tree of a stack may get.
std::size_t CallStacks::room(const Stack& stack) const {
    if (open_) return CallTree::nowhere;
    const std::size_t all = std::max(std::min(fewest_nodes, limits_.nodes), limits_.nodes / (stack.index + 1));
    return all > stack.settled.size() ? all - stack.settled.size() : 0;
}

std::uint32_t CallStacks::child(std::uint32_t parent, FunctionId function, Entered how, std::uint64_t calls) {
    Stack& stack = *stack_;
    std::uint32_t node = stack.tree.child_at_once(parent, function, how);
    if (node == CallTree::nowhere) node = stack.tree.child(parent, function, how, room(stack));
    const bool no_room =
        node == parent && (stack.tree.node(node).function != function || stack.tree.node(node).how != how);
    (no_room ? left_out_.calls : stack.tree.node(node).calls) += calls;
    if (watched_) [[unlikely]] {
        if (!stack.tree.is_settled(parent, function)) watched_->give_up();
        if (calls != 0) no_room ? watched_->left_out() : watched_->called(node);
        // If there is no room for a node, the count of its tail calls is not known.
        if (no_room && how == Entered::by_tail_call) watched_->give_up();
    }
    return node;
}

/// True if the topmost frame was made by a call to this place, and nothing has run in the frame yet.
bool CallStacks::is_just_called(const Arrival& place) const {
    const Stack& stack = *stack_;
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

void CallStacks::interrupt(const flow::ExceptionType& exception, std::uint64_t waits_for, bool falls,
                           FlowCounts& counts) {
    Stack& stack = current();
    if (stack.empty()) {
        if (open_)
            keep({Go::begin, {}, {}});
        else
            stack.frames.push_back({.node = stack.root, .caller = stack.root, .nameless = true});
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
    frame.falls = falls;
    frame.function = id;
}

/// Adds a frame for a function that the topmost frame calls, or for an exception. The frame is constructed in place,
/// since a copy would have to wait for the members just written.
CallStacks::Frame& CallStacks::push(FunctionId function, const flow::ExceptionType* exception, Entered how,
                                    std::uint64_t calls) {
    Stack& stack = current();
    if (stack.empty()) {
        if (open_) {
            // Only if no flow of this stack was seen before.
            stack.segments.emplace_back();
            stack.segments.back().node = stack.tree.add_loose();
            stack.frames.push_back({.node = stack.segments.back().node});
        } else {
            stack.frames.push_back({.node = stack.root, .caller = stack.root, .nameless = true});
        }
    }
    const std::uint32_t caller = stack.frames.back().node, node = child(caller, function, how, calls);
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

/// Removes frames until `size` are left.
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

/// Flow arrives where a frame waits for it. `lost`: trace is missing before this place, so the duration of an exception
/// is unknown.
void CallStacks::return_from(std::size_t index, bool lost, FlowCounts& counts) {
    for (const std::size_t lowest = std::max(chain_of(index), stack_->bottom + 1); index > lowest; --index)
        if (const Frame& frame = stack_->frames[index]; frame.edge != no_edge)
            if (WaySum* way = counts.way(frame.edge, frame.to)) ++way->returns;
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
    // The root counts code that ran while the function was not known.
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

/// A jump into another function. That function returns to the caller of the one before: both frames wait for the same
/// address, and are left together.
void CallStacks::tail(const Operation& operation, FlowCounts& counts) {
    Stack& stack = *stack_;
    const Arrival& place = operation.place;
    const std::size_t top = stack.frames.size() - 1, lowest = chain_of(top);
    // Flow that arrives inside a function which has jumped here before, as where code is divided, continues in its
    // frame.
    if (!place.begins)
        for (std::size_t i = top; i-- > lowest;)
            if (stack.frames[i].function == place.home) {
                if (watched_) [[unlikely]]
                    watched_->give_up();
                return pop_to(i + 1, counts);
            }
    const Frame& before = stack.frames.back();
    if (top - lowest >= most_tails || before.nameless) return replace(place);
    if (watched_ && (place.returns_twice || place.unwinds)) [[unlikely]]
        watched_->give_up();
    const std::uint64_t waits_for = before.waits_for;
    const bool returns_twice = before.returns_twice || place.returns_twice, unwinds = before.unwinds || place.unwinds;
    for (std::size_t i = lowest; i <= top; ++i) {
        stack.frames[i].returns_twice = returns_twice;
        stack.frames[i].unwinds = unwinds;
    }
    Frame& frame = push(place.entry, nullptr, Entered::by_tail_call, place.begins || place.entry != place.home ? 1 : 0);
    frame.waits_for = waits_for;
    frame.function = place.home;
    frame.edge = operation.edge;
    frame.named = place.entry == place.home;
    frame.entered = place.address;
    frame.to = place.address;
    frame.returns_twice = returns_twice;
    frame.unwinds = unwinds;
    frame.tail = true;
}

/// The function replaces the function of the topmost frame.
void CallStacks::replace(const Arrival& place) {
    Stack& stack = *stack_;
    Frame& frame = stack.frames.back();
    frame.node = child(frame.caller, place.entry, frame.tail ? Entered::by_tail_call : Entered::by_call,
                       place.begins || place.entry != place.home ? 1 : 0);
    frame.nameless = false;
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

/// Keeps the frames from `from` on: they are about to be left, but flow may return to them. The lowest of them counts
/// as returned.
CallStacks::Aside CallStacks::put_aside(std::size_t from) {
    Stack& stack = *stack_;
    Aside frames;
    bool returned = true;
    for (std::size_t i = from; i < stack.frames.size(); ++i) {
        Frame& frame = stack.frames[i];
        returned = i == from || (returned && frame.tail);
        const CallTree::Node& node = stack.tree.nodes()[frame.node];
        frames.push_back({frame, node.function, frame.tail ? Entered::by_tail_call : node.how});
        Frame& kept = frames.back().frame;
        kept.at = stack.clock - frame.at;
        kept.way = 0;
        frame.way = 0;
        if (returned) {
            kept.edge = no_edge;
            kept.waits_for = nothing;
        } else {
            frame.edge = no_edge;  // the time in the frame is still open
        }
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

/// Flow will not return to these frames: their counts are final.
void CallStacks::give_up(const Aside& frames, FlowCounts& counts) const {
    for (const AsideFrame& f : frames)
        if (f.frame.edge != no_edge)
            if (WaySum* way = counts.way(f.frame.edge, f.frame.to)) way->inclusive += f.frame.at;
}

/// Returns to frames that are kept aside, if one of them waits for the place.
bool CallStacks::take_back(const Arrival& place, FlowCounts& counts) {
    Stack& stack = *stack_;
    std::size_t found = stack.aside.size(), index = 0;
    // Checks the topmost frame of each kept stack first. Deeper frames switched to another stack, and were left
    // together with it.
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
    // Frames that wait for the same address return together.
    const std::size_t returned = index;
    while (index > 1 && frames[index].frame.tail) --index;
    for (std::size_t i = index; i <= returned; ++i) {
        Frame& left = frames[i].frame;
        if (left.edge != no_edge)
            if (WaySum* way = counts.way(left.edge, left.to)) {
                ++way->returns;
                way->inclusive += left.at;
            }
        left.edge = no_edge;
        left.waits_for = nothing;
    }
    if (returned + 1 < frames.size())
        keep_aside({frames.begin() + static_cast<std::ptrdiff_t>(index), frames.end()}, counts);
    frames.resize(index);

    // The kept frames replace the frames that switched to them.
    Frame& lowest = frames.front().frame;
    lowest.waits_for = nothing;
    lowest.at = {};
    lowest.way = 0;
    lowest.tail = false;
    if (stack.frames.size() - stack.bottom > 1) {
        const std::size_t switching = std::max(chain_of(stack.frames.size() - 1), stack.bottom + 1);
        Frame& switched = stack.frames[switching];
        lowest.waits_for = switched.waits_for;
        lowest.edge = switched.edge;
        lowest.to = switched.to;
        lowest.at = stack.clock - switched.at;
        lowest.exception = switched.exception;
        lowest.tail = switched.tail;
        frames.front().how = stack.tree.node(switched.node).how;
        switched.edge = no_edge;
        switched.way = 0;
        pop_to(switching, counts);
    } else if (stack.empty()) {
        stack.frames.push_back({.node = stack.root, .caller = stack.root, .nameless = true});
    }
    bool returns_with_lowest = true;
    for (const AsideFrame& f : frames) {
        Frame frame = f.frame;
        returns_with_lowest &= &f == &frames.front() || frame.tail;
        if (returns_with_lowest) frame.waits_for = frames.front().frame.waits_for;
        frame.at = stack.clock - frame.at;
        frame.caller = stack.frames.back().node;
        frame.node = child(frame.caller, f.entry, f.how, 0);
        if (frame.exception != nullptr) ++stack.interrupts;
        if (observer_ != nullptr) observer_->enter(now(), stack.depth(stack.frames.size()), f.entry);
        stack.frames.push_back(frame);
    }
    if (const std::size_t depth = stack.frames.size() - stack.bottom; depth > limits_.frames)
        drop_bottom(depth - limits_.frames);
    return true;
}

}  // namespace waymark::analysis
