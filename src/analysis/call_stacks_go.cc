// Decides in which frame flow continues when it arrives at a place, or which new frame it enters. A place below all
// known frames is found here, or kept until an open stack is joined.

#include <algorithm>

#include "waymark/analysis/call_stacks.h"

namespace waymark::analysis {

void CallStacks::go(Operation operation, FlowCounts& counts) {
    Stack& stack = current();
    if (watched_ && operation.go != Go::tail) [[unlikely]]
        watched_->give_up();
    if (operation.goes_on && is_just_called(operation.place)) return counts.lost(*operation.loss);
    if (stack.empty() || !go_inside(operation, counts)) {
        if (open_)
            keep(operation);
        else
            go_below(operation, counts);
    }
    const bool somewhere =
        operation.go == Go::begin || operation.go == Go::leave || operation.go == Go::chained;  // no place is known
    if (stack.empty() || somewhere) return;
    stack.frames.back().function = operation.place.home;
    stack.frames.back().named = operation.place.entry == operation.place.home;
}

/// Returns whether the known frames were enough to decide.
bool CallStacks::go_inside(Operation& operation, FlowCounts& counts) {
    Stack& stack = *stack_;
    const std::size_t top = stack.frames.size() - 1;
    const bool at_base = stack.frames.size() - stack.bottom == 1;
    switch (operation.go) {
        case Go::begin: return true;
        case Go::tail:
            if (open_ && top == 0) return false;
            tail(operation, counts);
            return true;
        case Go::leave: {
            const std::size_t lowest = chain_of(top);
            if (lowest == stack.bottom) return false;
            pop_to(lowest, counts);
            return true;
        }
        case Go::enter: {
            if (open_ && top == 0) return false;
            const bool returned = !at_base && stack.frames[top].waits_for == operation.place.address;
            if (operation.loss) {
                operation.loss->inside = returned;
                counts.lost(*operation.loss);
            }
            if (returned) {
                const bool falls = stack.frames[top].falls;
                return_from(top, operation.loss.has_value(), counts);
                if (falls) go({Go::tail, operation.place, {}}, counts);
            } else {
                const bool handles = stack.frames[top].exception != nullptr;
                Frame& frame = push(operation.place.entry, nullptr, handles ? Entered::by_signal : Entered::by_call);
                frame.function = operation.place.home;
                frame.named = true;
                frame.entered = operation.place.address;
            }
            return true;
        }
        case Go::exception_return:
        case Go::chained: {
            std::size_t i = stack.frames.size();
            while (i > stack.bottom + 1 && stack.frames[i - 1].exception == nullptr) --i;
            if (i <= stack.bottom + 1) return false;
            if (operation.go == Go::chained) {
                return_from(i - 1, false, counts);
                return true;
            }
            const bool there = stack.frames[i - 1].waits_for == operation.place.address;
            const bool falls = stack.frames[i - 1].falls;
            return_from(i - 1, false, counts);
            if (there && falls) go({Go::tail, operation.place, {}}, counts);
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
std::size_t CallStacks::frame_to_jump_back_to(const Arrival& place) const {
    const Stack& stack = *stack_;
    for (std::size_t i = stack.frames.size(); i-- > stack.bottom;)
        if (stack.frames[i].again == place.address && stack.frames[i].function == place.home && !is_left(i)) return i;
    return stack.frames.size();
}

/// Finds the topmost frame that waits for the place, or whose function contains it.
bool CallStacks::find_frame(const Operation& operation, FlowCounts& counts) {
    Stack& stack = *stack_;
    const std::size_t top = stack.frames.size() - 1;
    const std::size_t last = stack.bottom;
    const std::uint64_t address = operation.place.address;
    // The topmost operation shows whether flow left its frame for this place.
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
            if (goes && i < top) left = put_aside(std::max(chain_of(i), last + 1));
            const bool falls = frame.falls;
            return_from(i, operation.loss.has_value(), counts);
            if (!left.empty()) keep_aside(std::move(left), counts);
            if (falls) go({Go::tail, operation.place, {}}, counts);
            return true;
        }
        if (open_ && i == 0) return false;  // the base frame: its function and its return address are not known
        const bool is_current = operation.go == Go::function_return && i == top;
        const bool done = goes && i < top && stack.frames[i + 1].unwinds;
        if (!frame.named || frame.function != operation.place.home || is_current || done || is_left(i)) continue;
        if (goes && i != again) {
            if (again <= top) continue;
            if (open_) return false;  // one of the unknown frames may be marked
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

/// Flow is in the function of a frame, but not at the address for which the frame waits. Leaves the frames above that
/// frame.
void CallStacks::go_on_in(std::size_t frame, const Operation& operation, FlowCounts& counts) {
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
bool CallStacks::is_waited_for_aside(std::uint64_t address) const {
    return std::any_of(stack_->aside.begin(), stack_->aside.end(), [&](const Aside& frames) {
        return std::any_of(frames.begin() + 1, frames.end(),
                           [&](const AsideFrame& f) { return f.frame.waits_for == address; });
    });
}

/// The frame whose function contains a place that no symbol names: the frame with the nearest known address at or
/// before the place. No address of another function lies between the beginning of the place's function and the place.
/// Returns the number of frames if there is none.
std::size_t CallStacks::nameless_frame_of(const Operation& operation) const {
    const Stack& stack = *stack_;
    std::size_t best = stack.frames.size();
    std::uint64_t nearest = 0;
    for (std::size_t i = stack.frames.size(); i-- > stack.bottom;) {
        const Frame& frame = stack.frames[i];
        const Frame* const above = i + 1 < stack.frames.size() ? &stack.frames[i + 1] : nullptr;
        // A function does not return to itself, and a frame that has called _Unwind_Resume is done.
        if (above == nullptr ? operation.go == Go::function_return : above->unwinds || above->tail) continue;
        if (frame.named || frame.function != operation.place.home) continue;
        for (const std::uint64_t known : {frame.entered, above == nullptr ? nothing : above->waits_for})
            if (known <= operation.place.address && (best == stack.frames.size() || known > nearest)) {
                best = i;
                nearest = known;
            }
    }
    return best;
}

/// No known frame fits: the frame below is not in the trace.
void CallStacks::go_below(const Operation& operation, FlowCounts& counts) {
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
                tail(operation, counts);
            break;
        case Go::leave:
        case Go::chained:
            pop_to(0, counts);
            settle(*stack_, counts);
            break;
        case Go::begin: break;
        case Go::enter: start_anew(operation.place, true, counts); break;
        case Go::tail:
        case Go::exception_return:
        case Go::resume:
        case Go::take_up: start_anew(operation.place, false, counts); break;
    }
}

/// A fork decides about unknown frames of its stack when it is joined.
void CallStacks::keep(const Operation& operation) {
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

/// A return to a function below all known frames.
void CallStacks::find_caller(const Arrival& place, FlowCounts& counts) {
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

void CallStacks::start_anew(const Arrival& place, bool entered, FlowCounts& counts) {
    Stack& stack = current();
    pop_to(0, counts);
    settle(stack, counts);
    const std::uint32_t node = child(stack.root, place.home, Entered::by_call, entered ? 1 : 0);
    stack.frames.push_back(
        {.node = node, .caller = stack.root, .function = place.home, .named = place.entry == place.home});
    if (observer_ != nullptr) observer_->enter(now(), 0, place.home);
}

}  // namespace waymark::analysis
