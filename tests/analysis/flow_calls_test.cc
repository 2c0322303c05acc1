// The rules of the call stack, by hand-made flow; and that joined parts give the same as one pass.
#include "waymark/analysis/flow_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/whole_answers.h"
#include "support/exceptions.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/analysis/flow_answers.h"
#include "waymark/analysis/flow_sink.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using flow::Block;
using flow::End;

/// Functions of 0x100 bytes each: a at 0x1000, b at 0x1100, and so on, and some whose names have a meaning; code from
/// 0x8000 on has no names.
class Program {
public:
    static constexpr std::uint64_t cold = 0x7000, resume = 0x7100, setjmp = 0x7200;
    Program() {
        for (char name = 'a'; name <= 'p'; ++name)
            symbols.add(std::string(1, name), {at(name)}, 0x100, image::SymbolKind::function);
        symbols.add("b.cold", {cold}, 0x100, image::SymbolKind::function);
        symbols.add("_Unwind_Resume", {resume}, 0x100, image::SymbolKind::function);
        symbols.add("setjmp", {setjmp}, 0x100, image::SymbolKind::function);
        EXPECT_TRUE(memory.add_bytes(std::vector<std::uint8_t>(0x1000, 0), {0x8000}).has_value());
    }
    static std::uint64_t at(char function, std::uint64_t offset = 0) {
        return 0x1000 + 0x100 * static_cast<std::uint64_t>(function - 'a') + offset;
    }
    std::uint32_t id(const Block& block) {
        for (std::uint32_t i = 0; i < blocks.size(); ++i)
            if (blocks[i] == block) return i;
        blocks.push_back(block);
        return static_cast<std::uint32_t>(blocks.size() - 1);
    }
    image::Symbols symbols;
    image::MemoryMap memory;
    std::vector<Block> blocks;
};

/// A list of elements, written the way they happen.
class Flow {
public:
    explicit Flow(Program& program) : program_(program) {}

    /// `instructions` of 4 bytes from `start` on, the last of which is given.
    Flow& range(std::uint64_t start, std::uint32_t instructions, End end, std::uint8_t flags, std::uint64_t target,
                bool taken, std::uint32_t cycles = flow::no_cycles) {
        const Block block{.start = start,
                          .target = target,
                          .bytes = 4 * instructions,
                          .instructions = instructions,
                          .section = 0,
                          .isa = isa::Isa::a32,
                          .end = end,
                          .last_bytes = 4,
                          .flags = flags};
        elements_.emplace_back(flow::Range{program_.id(block) * 2 + (taken ? 1U : 0U), 0, cycles, 1});
        return *this;
    }
    Flow& plain(std::uint64_t start, std::uint32_t n = 1) { return range(start, n, End::not_a_waypoint, 0, 0, false); }
    Flow& call(std::uint64_t start, std::uint64_t to, std::uint32_t n = 1) {
        return range(start, n, End::direct, Block::link, to, true);
    }
    Flow& call_indirect(std::uint64_t start, std::uint32_t n = 1) {
        return range(start, n, End::indirect, Block::link, 0, true);
    }
    Flow& ret(std::uint64_t start, std::uint32_t n = 1) {
        return range(start, n, End::indirect, Block::function_return, 0, true);
    }
    Flow& eret(std::uint64_t start, std::uint32_t n = 1) {
        return range(start, n, End::indirect, Block::exception_return, 0, true);
    }
    Flow& jump(std::uint64_t start, std::uint64_t to, std::uint32_t n = 1) {
        return range(start, n, End::direct, 0, to, true);
    }
    Flow& event(flow::What what) {
        elements_.emplace_back(std::move(what));
        return *this;
    }
    Flow& exception(std::uint32_t number, std::uint64_t from, std::uint64_t vector) {
        return event(
            flow::Exception{&synthetic::exception_type(number), Address{from}, Address{vector}, flow::no_cycles});
    }
    /// The context of a program; some programs run in Hyp mode.
    Flow& context(std::uint32_t id) { return event(flow::Context{true, id % 2 == 0, id, {}}); }
    Flow& gap() { return event(Gap{{10}, {20}, GapReason::reserved_header}); }
    Flow& on(flow::TraceOnReason reason) { return event(flow::TraceOn{reason}); }

    using Element = std::variant<flow::Range, flow::What>;
    [[nodiscard]] const std::vector<Element>& elements() const { return elements_; }

private:
    Program& program_;
    std::vector<Element> elements_;
};

/// Names consecutive ranges as a decoder does that recognises repeats: equal ranges get equal names everywhere.
class Repeats {
public:
    explicit Repeats(std::uint64_t seed) : seed_(seed) {}
    std::vector<flow::Repeat> of(const std::vector<flow::Range>& ranges, const std::vector<flow::Event>& events) {
        std::vector<flow::Repeat> out;
        std::size_t end = 0;
        for (std::size_t i = 0; i < ranges.size(); i = std::max(i + 1, end)) {
            std::vector<std::uint32_t> edges;
            // The first range decides how many are taken together, if any.
            const std::size_t most = mix(ranges[i].edge, seed_) % 8 * 4;
            for (end = i; end < ranges.size() && edges.size() < most; ++end) {
                const bool amid = end > i && std::any_of(events.begin(), events.end(),
                                                         [&](const flow::Event& e) { return e.before == end; });
                if (amid || ranges[end].cycles != flow::no_cycles) break;
                edges.push_back(ranges[end].edge);
            }
            if (edges.empty()) continue;
            const auto count = static_cast<std::uint32_t>(edges.size());
            out.push_back(
                {numbers_.try_emplace(edges, numbers_.size() + 1).first->second, static_cast<std::uint32_t>(i), count});
        }
        return out;
    }

private:
    std::uint64_t seed_;
    std::map<std::vector<std::uint32_t>, std::uint64_t> numbers_;
};

void consume(flow::Sink& sink, const Program& program, const std::vector<Flow::Element>& elements, std::size_t from,
             std::size_t to, std::size_t at_once = 7, Repeats* repeats = nullptr) {
    while (from < to) {
        std::vector<flow::Range> ranges;
        std::vector<flow::Event> events;
        for (const std::size_t end = std::min(to, from + at_once); from < end; ++from) {
            if (const auto* range = std::get_if<flow::Range>(&elements[from]))
                ranges.push_back(*range);
            else
                events.push_back(
                    {static_cast<std::uint32_t>(ranges.size()), {from}, std::get<flow::What>(elements[from])});
        }
        std::vector<flow::Repeat> named;
        if (repeats != nullptr) named = repeats->of(ranges, events);
        sink.consume({program.blocks, {}, ranges, events, named});
    }
}

std::string name_of(const Program& program, const CodeFunction& f) {
    switch (f.kind) {
        case CodeFunction::Kind::symbol: return std::string(program.symbols.find({f.value})->name);
        case CodeFunction::Kind::exception: return "!" + std::to_string(f.exception.number);
        case CodeFunction::Kind::section: return "?";
        case CodeFunction::Kind::entry: return "@" + std::to_string(f.value);
        case CodeFunction::Kind::unknown: break;
    }
    return "*";
}

/// `a 1/5; a.b 2/7`: paths with calls and own instructions, in the order nodes were added; all Context IDs. `a>b` is a
/// tail call, `a^b` a signal.
std::string tree_text(const Program& program, const FlowSink& sink, const char* between = "; ") {
    const std::vector<CodeFunction> functions = sink.code().functions();
    std::string out;
    for (const FlowCalls::Tree& tree : sink.calls().trees()) {
        std::vector<std::string> paths(tree.tree.size());
        for (std::size_t i = 0; i < tree.tree.size(); ++i) {
            const CallTree::Node& node = tree.tree.nodes()[i];
            const bool root = i == 0;
            if (root && node.self == Work{}) continue;
            if (!root)
                paths[i] = (node.parent == 0 ? ""
                                             : paths[node.parent] + (node.how == Entered::by_tail_call ? ">"
                                                                     : node.how == Entered::by_signal  ? "^"
                                                                                                       : ".")) +
                           name_of(program, functions[node.function]);
            out += out.empty() ? "" : between;
            if (tree.key.context_id) out += std::to_string(*tree.key.context_id) + ":";
            out += (root ? "*" : paths[i]) + " " + std::to_string(node.calls) + "/" +
                   std::to_string(node.self.instructions);
            if (node.self.cycles != 0) out += "/" + std::to_string(node.self.cycles);
        }
    }
    return out;
}

/// All sums, as text that does not depend on how they were added up.
std::string sums_text(const FlowSink& sink) {
    std::map<Way, WaySum> ways;
    std::map<std::uint32_t, ExceptionSum> exceptions;
    std::map<std::size_t, std::uint64_t> times;
    std::map<Loss, std::uint64_t> losses;
    for (const FlowCounts* c : sink.counts()) {
        for (std::size_t i = 0; i < c->ways().size(); ++i) {
            WaySum& sum = ways[c->ways()[i]];
            sum.times += c->way_sums()[i].times;
            sum.returns += c->way_sums()[i].returns;
            sum.inclusive += c->way_sums()[i].inclusive;
        }
        for (const auto& [type, e] : c->exceptions) {
            ExceptionSum& sum = exceptions[type.number];
            sum.times += e.times;
            sum.nested += e.nested;
            sum.returned += e.returned;
            sum.sum += e.sum;
            sum.most.instructions = std::max(sum.most.instructions, e.most.instructions);
            sum.least.instructions = std::min(sum.least.instructions, e.least.instructions);
        }
        for (std::size_t i = 0; i < c->times.size(); ++i)
            if (c->times[i] != 0) times[i] += c->times[i];
        for (std::size_t i = 0; i < c->losses().size(); ++i) losses[c->losses()[i]] += c->loss_times()[i];
    }
    std::string out;
    const auto add = [&](auto... values) { ((out += std::to_string(values) + " "), ...); };
    for (const auto& [way, s] : ways)
        if (s != WaySum{}) {
            out += "\nway ";
            add(way.edge, way.to, s.times, s.returns, s.inclusive.instructions, s.inclusive.cycles);
        }
    for (const auto& [number, e] : exceptions) {
        out += "\nexception ";
        add(number, e.times, e.nested, e.returned, e.sum.instructions, e.most.instructions);
    }
    for (const auto& [edge, n] : times) {
        out += "\nedge ";
        add(edge, n);
    }
    std::map<Resumption, std::uint64_t> resumptions;
    for (const FlowCounts* c : sink.counts())
        for (std::size_t i = 0; i < c->resumptions().size(); ++i)
            resumptions[c->resumptions()[i]] += c->resumption_times()[i];
    for (const auto& [how, n] : resumptions) {
        out += "\nresumption ";
        add(how.from, how.to, how.interrupted, n);
    }
    for (const auto& [level, sum] : sink.calls().levels().sums()) {
        out += "\nlevel ";
        add(static_cast<int>(level.security), level.el.value_or(9), level.hyp, level.aarch64, sum.entered,
            sum.work.instructions, sum.work.cycles);
    }
    for (const auto& [loss, n] : losses) {
        out += "\nloss ";
        add(static_cast<int>(loss.how), loss.from, loss.to, loss.regained, loss.inside, loss.off, loss.begins, n);
    }
    std::map<std::size_t, std::uint64_t> block_cycles;
    std::multiset<std::uint64_t> ends;
    std::uint64_t cycles = 0, unseen = 0;
    for (const FlowCounts* c : sink.counts()) {
        for (std::size_t i = 0; i < c->block_cycles.size(); ++i)
            if (c->block_cycles[i] != 0) block_cycles[i] += c->block_cycles[i];
        ends.insert(c->ends.begin(), c->ends.end());
        cycles += c->cycles;
        unseen += c->unseen_instructions;
    }
    for (const auto& [block, n] : block_cycles) {
        out += "\nblock cycles ";
        add(block, n);
    }
    out += "\nends ";
    for (const std::uint64_t end : ends) add(end);
    out += "\ncycles, unseen, left out, work ";
    const CallStacks::LeftOut& left = sink.calls().left_out();
    const Work work = sink.calls().now();
    add(cycles, unseen, left.frames, left.calls, left.contexts, work.instructions, work.cycles);
    return out;
}

class Calls : public testing::Test {
protected:
    std::string run(const Flow& delivered, FlowCalls::Limits limits = {}) {
        FlowCode code(program.symbols, program.memory);
        FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = true, .limits = limits});
        consume(sink, program, delivered.elements(), 0, delivered.elements().size());
        sink.finish();
        sums = sums_text(sink);
        exceptions.clear();
        losses.clear();
        left_out = sink.calls().left_out();
        for (const FlowCounts* c : sink.counts()) {
            for (const auto& [type, e] : c->exceptions) exceptions[type.number] = e;
            losses = c->losses();
        }
        Answers out;
        fill_flow_answers(out, {{.sink = &sink, .source = "core"}}, {});
        whole_answers.add(out);
        return tree_text(program, sink);
    }
    static std::uint64_t at(char function, std::uint64_t offset = 0) { return Program::at(function, offset); }

    Program program;
    Flow flow{program};
    std::string sums;
    std::map<std::uint32_t, ExceptionSum> exceptions;
    std::vector<Loss> losses;
    FlowCalls::LeftOut left_out;
    support::WholeAnswers whole_answers;
};

TEST_F(Calls, ACallAndItsReturn) {
    flow.call(at('a'), at('b'), 2).ret(at('b'), 3).plain(at('a', 8), 4);
    EXPECT_EQ(run(flow), "a 0/6; a.b 1/3");
}

TEST_F(Calls, RecursionThatIsDirectIsOneNode) {
    flow.call(at('a'), at('b')).call(at('b'), at('b')).call(at('b'), at('b')).ret(at('b', 4)).ret(at('b', 4));
    flow.ret(at('b', 4)).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 3/5");
}

TEST_F(Calls, WhatRanAtEachLevelIsCounted) {
    const auto level = [&](std::uint8_t el, bool ns, std::uint32_t id) {
        flow.event(flow::Context{.ns = ns, .hyp = el == 2, .context_id = id, .vmid = {}, .aarch64 = true, .el = el});
    };
    level(3, false, 1);
    flow.jump(at('a'), at('b'), 2);
    level(0, true, 1);
    flow.call(at('b'), at('c'), 5);
    level(0, true, 2);  // another program at the same level
    flow.ret(at('c'), 7);
    level(3, false, 2);
    flow.plain(at('d'), 11);
    run(flow);
    EXPECT_NE(sums.find("\nlevel 0 3 0 1 2 13 0 \nlevel 1 0 0 1 1 12 0 \n"), std::string::npos) << sums;
}

TEST_F(Calls, AReturnUnwindsSeveralFrames) {
    flow.call(at('a'), at('b')).call(at('b'), at('c')).call(at('c'), at('d'));
    flow.ret(at('d')).plain(at('a', 4), 5);  // longjmp
    EXPECT_EQ(run(flow), "a 0/6; a.b 1/1; a.b.c 1/1; a.b.c.d 1/1");
}

TEST_F(Calls, AReturnToAnotherPlaceOfACallersFunctionGoesOnThere) {
    flow.call(at('a'), at('b')).call(at('b'), at('c')).ret(at('c')).plain(at('b', 0x40), 5).ret(at('b', 0x60));
    flow.plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/7; a.b.c 1/1");
}

TEST_F(Calls, ATailCallLiesOnTheFunctionThatJumpedAndReturnsWithIt) {
    flow.call(at('a'), at('b')).jump(at('b'), at('c')).jump(at('c'), at('d'), 2).call(at('d'), at('e')).ret(at('e'));
    flow.ret(at('d', 4), 3).plain(at('a', 4), 5);
    EXPECT_EQ(run(flow), "a 0/6; a.b 1/1; a.b>c 1/2; a.b>c>d 1/4; a.b>c>d.e 1/1");
    EXPECT_NE(sums.find("way 1 4352 0 1 8 0"), std::string::npos) << sums;  // the cost of the whole call of b
    EXPECT_NE(sums.find("way 3 4608 0 1 7 0"), std::string::npos) << sums;  // the part of the call's cost from the jump
                                                                            // to c on
    EXPECT_NE(sums.find("way 5 4864 0 1 5 0"), std::string::npos) << sums;
}

TEST_F(Calls, AFunctionThatIsCalledAndJumpedToIsTwoNodes) {
    flow.call(at('a'), at('b')).call(at('b'), at('c')).ret(at('c')).jump(at('b', 4), at('c')).ret(at('c'));
    flow.plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/2; a.b.c 1/1; a.b>c 1/1");
}

TEST_F(Calls, AmidAFunctionThatLedHereByTailCallsItGoesOn) {
    flow.call(at('a'), at('b')).jump(at('b'), at('c')).jump(at('c'), at('b', 0x40)).ret(at('b', 0x40));
    flow.plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/2; a.b>c 1/1");
}

TEST_F(Calls, NothingReturnsToAFunctionThatMadeATailCall) {
    // b calls itself through c, which jumps to b; a longjmp to b goes to the frame that is still there.
    flow.call(at('a'), at('b')).call(at('b'), at('c')).jump(at('c'), at('b')).jump(at('b'), at('d')).ret(at('d'));
    flow.ret(at('b', 0x40)).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/2; a.b.c 1/1; a.b.c>b 1/1; a.b.c>b>d 1/1");
    Flow other{program};
    other.call(at('a'), at('b')).jump(at('b'), at('c')).call(at('c'), at('d')).ret(at('d')).ret(at('b', 0x40));
    EXPECT_EQ(run(other), "b 0/1; b.a 0/1; b.a.b 1/1; b.a.b>c 1/1; b.a.b>c.d 1/1");
}

TEST_F(Calls, OfManyTailCallsOnOneAnotherTheLastReplaceEachOther) {
    flow.call(at('a'), at('b'));
    for (int i = 0; i < 100; ++i) flow.jump(at(i % 2 == 0 ? 'b' : 'c'), at(i % 2 == 0 ? 'c' : 'b'));
    flow.ret(at('b')).plain(at('a', 4));
    const std::string tree = run(flow);
    EXPECT_EQ(std::count(tree.begin(), tree.end(), ';'), 1 + std::ptrdiff_t{CallStacks::most_tails}) << tree;
    EXPECT_TRUE(tree.starts_with("a 0/2; a.b 1/1; a.b>c 1/1; a.b>c>b 1/1; ")) << tree;
}

TEST_F(Calls, ABlockThatGoesOnIntoTheNextFunctionIsPartOfBoth) {
    // b has two instructions before c begins, and c returns for both.
    flow.call(at('a'), at('b', 0xf8)).ret(at('b', 0xf8), 5).plain(at('a', 4));
    // All of c, and the last of the three calls, are between them.
    flow.call(at('a', 8), at('b', 0xfc))
        .call(at('b', 0xfc), at('e'), 66)
        .ret(at('e'))
        .ret(at('d', 4))
        .plain(at('a', 12));
    EXPECT_EQ(run(flow), "a 0/4; a.b 2/3; a.b>c 2/67; a.b>c>d 1/2; a.b>c>d.e 1/1");
    // A branch back in the function that the block ends in is no call; cycles are spread by instructions.
    Flow other{program};
    other.range(at('b', 0xf8), 6, End::direct, Block::conditional, at('c'), true, 12)
        .range(at('c'), 4, End::direct, Block::conditional, at('c'), false, 4)
        .ret(at('c', 0x10), 2);
    EXPECT_EQ(run(other), "b 0/2/4; b>c 1/10/12");
}

TEST_F(Calls, AFunctionThatIsTracedAloneIsCalledTheFirstTimeToo) {
    for (int i = 0; i < 3; ++i) flow.on(flow::TraceOnReason::enabled).ret(at('g'), 3);
    EXPECT_EQ(run(flow), "g 3/9");
    Flow amid{program};
    amid.gap().on(flow::TraceOnReason::enabled).ret(at('g'), 3);
    EXPECT_EQ(run(amid), "g 0/3");
    Flow begins{program};
    begins.on(flow::TraceOnReason::begin).ret(at('g'), 3);
    EXPECT_EQ(run(begins), "g 0/3");
}

TEST_F(Calls, WhatBeginsWhileAnExceptionLastsIsASignal) {
    flow.plain(at('a')).event(flow::Exception{&synthetic::exception_type(14), Address{at('a', 4)}, {}, {}});
    flow.on(flow::TraceOnReason::enabled).plain(at('h'), 2).on(flow::TraceOnReason::enabled).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.!14 1/0; a.!14^h 1/2");
}

TEST_F(Calls, AJumpIntoTheMiddleOfAFunctionIsNoCallOfIt) {
    flow.call(at('a'), at('b')).jump(at('b'), at('c', 8)).ret(at('c', 8), 3).plain(at('a', 4), 5);
    EXPECT_EQ(run(flow), "a 0/6; a.b 1/1; a.b>c 0/3");
}

TEST_F(Calls, TheRareCodeOfAFunctionIsTheFunction) {
    flow.call(at('a'), at('b')).jump(at('b'), Program::cold).jump(Program::cold, at('b', 16), 2).ret(at('b', 16));
    EXPECT_EQ(run(flow), "a 0/1; a.b 1/4");
}

TEST_F(Calls, ALongjmpGoesToTheFrameThatCalledSetjmp) {
    // b calls itself, and setjmp in the first of its frames alone; c calls longjmp.
    flow.call(at('a'), at('b'))
        .call(at('b'), Program::setjmp)
        .ret(Program::setjmp)
        .call(at('b', 4), at('c'))
        .call(at('c'), at('b'));
    flow.call(at('b', 4), at('d')).ret(at('d'), 3).call(at('b', 4), at('e')).ret(at('e')).ret(at('b', 8));
    EXPECT_EQ(run(flow), "a 0/1; a.b 1/4; a.b.setjmp 1/1; a.b.c 1/1; a.b.c.b 1/1; a.b.c.b.d 1/3; a.b.e 1/1");
}

TEST_F(Calls, AHandlerOfAnExceptionIsInTheFrameOfItsFunction) {
    // d jumps into the middle of a, from there b is called.
    flow.call(at('a'), at('b')).call(at('b'), at('c')).call(at('c'), at('d'));
    flow.range(at('d'), 1, End::indirect, 0, 0, true).call(at('a', 32), at('b')).ret(at('b')).plain(at('a', 36));
    EXPECT_EQ(run(flow), "a 0/3; a.b 2/2; a.b.c 1/1; a.b.c.d 1/1");
    EXPECT_NE(sums.find("resumption 4100 4128 0 1"), std::string::npos) << sums;
}

TEST_F(Calls, UnwindingGoesOnInTheNextFrameOfAFunctionThatCallsItself) {
    // Each frame of b has a cleanup: at its end flow continues in the frame below.
    flow.call(at('a'), at('b')).call(at('b'), at('c')).call(at('c'), at('b')).call(at('b'), at('d'));
    flow.range(at('d'), 1, End::indirect, 0, 0, true).call(at('b', 32), Program::resume);
    flow.range(Program::resume, 1, End::indirect, 0, 0, true).call(at('b', 32), at('e')).ret(at('e')).ret(at('b', 36));
    flow.plain(at('a', 4));
    EXPECT_EQ(run(flow),
              "a 0/2; a.b 1/3; a.b.c 1/1; a.b.c.b 1/2; a.b.c.b.d 1/1; a.b.c.b._Unwind_Resume 1/1; a.b.e 1/1");
}

TEST_F(Calls, ACoroutineGoesOnWhereItGaveWay) {
    // a calls s (here b), which switches to coroutine c; c calls d, which switches back by calling b; and again.
    flow.call(at('a'), at('b')).ret(at('b')).call(at('c'), at('d')).call(at('d'), at('b')).ret(at('b'));
    flow.call(at('a', 4), at('e')).ret(at('e'));
    flow.call(at('a', 8), at('b')).ret(at('b')).ret(at('d', 4)).call(at('c', 4), at('e')).ret(at('e'));
    flow.ret(at('c', 8)).plain(at('a', 12));
    EXPECT_EQ(run(flow), "a 0/4; a.b 2/2; a.b>c 1/3; a.b>c.d 1/2; a.b>c.d.b 1/1; a.e 1/1; a.b>c.e 1/1");
}

TEST_F(Calls, CoroutinesThatTakeTurnsGoOnEach) {
    // a → c → d → a by way of b, several times.
    const auto turn = [&](char from, std::uint64_t offset) { flow.call(at(from, offset), at('b')).ret(at('b')); };
    turn('a', 0);
    turn('c', 0);
    turn('d', 0);
    turn('a', 4);
    turn('c', 4);
    turn('d', 4);
    flow.call(at('a', 8), at('e')).ret(at('e')).plain(at('a', 12));
    const std::string text = run(flow);
    EXPECT_NE(text.find("a 0/4;"), std::string::npos) << text;
    EXPECT_NE(text.find("a.e 1/1"), std::string::npos) << text;
    EXPECT_EQ(text.find("e 1/1"), text.find("a.e 1/1") + 2) << text;
    EXPECT_NE(text.find("a.b>c 1/2;"), std::string::npos) << text;
}

TEST_F(Calls, ACallerThatBecomesKnownStandsAboveAllThatWas) {
    flow.call(at('c'), at('d')).ret(at('d')).ret(at('c', 4)).ret(at('b', 0x20), 2).plain(at('a', 0x20), 3);
    EXPECT_EQ(run(flow), "a 0/3; a.b 0/2; a.b.c 0/2; a.b.c.d 1/1");
}

TEST_F(Calls, AReturnToTheBeginningOfAFunctionIsAJump) {
    // A signal right behind a return is traced so.
    flow.call(at('a'), at('b')).ret(at('b'), 2).call(at('c'), at('d')).ret(at('d'));
    flow.plain(at('c', 4)).on(flow::TraceOnReason::enabled).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/2; a.b>c 1/2; a.b>c.d 1/1");
}

TEST_F(Calls, AnExceptionIsAFrameThatWaits) {
    flow.call(at('a'), at('b'), 2).plain(at('b'), 3);
    flow.exception(14, at('b', 12), at('o')).call(at('o'), at('p')).ret(at('p')).eret(at('o', 4));
    flow.ret(at('b', 12)).plain(at('a', 8));
    EXPECT_EQ(run(flow), "a 0/3; a.b 1/4; a.b.!14 1/0; a.b.!14.o 1/2; a.b.!14.o.p 1/1");
    EXPECT_EQ(exceptions[14].times, 1U);
    EXPECT_EQ(exceptions[14].returned, 1U);
    EXPECT_EQ(exceptions[14].sum.instructions, 3U);
    EXPECT_EQ(exceptions[14].nested, 0U);
}

TEST_F(Calls, AnExceptionWithoutAVectorLeadsToWhereFlowGoesOn) {
    const auto without_vector = [](std::uint32_t number, std::uint64_t from) {
        return flow::Exception{&synthetic::exception_type(number), Address{from}, {}, flow::no_cycles};
    };
    flow.call(at('a'), at('b'), 2).plain(at('b'), 3).event(without_vector(14, at('b', 12)));
    flow.call(at('o'), at('p')).event(without_vector(15, at('p'))).eret(at('n'), 2).ret(at('p')).eret(at('o', 4));
    flow.ret(at('b', 12)).plain(at('a', 8));
    EXPECT_EQ(run(flow),
              "a 0/3; a.b 1/4; a.b.!14 1/0; a.b.!14.o 1/2; a.b.!14.o.p 1/1; a.b.!14.o.p.!15 1/0; "
              "a.b.!14.o.p.!15.n 1/2");
    EXPECT_EQ(exceptions[14].returned, 1U);
    EXPECT_EQ(exceptions[14].sum.instructions, 5U);
    EXPECT_EQ(exceptions[15].returned, 1U);
    EXPECT_EQ(exceptions[15].nested, 1U);

    // A kernel that is not traced.
    Flow user(program);
    user.plain(at('a')).event(without_vector(14, at('a', 4))).on(flow::TraceOnReason::enabled).plain(at('a', 4));
    EXPECT_EQ(run(user), "a 0/2; a.!14 1/0");
}

TEST_F(Calls, AChainedExceptionTakesThePlaceOfTheOneThatEnded) {
    const auto chained = [](const flow::ExceptionType& type, std::uint64_t vector) {
        return flow::Exception{&type, {}, Address{vector}, flow::no_cycles};
    };
    flow.call(at('a'), at('b'), 2).plain(at('b'), 3).exception(14, at('b', 12), at('n')).eret(at('n'), 2);
    flow.event(chained(synthetic::exception_type(15), at('o'))).eret(at('o'), 4).ret(at('b', 12)).plain(at('a', 8));
    EXPECT_EQ(run(flow), "a 0/3; a.b 1/4; a.b.!14 1/0; a.b.!14.n 1/2; a.b.!15 1/0; a.b.!15.o 1/4");
    EXPECT_EQ(exceptions[14].returned, 1U);
    EXPECT_EQ(exceptions[14].sum.instructions, 2U);
    EXPECT_EQ(exceptions[15].nested, 0U);
    EXPECT_EQ(exceptions[15].returned, 1U);
    EXPECT_EQ(exceptions[15].sum.instructions, 4U);

    // Where the trace shows no exception return, the exception does: only a core of the M profile chains it.
    static constexpr flow::ExceptionType pend_sv{99, flow::ExceptionClass::pend_sv, "PendSV"};
    Flow held(program);
    held.plain(at('b'), 3).exception(14, at('b', 12), at('n')).ret(at('n'), 2).event(chained(pend_sv, at('o')));
    held.eret(at('o'), 4).plain(at('b', 12));
    EXPECT_EQ(run(held), "b 0/4; b.!14 1/0; b.!14.n 1/2; b.!99 1/0; b.!99.o 1/4");
    EXPECT_EQ(exceptions[14].returned, 1U);
    EXPECT_EQ(exceptions[99].returned, 1U);
}

TEST_F(Calls, AnExceptionBehindACallComesFromTheCalledFunction) {
    flow.call(at('a'), at('b')).exception(14, at('b'), at('o')).eret(at('o')).ret(at('b'), 3).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/3; a.b.!14 1/0; a.b.!14.o 1/1");
}

TEST_F(Calls, BehindASystemCallTheNextFunctionIsEnteredOnlyIfFlowReturnsThere) {
    // The last instruction of b is a system call; c lies behind it.
    flow.call(at('a'), at('b', 0xf8)).plain(at('b', 0xf8), 2).exception(2, at('c'), at('o')).plain(at('o'), 3);
    EXPECT_EQ(run(flow), "a 0/1; a.b 1/2; a.b.!2 1/0; a.b.!2.o 1/3");
    flow.eret(at('o', 12)).ret(at('c'), 4).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/2; a.b.!2 1/0; a.b.!2.o 1/4; a.b>c 1/4");
    // A kernel that is not traced.
    Flow user(program);
    user.call(at('a'), at('b', 0xfc)).plain(at('b', 0xfc));
    user.event(flow::Exception{&synthetic::exception_type(2), Address{at('c')}, {}, flow::no_cycles});
    EXPECT_EQ(run(user), "a 0/1; a.b 1/1; a.b.!2 1/0");
    user.on(flow::TraceOnReason::enabled).ret(at('c'), 4).plain(at('a', 4));
    EXPECT_EQ(run(user), "a 0/2; a.b 1/1; a.b.!2 1/0; a.b>c 1/4");
    // The trace ends behind the call, or has a gap there.
    Flow ends(program);
    ends.call(at('a'), at('b', 0xfc)).plain(at('b', 0xfc));
    EXPECT_EQ(run(ends), "a 0/1; a.b 1/1");
    ends.gap().ret(at('d'), 4);
    EXPECT_EQ(run(ends), "a 0/1; a.b 1/1; d 0/4");
    Flow on(program);
    on.call(at('a'), at('b', 0xfc)).plain(at('b', 0xfc)).gap().ret(at('c'), 4).plain(at('a', 4));
    EXPECT_EQ(run(on), "a 0/2; a.b 1/1; a.b>c 1/4");
}

TEST_F(Calls, ExceptionsNest) {
    flow.plain(at('a')).exception(14, at('a', 4), at('o')).plain(at('o'), 2);
    flow.exception(15, at('o', 8), at('p')).eret(at('p'), 3).eret(at('o', 8)).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.!14 1/0; a.!14.o 1/3; a.!14.o.!15 1/0; a.!14.o.!15.p 1/3");
    EXPECT_EQ(exceptions[14].sum.instructions, 6U);
    EXPECT_EQ(exceptions[15].sum.instructions, 3U);
    EXPECT_EQ(exceptions[15].nested, 1U);
}

TEST_F(Calls, AHandlerIsCalledThoughItsFirstInstructionHasYetToRun) {
    const std::string both = "a 0/2; a.!14 1/0; a.!14.o 1/3; a.!14.o.!15 1/0; a.!14.o.!15.p 1/3";
    flow.plain(at('a')).exception(14, at('a', 4), at('o')).exception(15, at('o'), at('p'));
    flow.eret(at('p'), 3).eret(at('o'), 3).plain(at('a', 4));
    EXPECT_EQ(run(flow), both);

    Flow unknown(program);
    unknown.plain(at('a')).exception(14, at('a', 4), at('o'));
    unknown.event(flow::Exception{&synthetic::exception_type(15), {}, Address{at('p')}, flow::no_cycles});
    unknown.eret(at('p'), 3).eret(at('o'), 3).plain(at('a', 4));
    EXPECT_EQ(run(unknown), both) << "where the first is gone on with is not known";

    Flow other(program);
    other.context(1).plain(at('a')).exception(14, at('a', 4), at('o')).context(2).plain(at('b'));
    other.context(1).eret(at('o'), 3).plain(at('a', 4));
    EXPECT_EQ(run(other), "1:a 0/2; 1:a.!14 1/0; 1:a.!14.o 1/3; 2:b 0/1");

    Flow lost(program);
    lost.plain(at('a')).exception(14, at('a', 4), at('o')).gap().on(flow::TraceOnReason::begin).plain(at('a', 8));
    EXPECT_EQ(run(lost), "a 0/2; a.!14 1/0") << "none of it was seen";
}

TEST_F(Calls, AnExceptionReturnElsewhereResumesInTheFrameOfThatFunction) {
    flow.plain(at('a'))
        .exception(9, at('a', 4), at('o'))
        .eret(at('o'))
        .plain(at('a', 8), 3);  // skips the interrupted instruction
    EXPECT_EQ(run(flow), "a 0/4; a.!9 1/0; a.!9.o 1/1");
    EXPECT_EQ(exceptions[9].returned, 1U);
}

TEST_F(Calls, AContextHasItsOwnStack) {
    flow.context(1).call(at('a'), at('p')).context(2).plain(at('p', 4)).call(at('p', 8), at('c')).context(1);
    flow.plain(at('p', 4)).ret(at('p', 8)).plain(at('a', 4), 2).context(2).plain(at('c'), 3);
    EXPECT_EQ(run(flow), "1:a 0/3; 1:a.p 1/2; 2:p 0/2; 2:p.c 1/3");
}

TEST_F(Calls, AfterAGapFlowResumesInTheTopmostFrameOfItsFunction) {
    flow.call(at('a'), at('b')).call(at('b'), at('c')).gap().on(flow::TraceOnReason::begin).plain(at('b', 0x30), 4);
    flow.ret(at('b', 0x40)).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.b 1/6; a.b.c 1/0");
}

TEST_F(Calls, AfterAGapElsewhereTheStackStartsAnew) {
    flow.call(at('a'), at('b')).plain(at('b')).on(flow::TraceOnReason::overflow).plain(at('d', 4), 4);
    EXPECT_EQ(run(flow), "a 0/1; a.b 1/1; d 0/4");
    EXPECT_EQ(losses.size(), 2U);  // the beginning, and this one
    EXPECT_EQ(losses.back(), (Loss{Loss::From::place, at('b', 4), at('d', 4), true, false}));
}

TEST_F(Calls, ACallOfCodeThatIsLeftOutOfTheTraceReturns) {
    flow.call(at('a'), at('b')).on(flow::TraceOnReason::enabled).plain(at('a', 4), 3);
    EXPECT_EQ(run(flow), "a 0/4; a.b 1/0");
    EXPECT_EQ(losses.back(), (Loss{Loss::From::place, at('b'), at('a', 4), true, true, true}));
}

TEST_F(Calls, CodeThatIsLeftOutOfTheTraceCallsBack) {
    flow.call(at('a'), at('b')).on(flow::TraceOnReason::enabled).ret(at('c'), 2).on(flow::TraceOnReason::enabled);
    flow.ret(at('c'), 2).on(flow::TraceOnReason::enabled).plain(at('a', 4), 3);
    EXPECT_EQ(run(flow), "a 0/4; a.b 1/0; a.b.c 2/4");
}

TEST_F(Calls, CodeWithoutSymbolsGoesByWhereItIsCalled) {
    flow.call(at('a'), 0x8100).call(0x8100, 0x8200).ret(0x8200).ret(0x8104).plain(at('a', 4));
    EXPECT_EQ(run(flow), "a 0/2; a.@33024 1/2; a.@33024.@33280 1/1");
}

TEST_F(Calls, AHandlerInCodeWithoutSymbolsIsInTheFrameOfItsFunction) {
    // a calls 0x8100, which calls 0x8300, which calls 0x8200, which throws by calling b: the handler is at 0x8140.
    flow.call(at('a'), 0x8100).call(0x8100, 0x8300).call(0x8300, 0x8200).call(0x8200, at('b')).ret(at('b'));
    flow.plain(0x8140, 2).ret(0x8148).plain(at('a', 4));
    EXPECT_EQ(run(flow),
              "a 0/2; a.@33024 1/4; a.@33024.@33536 1/1; a.@33024.@33536.@33280 1/1; "
              "a.@33024.@33536.@33280.b 1/1");
    EXPECT_NE(sums.find("resumption 33028 33088 0 1"), std::string::npos) << sums;
}

TEST_F(Calls, OfAFunctionWithoutASymbolThatWasNotSeenToBeginItsCallsAreKnown) {
    // Flow is known from the middle of 0x8100 on. It calls 0x8080, which throws; the handler is behind the call.
    flow.plain(0x8110).call(0x8114, 0x8080).call(0x8080, at('b')).ret(at('b')).plain(0x8140, 2);
    EXPECT_EQ(run(flow), "? 0/4; ?.@32896 1/1; ?.@32896.b 1/1");
}

TEST_F(Calls, UnwindingWithoutSymbolsGoesOnInTheNextFrame) {
    // 0x8100 and 0x8300 call each other; 0x8100 has a cleanup at 0x8140, at whose end unwinding continues further down.
    flow.call(at('a'), 0x8100).call(0x8100, 0x8300).call(0x8300, 0x8100).call(0x8100, at('b')).ret(at('b'));
    flow.call(0x8140, Program::resume).ret(Program::resume).call(0x8140, Program::resume).ret(Program::resume);
    flow.plain(at('a', 32));
    EXPECT_EQ(run(flow),
              "a 0/2; a.@33024 1/2; a.@33024.@33536 1/1; a.@33024.@33536.@33024 1/2; "
              "a.@33024.@33536.@33024.b 1/1; a.@33024.@33536.@33024._Unwind_Resume 1/1; "
              "a.@33024._Unwind_Resume 1/1");
}

TEST_F(Calls, WhatPassesBetweenCallAndReturnIsTheCalls) {
    flow.call(at('a'), at('b')).call(at('b'), at('c')).ret(at('c'), 5).ret(at('b', 4), 2).plain(at('a', 4));
    run(flow);
    EXPECT_NE(sums.find("way 1 4352 0 1 8 0"), std::string::npos) << sums;  // 1 and 2 instructions of b, 5 of c
    EXPECT_NE(sums.find("way 3 4608 0 1 5 0"), std::string::npos) << sums;
}

TEST_F(Calls, ADeepStackForgetsItsLowestFrames) {
    // Calls alternate, so that they are no direct recursion.
    for (int i = 0; i < 20; ++i) flow.call(i % 2 == 0 ? at('a') : at('b'), i % 2 == 0 ? at('b') : at('a'));
    for (int i = 0; i < 20; ++i) flow.ret(i % 2 == 0 ? at('a', 4) : at('b', 4));
    flow.plain(at('a', 4));
    run(flow, {.frames = 8});
    EXPECT_EQ(left_out.frames, 13U);
}

TEST_F(Calls, AFullTreeCountsCallsAsPartOfTheirCaller) {
    for (std::uint64_t i = 1; i <= 7; ++i) {
        const char f = static_cast<char>('a' + i);
        flow.call(at('a', 4 * i), at(f)).ret(at(f), 10);
    }
    flow.plain(at('a', 32));
    const std::string text = run(flow, {.nodes = 6});
    EXPECT_EQ(text, "a 0/48; a.b 1/10; a.c 1/10; a.d 1/10");
    EXPECT_EQ(left_out.calls, 4U);
}

// ---- parts

Flow random_flow(Program& program, std::uint64_t seed, std::size_t length) {
    synthetic::Random random(seed);
    Flow flow(program);
    std::vector<std::uint64_t> stack;
    std::vector<std::vector<std::uint64_t>> others;  // stacks of coroutines
    std::vector<std::uint64_t> interrupted;
    std::uint64_t now = Program::at('a');
    const auto function = [&] {
        return random.below(12) == 0  ? 0x8000 + 0x40 * random.below(4)
               : random.below(8) == 0 ? 0x7000 + 0x100 * random.below(3)
                                      : Program::at(static_cast<char>('a' + random.below(12)));
    };
    std::uint32_t context = 1;
    flow.context(1);
    for (std::size_t i = 0; i < length; ++i) {
        const auto n = static_cast<std::uint32_t>(1 + random.below(3));
        // Blocks begin at few places, so that they come again.
        now = now & ~std::uint64_t{0x1f};
        switch (random.below(24)) {
            case 0:
            case 1:
            case 2:
            case 3:
            case 4: {
                const std::uint64_t to = function();
                flow.call(now, to, n);
                stack.push_back(now + 4 * n);
                now = to;
                break;
            }
            case 5: flow.call_indirect(now, n), stack.push_back(now + 4 * n), now = function(); break;
            case 6:
            case 7:
            case 8:
            case 9:
            case 10:
                flow.ret(now, n);
                if (random.below(6) == 0 && stack.size() > 1) {
                    // A coroutine gives way: the upper part of its stack goes on later.
                    const std::size_t kept = random.below(static_cast<std::uint32_t>(stack.size()));
                    others.emplace_back(stack.begin() + static_cast<std::ptrdiff_t>(kept) + 1, stack.end());
                    stack.resize(kept + 1);
                } else if (random.below(4) == 0 && !others.empty()) {
                    const std::size_t which = random.below(static_cast<std::uint32_t>(others.size()));
                    stack.insert(stack.end(), others[which].begin(), others[which].end());
                    others.erase(others.begin() + static_cast<std::ptrdiff_t>(which));
                }
                if (stack.empty() || random.below(20) == 0) {
                    now = function() + 0x20;
                } else {
                    if (random.below(8) == 0) stack.resize(1 + random.below(static_cast<std::uint32_t>(stack.size())));
                    now = stack.back();
                    stack.pop_back();
                }
                break;
            case 11: {
                const std::uint64_t to = function();
                flow.jump(now, to, n);
                now = to;
                break;
            }
            case 12:
                flow.range(now, n, End::indirect, 0, 0, true);
                now = random.below(3) == 0 ? function() : random.below(2) == 0 ? function() + 0x20 : now;
                break;
            case 13:
                flow.exception(10 + static_cast<std::uint32_t>(random.below(3)), now, Program::at('o'));
                interrupted.push_back(now);
                now = Program::at('o');
                break;
            case 14:
            case 15:
                flow.eret(now, n);
                now = interrupted.empty() || random.below(5) == 0 ? function() : interrupted.back();
                if (!interrupted.empty()) interrupted.pop_back();
                break;
            case 16:
                if (random.below(3) == 0) {
                    context = 1 + static_cast<std::uint32_t>(random.below(3));
                    flow.context(context);
                }
                break;
            case 17:
                if (random.below(3) != 0) break;
                switch (random.below(6)) {
                    case 0: flow.gap().on(flow::TraceOnReason::begin); break;
                    case 1: flow.on(flow::TraceOnReason::overflow); break;
                    case 2: flow.event(flow::NoMemory{{now}}); break;
                    case 3: flow.event(flow::Inconsistency{flow::Conflict::branch_disagrees, {}, {}}); break;
                    case 4:
                        flow.event(flow::Exception{&synthetic::exception_type(11), {}, Address{Program::at('p')}, 3});
                        break;
                    default:
                        flow.event(flow::Exception{&synthetic::exception_type(1), Address{now}, {}, flow::no_cycles});
                        break;
                }
                now = random.below(2) == 0 ? function() : stack.empty() ? now : stack.back();
                break;
            case 18: flow.on(flow::TraceOnReason::enabled), now = random.below(2) == 0 ? function() : now; break;
            case 19: flow.event(flow::Timestamp{i, true, false, 2}); break;
            default: flow.range(now, n, End::direct, Block::conditional, now, random.below(2) == 0, 2); break;
        }
    }
    return flow;
}

/// The context at the element `to`.
flow::Context context_before(const Flow& flow, std::size_t to) {
    flow::Context context;
    for (std::size_t i = 0; i < to; ++i)
        if (const auto* what = std::get_if<flow::What>(&flow.elements()[i]))
            if (const auto* c = std::get_if<flow::Context>(what)) context = *c;
    return context;
}

void compare_parts(std::uint64_t seed, FlowCalls::Limits limits) {
    Program program;
    synthetic::Random random(seed + 1000);
    const Flow flow = random_flow(program, seed, 20 + random.below(400));
    const std::size_t all = flow.elements().size();
    const auto offset = [](Offset at) { return at.value; };

    FlowCode code(program.symbols, program.memory);
    FlowSink one(code, offset, {.calls = true, .limits = limits});
    consume(one, program, flow.elements(), 0, all);
    one.finish();

    // A part in order may be applied as one repeat, parts of forks may not.
    limits.repeats.eager = true;
    Repeats repeats(seed);
    for (unsigned round = 0; round < 4; ++round) {
        FlowCode other(program.symbols, program.memory);
        FlowSink sink(other, offset, {.calls = true, .limits = limits});
        std::string cuts;
        const std::uint32_t part = 1 + random.below(round == 0 ? 4U : static_cast<std::uint32_t>(all));
        std::vector<std::unique_ptr<flow::Sink>> forks;
        std::size_t from = 0;
        while (from < all) {
            const std::size_t to = std::min(all, from + 1 + random.below(part));
            cuts += std::to_string(from) + " ";
            if (random.below(5) == 0) {
                consume(sink, program, flow.elements(), from, to, 7, &repeats);
            } else {
                auto fork = sink.fork();
                fork->begin_at(context_before(flow, from));
                consume(*fork, program, flow.elements(), from, to, 1 + random.below(9), &repeats);
                sink.join(*fork);
            }
            from = to;
        }
        sink.finish();
        ASSERT_EQ(tree_text(program, sink, "\n"), tree_text(program, one, "\n"))
            << "seed " << seed << ", cuts " << cuts;
        ASSERT_EQ(sums_text(sink), sums_text(one)) << "seed " << seed << ", cuts " << cuts;
        ASSERT_EQ(sink.troubles(), one.troubles()) << "seed " << seed;
    }
}

TEST(FlowParts, JoinedGiveWhatOnePassGives) {
    for (std::uint64_t seed = 1; seed <= sized(60U, 25U); ++seed) {
        compare_parts(seed, {});
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(FlowParts, AtTheirLimitsTooTheyGiveWhatOnePassGives) {
    for (std::uint64_t seed = 1; seed <= sized(60U, 30U); ++seed) {
        compare_parts(seed, {.frames = 1 + seed % 6, .nodes = 2 + seed % 30});
        if (testing::Test::HasFatalFailure()) return;
    }
}

/// Few elements, which differ in all places where a part can begin or end: calls and jumps of all kinds, exceptions,
/// changes of thread, and every way to lose flow.
Flow small_flow(Program& program, std::uint64_t seed, std::size_t length) {
    synthetic::Random random(seed);
    Flow flow(program);
    std::vector<std::uint64_t> returns;
    std::uint64_t now = Program::at('a');
    std::uint32_t context = 1;
    const auto function = [&] {
        const std::uint64_t functions[] = {Program::at('a'), Program::at('b'), Program::at('c'), Program::cold,
                                           Program::resume,  Program::setjmp,  0x8000,           0x8100};
        return random.below(3) != 0 ? functions[random.below(3)] : pick(random, functions);
    };
    const auto back = [&] {
        if (returns.empty() || random.below(4) == 0) return function() + 0x20 * random.below(2);
        const std::uint64_t to = returns.back();
        returns.pop_back();
        return to;
    };
    const auto anywhere = [&] { return random.half() ? now : random.half() ? function() : back(); };
    flow.context(1);
    for (std::size_t i = 0; i < length; ++i) {
        const std::uint64_t to = function();
        const std::uint64_t block = now & ~std::uint64_t{0x1f};
        const auto n = static_cast<std::uint32_t>((now - block) / 4 + 1 + random.below(2));
        const std::uint32_t cycles = random.half() ? 2U : flow::no_cycles;
        switch (random.below(16)) {
            case 0:
            case 1: flow.call(block, to, n), returns.push_back(block + 4 * n), now = to; break;
            case 2: flow.call_indirect(block, n), returns.push_back(block + 4 * n), now = to; break;
            case 3:
            case 4: flow.ret(block, n), now = random.below(8) == 0 ? to : back(); break;
            case 5:
            case 6: flow.jump(block, to, n), now = to; break;
            case 7: flow.range(block, n, End::indirect, 0, 0, true, cycles), now = anywhere(); break;
            case 8: {
                const auto from = random.below(4) == 0 ? std::optional<Address>{} : Address{now};
                const auto vector = random.below(3) == 0 ? std::optional<Address>{} : Address{Program::at('o')};
                flow.event(
                    flow::Exception{&synthetic::exception_type(random.below(8) == 0 ? 1 : 14), from, vector, cycles});
                returns.push_back(now), now = random.below(3) == 0 ? anywhere() : Program::at('o');
                break;
            }
            case 9: flow.eret(block, n), now = back(); break;
            case 10:
                if (random.below(4) != 0) context = 3 - context, now = anywhere();
                flow.context(context);
                break;
            case 11: flow.event(flow::TraceOn{flow::TraceOnReason::enabled, cycles}), now = anywhere(); break;
            case 12: {
                const flow::What losses[] = {Gap{{10}, {20}, GapReason::reserved_header},
                                             Gap{{10}, {20}, GapReason::stopped},
                                             flow::TraceOn{flow::TraceOnReason::overflow, cycles},
                                             flow::TraceOn{flow::TraceOnReason::begin, cycles},
                                             flow::NoMemory{{now}},
                                             flow::Inconsistency{flow::Conflict::no_return_address, {now}, {}},
                                             flow::Untraced{{now}, {to}, 5, random.half()},
                                             flow::Atoms{1, 2},
                                             flow::Mark{flow::Mark::Kind::uncommitted, 3, 0}};
                flow.event(pick(random, losses)), now = anywhere();
                break;
            }
            case 13: {
                const flow::What events[] = {flow::Inconsistency{flow::Conflict::branch_disagrees, {now}, {}},
                                             flow::Mark{flow::Mark::Kind::transaction_failed, 0, 0},
                                             flow::ExceptionReturn{}, flow::Timestamp{i, true, false, cycles},
                                             flow::Cycles{.cycles = 3, .of = flow::Cycles::Of::unknown}};
                flow.event(pick(random, events));
                break;
            }
            default: flow.range(block, n, End::direct, Block::conditional, block, random.half(), cycles); break;
        }
    }
    return flow;
}

std::uint64_t small_flows() {
    const char* many = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return many == nullptr ? sized(100U, 40U) : std::strtoull(many, nullptr, 10);
}

/// In three parts, divided at each pair of places: a part does not know how the previous one ended.
TEST(FlowParts, OfSmallFlowsDividedAnywhereGiveWhatOnePassGives) {
    const auto offset = [](Offset at) { return at.value; };
    for (std::uint64_t seed = 1; seed <= small_flows(); ++seed) {
        Program program;
        const Flow flow = small_flow(program, seed, 8);
        const std::size_t all = flow.elements().size();
        const FlowCalls::Limits limits =
            seed % 4 != 0 ? FlowCalls::Limits{} : FlowCalls::Limits{.frames = 1 + seed % 5, .nodes = 2 + seed % 10};
        FlowCode code(program.symbols, program.memory);
        FlowSink one(code, offset, {.calls = true, .limits = limits});
        consume(one, program, flow.elements(), 0, all);
        one.finish();
        const std::string whole = tree_text(program, one, "\n") + sums_text(one);
        for (std::size_t first = 1; first < all; ++first)
            for (std::size_t second = first; second < all; ++second) {
                FlowSink sink(code, offset, {.calls = true, .limits = limits});
                consume(sink, program, flow.elements(), 0, first);
                for (const auto& [from, to] : {std::pair(first, second), std::pair(second, all)}) {
                    if (from == to) continue;
                    const auto fork = sink.fork();
                    fork->begin_at(context_before(flow, from));
                    consume(*fork, program, flow.elements(), from, to);
                    sink.join(*fork);
                }
                sink.finish();
                ASSERT_EQ(tree_text(program, sink, "\n") + sums_text(sink), whole)
                    << "seed " << seed << ", cuts " << first << " " << second;
            }
    }
}

// ---- repeats

/// A program of small functions that call others, or give way to them, or call themselves, again and again; now and
/// then something comes between: an interrupt, lost trace, another thread, a jump back over several frames.
class LoopingProgram {
public:
    LoopingProgram(Program& program, std::uint64_t seed, std::size_t rounds) : flow(program), random_(seed) {
        const auto later = [&](char than) {
            const auto left = static_cast<std::uint32_t>(last - than);
            return static_cast<char>(than + 1 + static_cast<char>(random_.below(left)));
        };
        for (char f = first; f <= last; ++f) {
            std::vector<Step>& steps = functions_[f];
            for (std::size_t n = 1 + random_.below(5); n > 0; --n) {
                const auto does = f == last ? Does::runs : static_cast<Does>(random_.below(6));
                const auto any = static_cast<char>(first + static_cast<char>(random_.below(last - first)));
                steps.push_back({does, does == Does::recurs ? (random_.half() ? f : any)
                                       : f == last          ? last
                                                            : later(f)});
            }
            if (f != last && random_.below(4) == 0) steps.push_back({Does::gives_way, later(f)});
        }
        disturbs_ = seed % 3 == 0 ? 0 : seed % 3 == 1 ? 300 : 30;
        flow.context(1);
        for (std::size_t i = 0; i < rounds; ++i) {
            const char f = static_cast<char>(first + static_cast<char>(random_.below(3)));
            const std::uint64_t from = Program::at(loop, 0x20 * random_.below(3));
            flow.call(from, Program::at(f));
            jumps_ = false;
            run(f, 0);
            flow.range(from + 4, 2, End::direct, 0, Program::at(loop), true);
        }
    }

    Flow flow;

private:
    static constexpr char loop = 'a', first = 'b', last = 'h';
    enum class Does { runs, calls, calls_any, may_call, recurs, runs_twice, gives_way };
    struct Step {
        Does does{};
        char other{};
    };

    void run(char f, unsigned depth) {
        std::uint64_t now = Program::at(f);
        for (const Step& step : functions_[f]) {
            if (disturbs_ != 0 && random_.below(disturbs_) == 0) disturb(now);
            if (jumps_) return;
            switch (step.does) {
                case Does::calls: call(now, step.other, depth, false); break;
                case Does::calls_any: call(now, step.other, depth, true); break;
                case Does::may_call:
                    flow.range(now, 1, End::direct, Block::conditional, now + 8, random_.half());
                    if (random_.half()) call(now + 8, step.other, depth, false);
                    break;
                case Does::recurs:
                    if (depth < 2) call(now, step.other, depth + 1, false);
                    break;
                case Does::runs: flow.plain(now, 3); break;
                case Does::runs_twice: flow.plain(now, 2).plain(now + 8, 1); break;
                case Does::gives_way: flow.jump(now, Program::at(step.other)); return run(step.other, depth);
            }
            if (jumps_) return;
            now += 0x10;
        }
        flow.ret(now, 2);
    }
    void call(std::uint64_t from, char f, unsigned depth, bool any) {
        any ? flow.call_indirect(from) : flow.call(from, Program::at(f));
        run(f, depth);
        if (!jumps_) flow.plain(from + 4, 1);
    }
    void disturb(std::uint64_t now) {
        switch (random_.below(7)) {
            case 0:
                flow.exception(14, now, Program::at('o')).plain(Program::at('o'), 2).eret(Program::at('o', 8));
                break;
            case 1: flow.gap().on(flow::TraceOnReason::begin); break;
            case 2: flow.context(2).plain(Program::at('n'), 5).context(1); break;
            case 3: flow.event(flow::Timestamp{now, true, false, 7}); break;
            case 4:  // longjmp
                flow.ret(now, 1);
                jumps_ = true;
                break;
            case 5: flow.call(now, Program::setjmp).ret(Program::setjmp); break;
            default: flow.plain(now, 1).on(flow::TraceOnReason::enabled); break;
        }
    }

    synthetic::Random random_;
    std::map<char, std::vector<Step>> functions_;
    std::uint32_t disturbs_ = 0;
    bool jumps_ = false;
};

/// All ways that repeats can be kept.
std::vector<RepeatMemory> repeat_memories() {
    return {{.log2_size = 10, .eager = true},
            {.log2_size = 1, .eager = true},
            {.log2_size = 4, .eager = true},
            {.log2_size = 3, .eager = false}};
}

std::string all_text(const Program& program, const FlowSink& sink) {
    std::string out = tree_text(program, sink, "\n") + sums_text(sink) + "\nleft out";
    const CallStacks::LeftOut& left = sink.calls().left_out();
    for (const std::uint64_t n : {left.frames, left.calls, left.contexts}) out += " " + std::to_string(n);
    out +=
        "\nwork " + std::to_string(sink.calls().now().instructions) + " " + std::to_string(sink.calls().now().cycles);
    for (const FlowCounts* counts : sink.counts()) {
        out += "\ncycles " + std::to_string(counts->cycles) + "\nways";
        for (const Way& way : counts->ways()) out += " " + std::to_string(way.edge) + "-" + std::to_string(way.to);
        for (const std::uint64_t end : counts->ends) out += "\nend " + std::to_string(end);
    }
    return out;
}

/// Observes what an index of places needs: the first call of each context, and events with the work before them.
class SparingObserver final : public CallObserver {
public:
    [[nodiscard]] bool wants_each_call() const override { return false; }
    void enter(const Work&, std::uint32_t, FunctionId) override {
        if (seen_.insert(context_).second) text += "first call of " + std::to_string(context_.value_or(0)) + "\n";
    }
    void leave(const Work&, std::uint32_t) override {}
    void switch_to(const Work&, std::optional<std::uint32_t> context) override { context_ = context; }
    void happened(const Work& now, const flow::Event& event) override {
        text += "event " + std::to_string(event.what.index()) + " after " + std::to_string(now.instructions) + "\n";
    }
    void regained(const Work& now) override { text += "regained after " + std::to_string(now.instructions) + "\n"; }

    std::string text;

private:
    std::optional<std::uint32_t> context_;
    std::set<std::optional<std::uint32_t>> seen_;
};

/// Returns how many repeats were taken as one.
std::uint64_t compare_repeats(Program& program, std::uint64_t seed, const std::vector<Flow::Element>& elements,
                              FlowCalls::Limits limits) {
    const auto offset = [](Offset at) { return at.value; };
    std::uint64_t repeated = 0;
    FlowCode code(program.symbols, program.memory);
    SparingObserver each;
    FlowSink one(code, offset, {.calls = true, .observer = &each, .limits = limits});
    consume(one, program, elements, 0, elements.size(), 50);
    one.finish();
    EXPECT_EQ(one.calls().repeated(), 0U);
    const std::string step_by_step = all_text(program, one);
    std::uint64_t way = seed;
    for (const RepeatMemory& memory : repeat_memories()) {
        // With sanitizers each seed has two of the ways, in turn.
        if (sanitized && way++ % 2 != 0) continue;
        limits.repeats = memory;
        FlowCode other(program.symbols, program.memory);
        SparingObserver observer;
        FlowSink sink(other, offset, {.calls = true, .observer = &observer, .limits = limits});
        Repeats repeats(seed + memory.log2_size);
        consume(sink, program, elements, 0, elements.size(), 50, &repeats);
        sink.finish();
        EXPECT_EQ(observer.text, each.text) << "seed " << seed;
        EXPECT_EQ(all_text(program, sink), step_by_step)
            << "seed " << seed << ", 2^" << memory.log2_size << (memory.eager ? ", eager" : "");
        repeated += sink.calls().repeated();
    }
    return repeated;
}

constexpr std::uint64_t repeat_seeds = 30;  // fewer do not see a popped frame of another caller

TEST(FlowRepeats, TakenAsOneGiveWhatStepByStepGives) {
    std::uint64_t repeated = 0;
    for (std::uint64_t seed = 1; seed <= repeat_seeds && !testing::Test::HasFailure(); ++seed) {
        Program program;
        repeated += compare_repeats(program, seed, LoopingProgram(program, seed, 150).flow.elements(), {});
    }
    EXPECT_GT(repeated, repeat_seeds * sized(100U, 50U));
}

TEST(FlowRepeats, AtTheirLimitsTooTheyGiveWhatStepByStepGives) {
    std::uint64_t repeated = 0;
    for (std::uint64_t seed = 1; seed <= repeat_seeds && !testing::Test::HasFailure(); ++seed) {
        Program program;
        repeated += compare_repeats(program, seed, LoopingProgram(program, seed, 100).flow.elements(),
                                    {.frames = 2 + seed % 9, .nodes = 2 + seed % 30});
    }
    EXPECT_GT(repeated, repeat_seeds * sized(20U, 10U));
}

// ---- a thread in several sources

/// A function that calls itself is one node at any depth: the stored nodes must not exceed the limit.
TEST(FlowRepeats, ForgetTheLowestFramesAsStepByStep) {
    std::uint64_t repeated = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Program program;
        Flow flow(program);
        const auto at = [](char function, std::uint64_t offset = 0) { return Program::at(function, offset); };
        for (std::uint64_t round = 0; round < 12; ++round) {
            const std::uint64_t depth = 1 + round % 12 * 3;
            flow.call(at('a'), at('b'));
            for (std::uint64_t i = 0; i < depth; ++i)
                flow.call(at('b'), at('c')).ret(at('c')).call(at('b', 4), at('b'));
            for (std::uint64_t i = 0; i <= depth; ++i) flow.ret(at('b', 8));
        }
        repeated += compare_repeats(program, seed, flow.elements(), {.frames = 20});
    }
    EXPECT_GT(repeated, 20U);
}

/// Answers of one thread: the tree, or the sum of each function in the tree, then edges and exceptions.
std::string answers_text(const std::vector<FlowStream>& streams, bool tree) {
    Answers answers;
    fill_flow_answers(answers, streams, {});
    const auto name = [&](Index function) { return function == none ? "*" : answers.functions[function].name; };
    std::vector<std::string> lines, paths;
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sums;
    for (const CallNode& node : answers.calls) {
        paths.push_back((node.parent == none ? "" : paths[node.parent] + ".") + name(node.function));
        auto& [calls, self] = sums[tree ? paths.back() : name(node.function)];
        calls += node.calls;
        self += node.self.at(0);
    }
    for (const auto& [what, sum] : sums)
        lines.push_back(what + " " + std::to_string(sum.first) + "/" + std::to_string(sum.second));
    // In random flow, blocks may differ only in their end, which real code never has: edges of such blocks are mixed
    // up.
    for (const Edge& e : answers.edges)
        if (!e.inclusive.empty() && (tree || e.inclusive.at(0) != 0))
            lines.push_back(std::to_string(e.from) + "->" + std::to_string(e.to) + " " +
                            (tree ? std::to_string(e.times) + "/" : "") + std::to_string(e.inclusive.at(0)));
    for (const ExceptionRow& e : answers.exceptions)
        lines.push_back(e.name + " " + std::to_string(e.times) + "/" + std::to_string(e.returned) + "/" +
                        std::to_string(e.sum));
    std::sort(lines.begin(), lines.end());
    std::string out;
    for (const std::string& line : lines) out += line + "\n";
    return out;
}

TEST(FlowSources, OfOneThreadMakeOneTree) {
    Program program;
    const auto at = [](char function, std::uint64_t offset = 0) { return Program::at(function, offset); };
    Flow first(program), second(program), third(program);
    first.call(at('a'), at('b')).call(at('b'), at('c'), 2).ret(at('c')).exception(14, at('b', 4), at('o'));
    second.on(flow::TraceOnReason::enabled).eret(at('o'), 3).call(at('b', 4), at('d'));
    third.on(flow::TraceOnReason::enabled).ret(at('d'), 5).ret(at('b', 8)).call(at('a', 4), at('b')).ret(at('b'));
    std::vector<std::unique_ptr<FlowCode>> codes;
    std::vector<std::unique_ptr<FlowSink>> sinks;
    std::vector<FlowStream> streams;
    for (const Flow* source : {&first, &second, &third}) {
        codes.push_back(std::make_unique<FlowCode>(program.symbols, program.memory));
        sinks.push_back(std::make_unique<FlowSink>(
            *codes.back(), [](Offset o) { return o.value; }, FlowSink::Options{.calls = true}));
        if (sinks.size() > 1) (*(sinks.end() - 2))->hand_over(*sinks.back());
        consume(*sinks.back(), program, source->elements(), 0, source->elements().size());
        streams.push_back({.sink = sinks.back().get(), .source = "thread"});
    }
    for (const auto& sink : sinks) sink->finish();
    EXPECT_EQ(answers_text(streams, true),
              // The first call of b, from its call to its return: 13 instructions in three sources.
              "* 0/0\n"
              "*.a 0/2\n"
              "*.a.b 2/5\n"
              "*.a.b.[exception: IRQ] 1/0\n"
              "*.a.b.[exception: IRQ].o 1/3\n"
              "*.a.b.c 1/1\n"
              "*.a.b.d 1/5\n"
              "4096->4352 1/13\n"
              "4100->4352 1/1\n"
              "4356->4608 1/1\n"
              "4356->4864 1/5\n"
              "IRQ 1/1/3\n");
}

/// Two protocols may give one number to two exceptions.
TEST(FlowSources, OfTwoProtocolsKeepTheirExceptionsApart) {
    static constexpr flow::ExceptionType secure_fault{14, flow::ExceptionClass::secure_fault, "SecureFault"};
    static constexpr flow::ExceptionType nameless{13, flow::ExceptionClass::reserved, "reserved"};
    Program program;
    const auto at = [](char function, std::uint64_t offset = 0) { return Program::at(function, offset); };
    Flow first(program), second(program);
    first.plain(at('a')).exception(14, at('a', 4), at('o')).eret(at('o')).plain(at('a', 4));
    second.plain(at('a'));
    for (const flow::ExceptionType* type : {&secure_fault, &nameless})
        second.event(flow::Exception{type, Address{at('a', 4)}, Address{at('o')}, flow::no_cycles})
            .eret(at('o'))
            .plain(at('a', 4));
    for (const bool calls : {true, false}) {
        FlowCode code(program.symbols, program.memory);
        std::vector<std::unique_ptr<FlowSink>> sinks;
        std::vector<FlowStream> streams;
        for (const Flow* source : {&first, &second}) {
            sinks.push_back(std::make_unique<FlowSink>(
                code, [](Offset o) { return o.value; }, FlowSink::Options{.calls = calls}));
            consume(*sinks.back(), program, source->elements(), 0, source->elements().size());
            sinks.back()->finish();
            streams.push_back({.sink = sinks.back().get(), .source = "thread"});
        }
        Answers answers;
        fill_flow_answers(answers, streams, {});
        std::map<std::string, std::uint64_t> times;
        for (const ExceptionRow& e : answers.exceptions) times[e.name + "/" + std::to_string(e.number)] += e.times;
        EXPECT_EQ(times,
                  (std::map<std::string, std::uint64_t>{{"IRQ/14", 1}, {"SecureFault/14", 1}, {"exception 13/13", 1}}));
        std::set<std::string> functions;
        for (const Function& f : answers.functions)
            if (f.synthetic) functions.insert(f.name);
        if (calls) {
            EXPECT_EQ(functions, (std::set<std::string>{"[exception: IRQ]", "[exception: SecureFault]",
                                                        "[exception: exception 13]"}));
        }
    }
}

/// Where calls continue in another source, sums are as in one source with tracing off there for a while. (A caller that
/// becomes known in a later source stands above that source's frames.) `ends(i)`: a source ends before element i. A
/// call that ends a source goes on in the next, which is another thing than tracing that was off: there it does not
/// end.
template <class Ends>
void compare_sources(Program& program, const Flow& whole, const Ends& ends, const std::string& which) {
    const auto offset = [](Offset at) { return at.value; };
    const std::size_t all = whole.elements().size();
    std::vector<Flow::Element> with_pauses;
    std::vector<std::vector<Flow::Element>> sources(1);
    bool called = false;
    for (std::size_t i = 0; i < all; ++i) {
        if (i != 0)
            if (const auto* const before = std::get_if<flow::Range>(&whole.elements()[i - 1]))
                called = (program.blocks[before->block()].flags & Block::link) != 0;
        if (i != 0 && !called && ends(i)) {
            sources.emplace_back();
            for (auto* to : {&with_pauses, &sources.back()})
                to->emplace_back(flow::What(flow::TraceOn{flow::TraceOnReason::enabled}));
        }
        with_pauses.push_back(whole.elements()[i]);
        sources.back().push_back(whole.elements()[i]);
    }
    FlowCode code(program.symbols, program.memory);
    FlowSink one(code, offset, {.calls = true});
    consume(one, program, with_pauses, 0, with_pauses.size());
    one.finish();

    std::vector<std::unique_ptr<FlowCode>> codes;
    std::vector<std::unique_ptr<FlowSink>> sinks;
    std::vector<FlowStream> streams;
    for (const std::vector<Flow::Element>& elements : sources) {
        codes.push_back(std::make_unique<FlowCode>(program.symbols, program.memory));
        sinks.push_back(std::make_unique<FlowSink>(*codes.back(), offset, FlowSink::Options{.calls = true}));
        if (sinks.size() > 1) (*(sinks.end() - 2))->hand_over(*sinks.back());
        consume(*sinks.back(), program, elements, 0, elements.size());
        streams.push_back({.sink = sinks.back().get(), .source = "thread"});
    }
    for (const auto& sink : sinks) sink->finish();
    ASSERT_EQ(answers_text(streams, false), answers_text({{.sink = &one, .source = "thread"}}, false)) << which;
}

TEST(FlowSources, OfOneThreadGiveWhatOneSourceGives) {
    for (std::uint64_t seed = 1; seed <= sized(200U, 60U); ++seed) {
        Program program;
        synthetic::Random random(seed + 5000);
        const Flow whole = random_flow(program, seed, 20 + random.below(200));
        compare_sources(
            program, whole, [&](std::size_t) { return random.below(15) == 0; }, "seed " + std::to_string(seed));
        if (testing::Test::HasFatalFailure()) return;
    }
}

TEST(FlowSources, OfSmallFlowsDividedAnywhereGiveWhatOneSourceGives) {
    for (std::uint64_t seed = 1; seed <= small_flows(); ++seed) {
        Program program;
        const Flow whole = small_flow(program, seed, 8);
        for (std::size_t first = 1; first < whole.elements().size(); ++first) {
            compare_sources(
                program, whole, [&](std::size_t i) { return i == first; },
                "seed " + std::to_string(seed) + ", cut " + std::to_string(first));
            if (testing::Test::HasFatalFailure()) return;
        }
    }
}

// ---- random programs, whose true stack is known

/// Cost and number of calls of each function, by name.
struct Delivered {
    std::uint64_t self{}, inclusive{}, calls{};
    friend bool operator==(const Delivered&, const Delivered&) = default;
};
std::string text_of(const std::map<std::string, Delivered>& all) {
    std::string out;
    for (const auto& [name, t] : all)
        out += name + " self " + std::to_string(t.self) + " inclusive " + std::to_string(t.inclusive) + " calls " +
               std::to_string(t.calls) + "\n";
    return out;
}

/// Runs a random program of functions a to n in some threads, and adds up each instruction for all functions on the
/// thread's stack, each once: calls and recursion, direct and mutual, tail calls, longjmp to the nearest frame of a
/// function, interrupts within interrupts, changes of thread, and on request lost trace.
class TrueProgram {
public:
    TrueProgram(Program& program, std::uint64_t seed, bool loses) : flow(program), random_(seed), loses_(loses) {
        threads_.resize(1 + random_.below(3));
        for (Thread& t : threads_) t.stack.push_back({any_function(), 0});
        for (Thread& t : threads_) t.now = begin(t.stack.back().function);
        flow.context(1);
        for (std::size_t i = 0; i < 600; ++i) step();
        // A handler without any trace would not be reported.
        work(threads_[thread_], 1);
        flow.plain(threads_[thread_].now);
    }

    Flow flow;
    std::map<std::string, Delivered> delivered;
    std::uint64_t all = 0;

private:
    struct Frame {
        std::string function;
        std::uint64_t returns_to{};  // 0: the first frame of a thread
        bool tail = false;           // this frame returns together with the frame below
    };
    struct Thread {
        std::vector<Frame> stack;
        std::uint64_t now{};
    };
    std::string any_function() { return std::string(1, static_cast<char>('a' + random_.below(14))); }
    static std::uint64_t begin(const std::string& function) { return Program::at(function[0]); }

    /// Executes this number of instructions of the topmost function.
    void work(Thread& t, std::uint32_t n) {
        all += n;
        delivered[t.stack.back().function].self += n;
        std::set<std::string> on_stack;
        for (const Frame& f : t.stack) on_stack.insert(f.function);
        for (const std::string& function : on_stack) delivered[function].inclusive += n;
    }

    static void leave(Thread& t) {
        while (t.stack.back().tail) t.stack.pop_back();
        t.stack.pop_back();
    }

    void step() {
        Thread& t = threads_[thread_];
        const std::string top = t.stack.back().function;
        const bool handler = top == "o" || top == "p";
        const auto n = static_cast<std::uint32_t>(1 + random_.below(3));
        // Room in the function for the next instructions; longjmp lands behind them.
        if (t.now - begin(top) > 0x60) {
            work(t, n);
            const std::uint64_t back = begin(top) + 4 + 4 * random_.below(8);
            flow.jump(t.now, back, n);
            t.now = back;
            return;
        }
        switch (random_.below(16)) {
            case 0:
            case 1:
            case 2:
            case 3: {
                if (t.stack.size() > 40) return;
                const std::string to = random_.below(6) == 0 && !handler ? top : any_function();
                work(t, n);
                flow.call(t.now, begin(to), n);
                t.stack.push_back({to, t.now + 4 * n});
                ++delivered[to].calls;
                t.now = begin(to);
                return;
            }
            case 4:
            case 5:
            case 6:
            case 7:
                if (handler) {
                    work(t, n);
                    flow.eret(t.now, n);
                    t.stack.pop_back();
                    t.now = t.stack.back().returns_to;
                    t.stack.pop_back();  // the exception itself
                } else if (t.stack.back().returns_to != 0) {
                    work(t, n);
                    flow.ret(t.now, n);
                    t.now = t.stack.back().returns_to;
                    leave(t);
                }
                return;
            case 8: {  // a tail call
                if (handler || t.stack.back().returns_to == 0 || t.stack.size() > 40) return;
                // Or the function goes on into the next one, within one block.
                const bool goes_on = top != "n" && random_.half();
                const std::string to = goes_on ? std::string(1, static_cast<char>(top[0] + 1)) : any_function();
                if (to == top) return;
                const auto left = goes_on ? static_cast<std::uint32_t>(begin(to) - t.now) / 4 : n;
                work(t, left);
                t.stack.push_back({to, t.stack.back().returns_to, true});
                ++delivered[to].calls;
                if (goes_on) {
                    flow.plain(t.now, left + n);
                    work(t, n);
                } else {
                    flow.jump(t.now, begin(to), n);
                }
                t.now = begin(to) + (goes_on ? 4 * n : 0);
                return;
            }
            case 9: {  // longjmp, to a place to which a call of setjmp once returned; not out of a handler
                std::vector<std::size_t> frames;
                std::set<std::string> above{top};
                for (std::size_t i = t.stack.size() - 1; i-- > 0 && t.stack[i].function[0] != '!' && !handler;)
                    if (!t.stack[i + 1].tail && above.insert(t.stack[i].function).second &&
                        t.stack[i].function[0] < 'o')
                        frames.push_back(i);
                if (frames.empty()) return;
                const std::size_t to = frames[random_.below(static_cast<std::uint32_t>(frames.size()))];
                work(t, n);
                flow.ret(t.now, n);
                t.stack.resize(to + 1);
                t.now = begin(t.stack.back().function) + 0x80 + 4 * random_.below(8);
                return;
            }
            case 10:
            case 11: {  // an interrupt, of a higher priority than the interrupted code
                const bool fast = random_.half();
                const bool in_fast =
                    std::any_of(t.stack.begin(), t.stack.end(), [](auto& f) { return f.function == "p"; });
                const bool in_slow =
                    std::any_of(t.stack.begin(), t.stack.end(), [](auto& f) { return f.function == "o"; });
                if (in_fast || (in_slow && !fast) || t.stack.size() > 40) return;
                const std::string to = fast ? "p" : "o";
                flow.exception(fast ? 15 : 14, t.now, begin(to));
                t.stack.push_back({fast ? "!15" : "!14", t.now});
                t.stack.push_back({to, t.now});
                ++delivered[t.stack[t.stack.size() - 2].function].calls;
                ++delivered[to].calls;
                t.now = begin(to);
                // Or the next exception comes before the handler's first instruction.
                if (random_.half()) return;
                work(t, n);
                flow.plain(begin(to), n);
                t.now += 4 * n;
                return;
            }
            case 12:
                thread_ = random_.below(static_cast<std::uint32_t>(threads_.size()));
                flow.context(1 + thread_);
                return;
            case 13:
                if (!loses_ || random_.half()) return;
                // Unseen flow: returns and calls.
                random_.half() ? flow.gap().on(flow::TraceOnReason::begin) : flow.on(flow::TraceOnReason::overflow);
                while (t.stack.size() > 1 && (random_.half() || t.stack.back().function[0] == '!')) leave(t);
                if (random_.half()) t.stack.push_back({any_function(), begin(t.stack.back().function) + 0x40});
                t.now = begin(t.stack.back().function) + 4 + 4 * random_.below(8);
                return;
            default:
                work(t, n);
                flow.plain(t.now, n);
                t.now += 4 * n;
        }
    }

    synthetic::Random random_;
    bool loses_;
    std::vector<Thread> threads_;
    std::uint32_t thread_ = 0;
};

std::map<std::string, Delivered> delivered_by_answers(const Program& program, const Flow& flow) {
    FlowCode code(program.symbols, program.memory);
    FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = true});
    consume(sink, program, flow.elements(), 0, flow.elements().size());
    sink.finish();
    Answers answers;
    fill_flow_answers(answers, {{.sink = &sink, .source = "core"}}, {});
    std::map<std::string, Delivered> out;
    const std::vector<FunctionCosts> costs = function_costs(answers);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        std::string name = answers.functions[i].name;
        if (name == "[exception: IRQ]") name = "!14";
        if (name == "[exception: FIQ]") name = "!15";
        if (name.starts_with("context ")) continue;
        Delivered& t = out[name];
        t.self += costs[i].self[0];
        t.inclusive += costs[i].inclusive[0];
        t.calls += costs[i].calls;
    }
    std::erase_if(out, [](const auto& one) { return one.second == Delivered{}; });
    return out;
}

std::uint64_t programs() {
    const char* many = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return many == nullptr ? sized(100U, 25U) : std::strtoull(many, nullptr, 10);
}

TEST(FlowPrograms, AreToldAsTheyRan) {
    for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
        Program program;
        TrueProgram truth(program, seed, false);
        std::erase_if(truth.delivered, [](const auto& one) { return one.second == Delivered{}; });
        ASSERT_EQ(text_of(delivered_by_answers(program, truth.flow)), text_of(truth.delivered)) << "seed " << seed;
    }
}

TEST(FlowPrograms, OfWhichPartsAreTakenAsOneAreToldTheSame) {
    for (std::uint64_t seed = 1; seed <= repeat_seeds && !testing::Test::HasFailure(); ++seed) {
        Program program;
        (void)compare_repeats(program, seed, TrueProgram(program, seed, seed % 2 == 0).flow.elements(), {});
        (void)compare_repeats(program, seed, random_flow(program, seed, 500).elements(), {.frames = 40});
    }
}

TEST(FlowPrograms, WhereTraceIsLostNothingCountsTwice) {
    for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
        Program program;
        TrueProgram truth(program, seed, true);
        std::uint64_t all = 0;
        for (const auto& [name, t] : delivered_by_answers(program, truth.flow)) {
            EXPECT_EQ(t.self, truth.delivered[name].self) << name << ", seed " << seed;
            EXPECT_GE(t.inclusive, t.self) << name << ", seed " << seed;
            EXPECT_LE(t.inclusive, truth.all) << name << ", seed " << seed;
            all += t.self;
        }
        ASSERT_EQ(all, truth.all) << "seed " << seed;
    }
}

}  // namespace
}  // namespace waymark::analysis
