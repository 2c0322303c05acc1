// A copy of the stacks at a place of a stream, for analyses that begin there.

#include "waymark/analysis/call_stacks.h"

namespace waymark::analysis {

KeptStacks CallStacks::keep() const {
    const std::vector<CodeFunction> known = code_.functions();
    KeptStacks out{.key = key_, .now = now()};
    for (const auto& [key, stack] : order_) {
        if (stack->empty() && stack->aside.empty()) continue;
        const auto kept = [&](const Frame& frame, FunctionId entry, Entered how) {
            return KeptFrame{.function = known[frame.function],
                             .entry = known[entry],
                             .how = how,
                             .waits_for = frame.waits_for,
                             .entered = frame.entered,
                             .to = frame.to,
                             .again = frame.again,
                             .named = frame.named,
                             .returns_twice = frame.returns_twice,
                             .unwinds = frame.unwinds,
                             .tail = frame.tail,
                             .falls = frame.falls,
                             .nameless = frame.nameless,
                             .exception = frame.exception != nullptr ? std::optional(*frame.exception) : std::nullopt};
        };
        KeptStack& to = out.stacks.emplace_back();
        to.key = key;
        for (std::size_t i = stack->bottom; i < stack->frames.size(); ++i) {
            const CallTree::Node& node = stack->tree.nodes()[stack->frames[i].node];
            to.frames.push_back(kept(stack->frames[i], node.function, node.how));
        }
        for (const Aside& frames : stack->aside) {
            std::vector<KeptFrame>& aside = to.aside.emplace_back();
            for (const AsideFrame& f : frames) aside.push_back(kept(f.frame, f.entry, f.how));
        }
        to.above = stack->above + stack->bottom;
        to.cut = stack->cut;
        to.aside_given_up = stack->aside_given_up;
    }
    return out;
}

void CallStacks::take_up(const KeptStacks& kept) {
    stacks_.clear();
    order_.clear();
    carried_.clear();
    left_out_ = {};
    forget_ways();
    const auto take = [&](const KeptFrame& from) {
        Frame frame;
        frame.waits_for = from.waits_for;
        frame.function = code_.known_elsewhere(from.function);
        frame.named = from.named;
        frame.returns_twice = from.returns_twice;
        frame.unwinds = from.unwinds;
        frame.tail = from.tail;
        frame.falls = from.falls;
        frame.nameless = from.nameless;
        frame.entered = from.entered;
        frame.to = from.to;
        frame.again = from.again;
        if (from.exception) frame.exception = &*kept_exceptions_.insert(*from.exception).first;
        return frame;
    };
    for (const KeptStack& from : kept.stacks) {
        Stack& mine = stack_of(from.key);
        stack_ = &mine;
        std::uint32_t caller = mine.root;
        for (const KeptFrame& f : from.frames) {
            Frame frame = take(f);
            frame.caller = caller;
            // If the function of the frame is not known, its node is the root.
            frame.node = f.entry.kind == CodeFunction::Kind::unknown
                             ? caller
                             : child(caller, code_.known_elsewhere(f.entry), f.how, 0);
            caller = frame.node;
            if (frame.exception != nullptr) ++mine.interrupts;
            mine.frames.push_back(frame);
        }
        for (const std::vector<KeptFrame>& frames : from.aside) {
            Aside& aside = mine.aside.emplace_back();
            for (const KeptFrame& f : frames) aside.push_back({take(f), code_.known_elsewhere(f.entry), f.how});
            mine.frames_aside += aside.size();
        }
        mine.above = from.above;
        mine.cut = from.cut;
        mine.aside_given_up = from.aside_given_up;
    }
    use(kept.key);
    total_ = kept.now;
    stray_ = {};
}

}  // namespace waymark::analysis
