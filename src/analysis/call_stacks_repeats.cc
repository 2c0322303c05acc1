// Applies known repeats to the stack in use in one step (known_repeats.h).

#include "waymark/analysis/call_stacks.h"

namespace waymark::analysis {

std::size_t CallStacks::repeat(std::span<const flow::Repeat> repeats, std::uint32_t& behind, FlowCounts& counts) {
    Stack& stack = current();
    if (stack.empty() || !repeats_.asks()) return 0;
    // Keep everything that changes in registers.
    stack.frames.make_room(repeats.size());
    Frame *top = &stack.frames.back(), *lowest = &stack.frames[stack.bottom];
    std::uint64_t instructions = stack.clock.instructions;
    const std::uint64_t before = instructions, cycles = stack.clock.cycles;
    const auto put_back = [&] {
        stack.frames.set_size(stack.bottom + static_cast<std::size_t>(top - lowest) + 1);
        stack.clock.instructions = instructions;
    };
    const std::uint64_t tree = stack.serial;
    std::uint32_t edge = behind, node = top->node;
    FunctionId function = top->function;
    bool known_to_the_end = true;
    std::size_t done = 0;
    for (; done < repeats.size(); ++done) {
        KnownRepeat* const found = repeats_.find({repeats[done].number, tree, edge, node, function});
        if (found == nullptr) [[unlikely]] {
            known_to_the_end = false;
            break;
        }
        KnownRepeat& known = *found;
        if (known.simple && static_cast<std::size_t>(top - lowest) + known.rise < limits_.frames) [[likely]] {
            if (known.pops != 0) {
                if (top == lowest || !fits(*top, known.popped)) [[unlikely]] {
                    known_to_the_end = false;
                    break;
                }
                if (top->way != 0) [[likely]] {
                    WaySum& way = counts.sum(top->way);
                    ++way.returns;
                    way.inclusive.instructions += instructions + known.popped.at - top->at.instructions;
                    if (cycles != top->at.cycles) way.inclusive.cycles += cycles - top->at.cycles;
                } else if (top->edge != no_edge) {
                    stack.clock.instructions = instructions + known.popped.at;
                    count_return(*top, counts);
                }
                --top;
            }
            top->function = known.function;
            top->named = known.named;
            if (known.pushes != 0) {
                if (known.pushed.way == 0) [[unlikely]]
                    known.pushed.way = counts.known_way(known.pushed.edge, known.pushed.to);
                *++top = known.pushed;
                top->at.instructions = instructions + known.pushed.at.instructions;
                top->at.cycles = cycles;
                if (top->tail) take_on(*top, *(top - 1));
            }
            instructions += known.instructions;
        } else {
            put_back();
            if (!take(known, counts)) {
                known_to_the_end = false;
                break;
            }
            stack.frames.make_room(repeats.size() - done);
            top = &stack.frames.back();
            lowest = &stack.frames[stack.bottom];
            instructions = stack.clock.instructions;
        }
        repeats_.count(known);
        edge = known.leads;
        node = known.last_node;
        function = known.last_function;
    }
    put_back();
    total_.instructions += instructions - before;
    repeats_.add_hits(done);
    behind = edge;
    if (known_to_the_end) return done;
    const KnownRepeat::Begin begin{repeats[done].number, tree, edge, node, function};
    if (repeats_.missed(begin))
        watched_ = std::make_unique<WatchedRepeat>(begin, stack.tree, stack.frames.size(), stack.clock.instructions);
    return done;
}

void CallStacks::forget_ways() {
    for (const auto& [key, stack] : order_)
        for (std::size_t i = stack->bottom; i < stack->frames.size(); ++i) stack->frames[i].way = 0;
    repeats_.forget_ways();
}

/// The topmost frame is about to return.
void CallStacks::watch_return(const Frame& frame) {
    const Stack& stack = *stack_;
    const std::size_t left = stack.frames.size() - 1;
    if (left < watched_->base())
        watched_->popped(left, {frame.waits_for, frame.caller,
                                static_cast<std::uint32_t>(stack.clock.instructions - watched_->clock()), frame.tail});
    else if (frame.edge != no_edge)
        watched_->returned({frame.edge, frame.to}, (stack.clock - frame.at).instructions);
}

void CallStacks::remember(std::span<const flow::Range> ranges, std::uint32_t behind, FlowCounts& counts) {
    const std::unique_ptr<WatchedRepeat> watched = std::move(watched_);
    const Stack& stack = *stack_;
    const std::size_t base = watched->base();
    if (watched->given_up() || stack.frames.size() - base > KnownRepeat::most_pushes ||
        ranges.size() > KnownRepeat::most_edges)
        return;
    KnownRepeat& known = watched->known();
    KnownRepeat::Rest& rest = watched->rest();
    const Frame& top = stack.frames[base - 1];
    known.function = top.function;
    known.named = top.named;
    known.leads = behind;
    known.last_node = stack.frames.back().node;
    known.last_function = stack.frames.back().function;
    known.simple = known.pops <= 1 && stack.frames.size() - base <= 1 && !known.replaced;
    rest.node = top.node;
    rest.caller = top.caller;
    rest.entered = top.entered;
    for (std::size_t i = base; i < stack.frames.size(); ++i) {
        Frame& pushed = i == base ? known.pushed : rest.pushed[i - base - 1];
        pushed = stack.frames[i];
        pushed.at.instructions -= watched->clock();
        pushed.way = 0;
        ++known.pushes;
    }
    for (const flow::Range& range : ranges) rest.edge[rest.edges++] = range.edge;
    repeats_.put(known, rest, [&](const auto& displaced, const auto& its_rest) { add(displaced, its_rest, counts); });
}

/// Adds the counts of one repeat, multiplied by the number of repeats.
void CallStacks::add(const KnownRepeat& known, const KnownRepeat::Rest& rest, FlowCounts& counts) {
    for (std::size_t i = 0; i < rest.edges; ++i) counts.times[rest.edge[i]] += known.times;
    for (std::size_t i = 0; i < rest.visits; ++i) {
        CallTree::Node& node = rest.tree->node(rest.visit[i].node);
        node.calls += known.times * rest.visit[i].calls;
        node.self.instructions += known.times * rest.visit[i].instructions;
    }
    for (std::size_t i = 0; i < rest.turns; ++i) {
        const KnownRepeat::Turn& t = rest.turn[i];
        if (WaySum* way = counts.way(t.way.edge, t.way.to)) {
            way->times += known.times * t.times;
            way->returns += known.times * t.returns;
            way->inclusive.instructions += known.times * t.inclusive;
        } else {
            // `way` has already counted one repetition.
            counts.ways_left_out += known.times * (t.times + 2 * t.returns) - 1;
        }
    }
    left_out_.calls += known.times * rest.left_out;
}

}  // namespace waymark::analysis
