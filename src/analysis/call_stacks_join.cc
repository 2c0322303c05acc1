// Continues stacks from one part of a stream in the next part, and from one source of a thread in the next source.

#include "waymark/analysis/call_stacks.h"

namespace waymark::analysis {

void CallStacks::join(const CallStacks& fork, FlowCounts& counts) {
    Stack* const first = &current();
    for (const auto& [key, other] : fork.order_) {
        Stack& mine = key == fork.order_.front().first ? *first : stack_of(key);
        join_stack(mine, *other, other == fork.order_.front().second, counts);
    }
    total_ += fork.total_;
    stray_ += fork.stray_;
    use(fork.key_);
}

void CallStacks::join_stack(Stack& mine, const Stack& other, bool first, FlowCounts& counts) {
    stack_ = &mine;
    const Work begin = mine.clock;
    std::vector<std::uint32_t> at(other.tree.size(), CallTree::nowhere);
    const auto put = [&](Frame frame) {
        frame.node = at[frame.node];
        frame.caller = at[frame.caller];
        frame.at += begin;
        frame.way = 0;
        if (frame.exception != nullptr) ++mine.interrupts;
        mine.frames.push_back(frame);
    };
    // If the next part had no room for some of its kept frames, frames of earlier parts have no room either.
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
            mine.frames.push_back({.node = mine.root, .caller = mine.root, .nameless = true});
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

void CallStacks::finish(FlowCounts& counts) {
    for (const auto& [key, stack] : order_) {
        stack_ = stack;
        for (std::size_t i = stack->bottom; i < stack->frames.size(); ++i)
            if (const Frame& frame = stack->frames[i]; frame.exception != nullptr && frame.waits_for != nothing)
                counts.ends.push_back(frame.waits_for);
        pop_to(0, counts);
        for (const Aside& frames : stack->aside) give_up(frames, counts);
        stack->aside.clear();
        settle(*stack, counts);
    }
    stack_ = nullptr;
}

void CallStacks::hand_over(CallStacks& next, FlowCounts& counts) {
    for (const auto& [key, stack] : order_) {
        next.take_over(*this, key, *stack, counts);
        // The time of these frames has not ended.
        stack->frames.clear();
        stack->bottom = 0;
        stack->aside.clear();
        stack->frames_aside = 0;
        settle(*stack, counts);
    }
    next.use(key_);
    next.total_ = now();
    next.report_first_frames();
    stack_ = nullptr;
}

void CallStacks::take_over(const CallStacks& from, StackKey key, const Stack& stack, const FlowCounts& counts) {
    stack_ = &stack_of(key);
    Stack& mine = *stack_;
    const std::vector<CodeFunction> known = from.code_.functions();
    const std::vector<CallTree::Node>& nodes = stack.tree.nodes();
    std::vector<std::uint32_t> at(nodes.size(), CallTree::nowhere);
    at[stack.root] = mine.root;
    // Only nodes of open frames: finished calls stay where they were counted.
    const auto place = [&](std::uint32_t node) {
        std::vector<std::uint32_t> up;
        for (; at[node] == CallTree::nowhere; node = nodes[node].parent) up.push_back(node);
        for (; !up.empty(); up.pop_back())
            at[up.back()] = child(at[nodes[up.back()].parent], code_.known_elsewhere(known[nodes[up.back()].function]),
                                  nodes[up.back()].how, 0);
    };
    const auto take = [&](Frame frame) {
        frame.function = code_.known_elsewhere(known[frame.function]);
        frame.way = 0;
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
        for (const AsideFrame& f : frames)
            aside.push_back({take(f.frame), code_.known_elsewhere(known[f.entry]), f.how});
        mine.frames_aside += aside.size();
    }
    mine.above = stack.above + stack.bottom;
    mine.cut = stack.cut;
    mine.interrupts = stack.interrupts;
    mine.clock = stack.clock;
    mine.aside_given_up = stack.aside_given_up;
}

std::vector<CallStacks::Tree> CallStacks::trees() const {
    std::vector<Tree> result;
    for (const auto& [key, stack] : order_) result.push_back({key, stack->settled});
    return result;
}

}  // namespace waymark::analysis
