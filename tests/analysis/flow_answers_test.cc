// From flow to answers: which instructions ran, which could have run, branches, loops; the timeline's bounds; merging.
#include "waymark/analysis/flow_answers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "analysis/whole_answers.h"
#include "support/exceptions.h"
#include "support/random.h"
#include "support/sanitized.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using flow::Block;
using flow::End;

/// f at 0x1000 chooses between two ways and counts down; g at 0x1020 calls it.
constexpr std::uint32_t code_words[] = {
    0xe3500000,  // 1000 f: cmp r0, #0
    0x0a000001,  // 1004    beq 1010
    0xe3a01001,  // 1008    mov r1, #1
    0xea000000,  // 100c    b 1014
    0xe3a01002,  // 1010    mov r1, #2
    0xe2500001,  // 1014    subs r0, r0, #1
    0x1afffffd,  // 1018    bne 1014
    0xe12fff1e,  // 101c    bx lr
    0xebfffff6,  // 1020 g: bl f
    0xe3a00000,  // 1024    mov r0, #0
    0x0a000000,  // 1028    beq 1030
    0xe3a02001,  // 102c    mov r2, #1
    0xe12fff1e,  // 1030    bx lr
};

class FlowToAnswers : public testing::Test {
protected:
    FlowToAnswers() {
        std::vector<std::uint8_t> bytes;
        for (const std::uint32_t word : code_words)
            for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
        EXPECT_TRUE(memory.add_bytes(bytes, {0x1000}, {}, "program").has_value());
        symbols.add("f", {0x1000}, 0x20, image::SymbolKind::function);
        symbols.add("g", {0x1020}, 0x14, image::SymbolKind::function);
    }

    struct Part {
        std::vector<flow::Range> ranges;
        std::vector<flow::Event> events;
    };
    void run(Part& part, std::uint32_t start, std::uint32_t instructions, End end, std::uint8_t flags,
             std::uint32_t target, bool taken) {
        const Block block{.start = start,
                          .target = target,
                          .bytes = 4 * instructions,
                          .instructions = instructions,
                          .section = 0,
                          .isa = isa::Isa::a32,
                          .end = end,
                          .last_bytes = 4,
                          .flags = flags};
        std::uint32_t id = 0;
        while (id < blocks.size() && !(blocks[id] == block)) ++id;
        if (id == blocks.size()) blocks.push_back(block);
        part.ranges.push_back({id * 2 + (taken ? 1U : 0U), 0, flow::no_cycles, 1});
    }
    void call_f(Part& p) { run(p, 0x1020, 1, End::direct, Block::link, 0x1000, true); }
    void choose(Part& p, bool equal) { run(p, 0x1000, 2, End::direct, Block::conditional, 0x1010, equal); }
    void first_way(Part& p) { run(p, 0x1008, 2, End::direct, 0, 0x1014, true); }
    void count(Part& p, bool from_second_way, bool again) {
        run(p, from_second_way ? 0x1010 : 0x1014, from_second_way ? 3 : 2, End::direct, Block::conditional, 0x1014,
            again);
    }
    void return_f(Part& p) { run(p, 0x101c, 1, End::indirect, Block::function_return, 0, true); }
    void after(Part& p) {
        run(p, 0x1024, 2, End::direct, Block::conditional, 0x1030, true);
        return_g(p);
    }
    void return_g(Part& p) { run(p, 0x1030, 1, End::indirect, Block::function_return, 0, true); }
    static void gap(Part& p) {
        p.events.push_back({static_cast<std::uint32_t>(p.ranges.size()), {}, Gap{{1}, {2}, GapReason::framing}});
    }
    /// The unit itself turns tracing off for a while.
    static void off(Part& p) {
        p.events.push_back(
            {static_cast<std::uint32_t>(p.ranges.size()), {}, flow::TraceOn{flow::TraceOnReason::enabled}});
    }

    /// Its vector is not in the trace, as with an ETMv4.
    static void exception(Part& p, std::uint64_t from) {
        p.events.push_back({static_cast<std::uint32_t>(p.ranges.size()),
                            {},
                            flow::Exception{&synthetic::exception_type(14), Address{from}, {}, flow::no_cycles}});
    }

    Answers answers(const std::vector<Part>& parts, FlowAnswersOptions options = {}) {
        std::vector<std::unique_ptr<FlowCode>> codes;
        std::vector<std::unique_ptr<FlowSink>> sinks;
        std::vector<FlowStream> streams;
        for (const Part& part : parts) {
            codes.push_back(std::make_unique<FlowCode>(symbols, memory));
            sinks.push_back(std::make_unique<FlowSink>(
                *codes.back(), [](Offset at) { return at.value; }, FlowSink::Options{.calls = true}));
            sinks.back()->consume({blocks, {}, part.ranges, part.events});
            sinks.back()->finish();
            streams.push_back({.sink = sinks.back().get(), .source = "source"});
        }
        Answers out;
        options.instructions = true;
        fill_flow_answers(out, streams, options);
        whole_answers.add(out);
        return out;
    }
    static std::map<std::uint64_t, Seen> seen(const Answers& a) {
        std::map<std::uint64_t, Seen> out;
        for (const Instruction& i : a.instructions) out[i.address] = i.seen;
        return out;
    }
    static const Branch& branch(const Answers& a, std::uint64_t address) {
        for (const Branch& b : a.branches)
            if (b.address == address) return b;
        ADD_FAILURE() << "no branch at " << address;
        return a.branches.front();
    }
    Part whole() {
        Part p;
        call_f(p);
        choose(p, false);
        first_way(p);
        count(p, false, true);
        count(p, false, true);
        count(p, false, false);
        return_f(p);
        after(p);
        return p;
    }

    image::MemoryMap memory;
    image::Symbols symbols;
    std::vector<Block> blocks;
    support::WholeAnswers whole_answers;
};

TEST_F(FlowToAnswers, EveryInstructionOfFunctionsThatRan) {
    const Answers a = answers({whole()});
    ASSERT_EQ(a.instructions.size(), std::size(code_words));
    std::map<std::uint64_t, std::uint64_t> times;
    for (const Instruction& i : a.instructions) times[i.address] = i.times;
    EXPECT_EQ(times[0x1000], 1U);
    EXPECT_EQ(times[0x1010], 0U);
    EXPECT_EQ(times[0x1014], 3U);
    EXPECT_EQ(times[0x102c], 0U);
    EXPECT_EQ(times[0x1030], 1U);
    EXPECT_EQ(seen(a)[0x1010], Seen::not_executed);
    EXPECT_EQ(seen(a)[0x102c], Seen::not_executed);
    EXPECT_EQ(seen(a)[0x1014], Seen::executed);
}

// A function whose code ran in A32 and in T32 is looked through in both. In T32 an instruction may seem to begin in
// data.
TEST_F(FlowToAnswers, BytesThatRanAreNoOtherInstructions) {
    const auto run_in_thumb = [&](Part& p, std::uint32_t at) {
        run(p, at, 1, End::direct, 0, 0x1014, true);
        blocks.back().isa = isa::Isa::t32;
        blocks.back().bytes = blocks.back().last_bytes = 2;
    };
    const auto expect_no_overlap = [](const Answers& a, std::size_t ran_in_thumb) {
        for (const Instruction& i : a.instructions) {
            if (i.times != 0 && i.isa == isa::Isa::t32) --ran_in_thumb;
            for (const Instruction& ran : a.instructions)
                EXPECT_FALSE(i.times == 0 && ran.times != 0 && i.address < ran.address + ran.bytes &&
                             ran.address < i.address + i.bytes)
                    << fmt::format("{:#x} and {:#x}", i.address, ran.address);
        }
        EXPECT_EQ(ran_in_thumb, 0U);
    };
    Part arm;
    call_f(arm);
    choose(arm, true);
    count(arm, true, false);
    return_f(arm);
    Part thumb;
    run_in_thumb(thumb, 0x1008);
    expect_no_overlap(answers({arm, thumb}), 1);
    // The halfword before is the first half of a T32 instruction of four bytes.
    Part amid;
    run_in_thumb(amid, 0x100c);
    run_in_thumb(amid, 0x1010);
    expect_no_overlap(answers({amid}), 2);
}

TEST_F(FlowToAnswers, FiguresOfCodeThatMayBeOtherCodeAreNotExact) {
    EXPECT_EQ(answers({whole()}).trust.front().exact, "instructions and calls of all that was decoded");
    for (const AccountRule& rule : account_rules()) {
        Account account;
        add(account, {.reason = rule.reason});
        FlowAnswersOptions options;
        options.account = &account;
        const Trust trust = answers({whole()}, options).trust.front();
        EXPECT_EQ(trust.exact.empty(), rule.state == AccountState::uncertain) << rule.what;
        EXPECT_EQ(trust.estimated.find("uncertain") != std::string::npos, trust.exact.empty()) << rule.what;
    }
}

TEST_F(FlowToAnswers, BranchesAndLoops) {
    const Answers a = answers({whole()});
    const Branch& chooses = branch(a, 0x1004);
    EXPECT_EQ(chooses.kind, Branch::Kind::conditional);
    EXPECT_EQ(chooses.taken, 0U);
    EXPECT_EQ(chooses.not_taken, 1U);
    EXPECT_EQ(chooses.seen_taken, Seen::not_executed);
    EXPECT_EQ(chooses.seen_not_taken, Seen::executed);
    EXPECT_EQ(branch(a, 0x1018).taken, 2U);
    EXPECT_EQ(branch(a, 0x1020).kind, Branch::Kind::call);
    EXPECT_EQ(branch(a, 0x101c).kind, Branch::Kind::function_return);
    ASSERT_EQ(a.loops.size(), 1U);
    EXPECT_EQ(a.loops[0].head, 0x1014U);
    EXPECT_EQ(a.loops[0].tail, 0x1018U);
    EXPECT_EQ(a.loops[0].entries, 1U);
    EXPECT_EQ(a.loops[0].iterations, 3U);
    EXPECT_EQ(a.loops[0].costs, Costs{6});
}

TEST_F(FlowToAnswers, TheCallsEdgeHasWhatPassedUntilItsReturn) {
    const Answers a = answers({whole()});
    for (const Edge& e : a.edges)
        if (e.kind == Branch::Kind::call) {
            EXPECT_EQ(e.from, 0x1020U);
            EXPECT_EQ(e.to, 0x1000U);
            EXPECT_EQ(e.times, 1U);
            EXPECT_EQ(e.inclusive, Costs{11});
            return;
        }
    FAIL() << "no call";
}

TEST_F(FlowToAnswers, OnlyWhatLiesOnTheWayCouldHaveRunUnseen) {
    Part p;
    call_f(p);
    choose(p, false);
    off(p);  // at 0x1008
    return_f(p);
    after(p);
    const Answers a = answers({p});
    auto is = seen(a);
    for (const std::uint64_t on_the_way : {0x1008, 0x100c, 0x1014, 0x1018})
        EXPECT_EQ(is[on_the_way], Seen::not_observed) << std::hex << on_the_way;
    // The other way was not taken before, and no unseen flow leads back.
    EXPECT_EQ(is[0x1010], Seen::not_executed);
    // Flow may have passed through the caller.
    EXPECT_EQ(is[0x102c], Seen::not_observed);
    EXPECT_EQ(branch(a, 0x1004).seen_taken, Seen::not_executed);
    EXPECT_EQ(branch(a, 0x1018).seen_taken, Seen::not_observed);
}

TEST_F(FlowToAnswers, WhereTraceIsDamagedAllThatMayHaveBeenCalledIsNotObserved) {
    Part p;
    call_f(p);
    choose(p, false);
    gap(p);
    return_f(p);
    after(p);
    auto is = seen(answers({p}));
    EXPECT_EQ(is[0x1010], Seen::not_observed);
    EXPECT_EQ(is[0x102c], Seen::not_observed);
    EXPECT_EQ(is[0x1004], Seen::executed);
}

TEST_F(FlowToAnswers, AHandlerThatTheUnitLeftOutMayBeAnyCodeButThatOfPrograms) {
    Part p;
    call_f(p);
    choose(p, false);
    exception(p, 0x1008);
    off(p);
    first_way(p);
    count(p, false, false);
    return_f(p);
    after(p);
    for (const std::uint64_t never : {0x1010, 0x102c}) {
        EXPECT_EQ(seen(answers({p}))[never], Seen::not_observed);
        // The handlers belong to an operating system, whose code is not in the programs.
        FlowAnswersOptions options;
        options.of_user_level = [never](std::uint64_t address) { return address == never; };
        EXPECT_EQ(seen(answers({p}, options))[never], Seen::not_executed);
    }
}

TEST_F(FlowToAnswers, WhereTraceIsLostInAHandlerWhatWasInterruptedMayHaveGoneOn) {
    Part p;
    call_f(p);
    choose(p, false);
    exception(p, 0x1008);
    gap(p);
    after(p);
    FlowAnswersOptions options;
    options.of_user_level = [](std::uint64_t) { return true; };
    auto is = seen(answers({p}, options));
    for (const std::uint64_t may : {0x1008, 0x100c, 0x1014, 0x1018, 0x101c})
        EXPECT_EQ(is[may], Seen::not_observed) << std::hex << may;
}

TEST_F(FlowToAnswers, WhatLeadsToWhereFlowIsRegainedCouldHaveRunUnseen) {
    Part p;
    return_g(p);  // the trace begins here
    const Answers a = answers({p});
    auto is = seen(a);
    EXPECT_EQ(is[0x1030], Seen::executed);
    // Only code to which executed code leads is known: there is none before it.
    EXPECT_FALSE(is.contains(0x1000));

    Part q;
    call_f(q);
    choose(q, true);
    count(q, true, false);
    return_f(q);
    off(q);
    return_g(q);
    is = seen(answers({q}));
    EXPECT_EQ(is[0x1024], Seen::not_observed);
    EXPECT_EQ(is[0x102c], Seen::not_observed);
    EXPECT_EQ(is[0x1008], Seen::not_executed);
}

// The branches before a system call that makes a thread, whose trace begins after that call.
TEST_F(FlowToAnswers, ABranchThatMayHaveRunUnseenLedNowhereThatDidNotRun) {
    Part first, second;
    for (Part* p : {&first, &second}) {
        if (p == &first) {
            call_f(*p);
            choose(*p, false);
        }
        first_way(*p);  // the trace of the second begins here
        count(*p, false, false);
        return_f(*p);
        after(*p);
    }
    const Answers a = answers({first, second});
    EXPECT_EQ(seen(a)[0x1010], Seen::not_executed);
    EXPECT_EQ(branch(a, 0x1004).seen_taken, Seen::not_executed);
    EXPECT_EQ(branch(a, 0x1004).seen_not_taken, Seen::executed);
}

TEST_F(FlowToAnswers, CapturesAddUpToWhatOneWouldSay) {
    Part second;
    call_f(second);
    choose(second, true);
    count(second, true, true);
    count(second, false, false);
    return_f(second);
    after(second);
    const Answers both = answers({whole(), second});
    Answers merged = answers({whole()});
    merge(merged, answers({second}));

    ASSERT_EQ(merged.functions.size(), both.functions.size());
    const auto costs = function_costs(merged), expected = function_costs(both);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        EXPECT_EQ(merged.functions[i].name, both.functions[i].name);
        EXPECT_EQ(costs[i].calls, expected[i].calls);
        EXPECT_EQ(costs[i].self, expected[i].self);
        EXPECT_EQ(costs[i].inclusive, expected[i].inclusive);
    }
    ASSERT_EQ(merged.instructions.size(), both.instructions.size());
    for (std::size_t i = 0; i < both.instructions.size(); ++i) {
        EXPECT_EQ(merged.instructions[i].address, both.instructions[i].address);
        EXPECT_EQ(merged.instructions[i].times, both.instructions[i].times);
        EXPECT_EQ(merged.instructions[i].seen, both.instructions[i].seen);
    }
    ASSERT_EQ(merged.edges.size(), both.edges.size());
    for (std::size_t i = 0; i < both.edges.size(); ++i) {
        EXPECT_EQ(merged.edges[i].times, both.edges[i].times);
        EXPECT_EQ(merged.edges[i].inclusive, both.edges[i].inclusive);
    }
    ASSERT_EQ(merged.branches.size(), both.branches.size());
    for (std::size_t i = 0; i < both.branches.size(); ++i) {
        EXPECT_EQ(merged.branches[i].taken, both.branches[i].taken);
        EXPECT_EQ(merged.branches[i].not_taken, both.branches[i].not_taken);
        EXPECT_EQ(merged.branches[i].seen_taken, both.branches[i].seen_taken);
    }
    ASSERT_EQ(merged.loops.size(), both.loops.size());
    EXPECT_EQ(merged.loops[0].entries, both.loops[0].entries);
    EXPECT_EQ(merged.loops[0].costs, both.loops[0].costs);
}

// ---- the timeline

TEST(FlowTimelines, AreBoundedAndStayNested) {
    for (const std::uint32_t tracks : {1U, 3U}) {
        for (const std::size_t most : {100U, 1000U, 5000U}) {
            FlowTimeline timeline(false, most);
            synthetic::Random random(most);
            Work now;
            std::uint64_t slices = 0;
            std::vector<std::uint64_t> begins;
            const auto ended = [&] { slices += begins.back() != now.instructions ? 1 : 0, begins.pop_back(); };
            for (int i = 0; i < 50000; ++i) {
                now.instructions += random.below(20);
                const auto depth = static_cast<std::uint32_t>(begins.size());
                if (tracks > 1 && random.below(30) == 0) {
                    timeline.switch_to(now, random.below(tracks));
                    while (!begins.empty()) ended();
                } else if (depth == 0 || (depth < 12 && random.half())) {
                    timeline.enter(now, depth, 1 + random.below(5));
                    begins.push_back(now.instructions);
                } else {
                    timeline.leave(now, depth - 1);
                    ended();
                }
            }
            timeline.finish(now);
            while (!begins.empty()) ended();
            EXPECT_LE(timeline.pieces().size(), most);
            EXPECT_GT(timeline.resolution(), 0U);
            std::uint64_t merged = 0;
            std::map<std::uint32_t, FlowTimeline::Piece> around;
            std::uint64_t last = 0;
            std::uint32_t track = 0;
            for (const FlowTimeline::Piece& p : timeline.pieces()) {
                EXPECT_GE(p.merged, 1U);
                EXPECT_LT(p.begin, p.end);
                merged += p.merged;
                if (p.track != track) last = 0;
                EXPECT_LE(track, p.track);
                track = p.track;
                EXPECT_LE(last, p.begin);
                last = p.begin;
                if (p.depth != 0) {
                    EXPECT_LE(around[p.depth - 1].begin, p.begin);
                    EXPECT_GE(around[p.depth - 1].end, p.end);
                }
                if (p.merged > 1) {
                    EXPECT_LE(p.end - p.begin, timeline.resolution());
                }
                around[p.depth] = p;
            }
            EXPECT_EQ(merged, slices);
        }
    }
}

// The same calls, cut at the beginning and end of the window.
TEST(FlowTimelines, AWindowHoldsWhatAllOfItHoldsThere) {
    for (std::uint64_t seed = 1; seed < 200; ++seed) {
        synthetic::Random random(seed);
        const FlowWindow window{random.below(2500), 2500 + random.below(2500)};
        FlowTimeline all(false, 100000), part(false, 100000, window);
        Work now;
        std::uint32_t depth = 0;
        for (int i = 0; i < 600; ++i) {
            now.instructions += random.below(15);
            const std::uint64_t what = random.below(20);
            for (FlowTimeline* t : {&all, &part}) {
                if (what == 0)
                    t->switch_to(now, static_cast<std::uint32_t>(seed % 3 == 0 ? i % 3 : 0));
                else if (what == 1)
                    t->happened(now, {0, {}, flow::NoMemory{}});
                else if (depth == 0 || (depth < 9 && what % 2 == 0))
                    t->enter(now, depth, static_cast<FunctionId>(1 + i % 5));
                else
                    t->leave(now, depth - 1);
            }
            if (what == 0)
                depth = 0;
            else if (depth == 0 || (depth < 9 && what % 2 == 0))
                depth += what == 1 ? 0 : 1;
            else if (what != 1)
                --depth;
        }
        all.finish(now);
        part.finish(now);
        const std::uint64_t end = std::min(window.end, now.instructions);
        EXPECT_EQ(part.begin(), window.begin);
        EXPECT_EQ(part.end(), end);
        const auto within = [&](const FlowTimeline& t) {
            // Tracks are numbered in the order in which they were met.
            std::vector<
                std::tuple<std::optional<std::uint32_t>, std::uint64_t, std::uint64_t, std::uint32_t, FunctionId>>
                out;
            for (const FlowTimeline::Piece& p : t.pieces()) {
                const std::uint64_t from = std::max(p.begin, window.begin), to = std::min(p.end, end);
                if (from < to) out.emplace_back(t.tracks()[p.track], from, to, p.depth, p.function);
            }
            std::sort(out.begin(), out.end());
            return out;
        };
        EXPECT_EQ(within(part), within(all)) << "seed " << seed;
        EXPECT_EQ(within(part).size(), part.pieces().size()) << "nothing beyond the window, seed " << seed;
        const auto lost = [&](const FlowTimeline& t) {
            std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
            for (const FlowTimeline::Note& n : t.notes()) {
                const std::uint64_t from = std::max(n.at, window.begin), to = std::min(n.end, end);
                if (n.kind == TimelineMark::Kind::gap && from < to) out.emplace_back(from, to);
            }
            return out;
        };
        EXPECT_EQ(lost(part), lost(all)) << "seed " << seed;
    }
}

TEST(FlowTimelines, AWindowBehindTheEndHoldsNothing) {
    FlowTimeline timeline(false, 100, {1000, 2000});
    timeline.enter({0, 0}, 0, 1);
    timeline.leave({50, 0}, 0);
    timeline.finish({60, 0});
    EXPECT_TRUE(timeline.pieces().empty());
    EXPECT_EQ(timeline.begin(), timeline.end());
}

TEST(FlowTimelines, WhatTookNoTimeIsLeftOutAmidSeveralTracks) {
    FlowTimeline timeline(false, 1);
    Work now;
    const auto slice = [&](std::uint32_t context) {
        timeline.switch_to(now, context);
        timeline.enter(now, 0, 1);
        now.instructions += 10;
        timeline.leave(now, 0);
    };
    slice(1);
    slice(2);
    timeline.switch_to(now, 1);
    timeline.enter(now, 0, 2);
    timeline.enter(now, 1, 3);  // there are too many: pieces are sorted, and the pieces of context 2 come last
    timeline.leave(now, 0);
    now.instructions += 10;
    timeline.finish(now);
    ASSERT_EQ(timeline.pieces().size(), 2U);
    for (const FlowTimeline::Piece& p : timeline.pieces()) EXPECT_EQ(p.end - p.begin, 10U);
}

TEST_F(FlowToAnswers, TimesAreNanosecondsWhereTheClockIsKnown) {
    const auto timeline = [&](std::uint64_t ticks_per_second, std::uint64_t begin = 1000) {
        Part p = whole();
        const auto last = static_cast<std::uint32_t>(p.ranges.size() - 1);
        p.events.push_back({0, {}, flow::Timestamp{begin, true, false, {}}});
        p.events.push_back({last, {}, flow::Timestamp{1024, true, false, {}}});
        FlowCode code(symbols, memory);
        FlowTimeline times(false, 1000);
        FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = true, .observer = &times});
        sink.consume({blocks, {}, p.ranges, p.events});
        sink.finish();
        times.finish(sink.calls().now());
        Answers out;
        fill_flow_answers(out, {{.sink = &sink, .source = "source", .timeline = &times}},
                          {.ticks_per_second = ticks_per_second});
        whole_answers.add(out);
        return out.timeline;
    };
    const Timeline ticks = timeline(0), ns = timeline(24'000'000);
    EXPECT_EQ(ticks.axis.unit, "ticks");
    EXPECT_EQ(ticks.axis.uncertainty, 24U);
    EXPECT_EQ(ns.axis.unit, "ns");
    EXPECT_EQ(ns.axis.begin, 41666U);
    EXPECT_EQ(ns.axis.uncertainty, 1000U);
    EXPECT_NE(ns.axis.note.find("24,000,000 ticks a second"), std::string::npos) << ns.axis.note;
    ASSERT_EQ(ns.slices.size(), ticks.slices.size());
    ASSERT_FALSE(ns.slices.empty());
    for (std::size_t i = 0; i < ns.slices.size(); ++i) {
        EXPECT_NEAR(static_cast<double>(ns.slices[i].begin), static_cast<double>(ticks.slices[i].begin) / 0.024, 42);
        EXPECT_NEAR(static_cast<double>(ns.slices[i].end), static_cast<double>(ticks.slices[i].end) / 0.024, 42);
    }
    // Timestamps that never advance are ignored; without a clock no counter wraps.
    EXPECT_EQ(timeline(24'000'000, 1024).axis.unit, "instructions");
    EXPECT_GE(timeline(1).axis.end, timeline(1).axis.begin);
}

TEST(FlowTimelines, GapsLastUntilCodeIsKnownAgain) {
    FlowTimeline timeline(true, 100);
    timeline.enter({10, 100}, 0, 1);
    timeline.happened({20, 200}, {0, {}, flow::NoMemory{}});
    timeline.leave({20, 200}, 0);
    timeline.happened({20, 250}, {0, {}, Gap{{}, {}, GapReason::framing}});  // within the first
    timeline.happened({20, 260}, {0, {}, flow::NoMemory{}});                 // as before
    timeline.regained({20, 300});                                            // in a frame that was there before
    timeline.happened({30, 400}, {0, {}, flow::NoMemory{}});
    timeline.finish({30, 450});
    const auto& notes = timeline.notes();
    ASSERT_EQ(notes.size(), 3U);
    EXPECT_EQ(notes[0].number, FlowTimeline::no_image);
    EXPECT_EQ(notes[0].at, 200U);
    EXPECT_EQ(notes[0].end, 300U);
    EXPECT_EQ(notes[1].end, notes[1].at);
    EXPECT_EQ(notes[2].at, 400U);
    EXPECT_EQ(notes[2].end, 450U);
}

TEST(FlowTimelines, OverflowsLastFromOneTimestampToTheNext) {
    FlowTimeline timeline(true, 100);
    const auto overflow = [] { return flow::Event{0, {}, flow::TraceOn{flow::TraceOnReason::overflow}}; };
    const auto timestamp = [](std::uint64_t value, bool known = true) {
        return flow::Event{0, {}, flow::Timestamp{value, known}};
    };
    timeline.happened({5, 50}, overflow());  // nothing came before it
    timeline.happened({10, 100}, timestamp(1000));
    timeline.happened({20, 200}, overflow());
    timeline.happened({20, 210}, timestamp(7, false));  // carries nothing
    timeline.happened({30, 300}, timestamp(1600));
    timeline.happened({40, 400}, timestamp(1700));
    timeline.happened({50, 500}, overflow());
    timeline.finish({50, 500});
    const auto& notes = timeline.notes();
    ASSERT_EQ(notes.size(), 3U);
    EXPECT_FALSE(notes[0].bounded);
    EXPECT_TRUE(notes[1].bounded);
    EXPECT_EQ(notes[1].ticks_before, 1000U);
    EXPECT_EQ(notes[1].ticks_after, 1600U);
    EXPECT_FALSE(notes[2].bounded);
}

TEST(FlowTimelines, TicksGoByWhatPassesBetweenTimestamps) {
    const TickMap map({{100, 1000}, {200, 1400}, {300, 1500}});
    EXPECT_EQ(map.ticks(100), 1000U);
    EXPECT_EQ(map.ticks(150), 1200U);
    EXPECT_EQ(map.ticks(250), 1450U);
    EXPECT_EQ(map.ticks(50), 800U);
    EXPECT_EQ(map.ticks(400), 1600U);
}

TEST(FlowTimelines, OneSleepIsNotTheErrorOfAll) {
    std::vector<TickMap::Interval> intervals;
    TickMap({{100, 1000}, {200, 1400}, {300, 1500}}).add_intervals(intervals);
    EXPECT_EQ(TickMap::uncertainty(intervals).usual, 400U);
    EXPECT_EQ(TickMap::uncertainty(intervals).most, 400U);
    // Another thread slept for long, and ran one instruction meanwhile.
    TickMap({{0, 5000}, {1, 447'529}, {1000, 448'000}}).add_intervals(intervals);
    EXPECT_EQ(TickMap::uncertainty(intervals).usual, 471U);
    EXPECT_EQ(TickMap::uncertainty(intervals).most, 442'529U);
    EXPECT_EQ(TickMap::uncertainty({}).most, 0U);
}

// ---- loops, in random programs

/// A function f of random branches at 0x1000 and a function g behind it that f calls, run at random; and the facts
/// about loops that the order of execution decides.
class RandomLoops {
public:
    explicit RandomLoops(std::uint64_t seed) : random_(seed) {
        for (std::uint32_t i = 0; i < words; ++i) code_.push_back(word(i));
        code_.push_back(0xe12fff1e);  // bx lr
        code_.push_back(0xe3a00000);  // g: mov r0, #0
        code_.push_back(0xe12fff1e);  // bx lr
        std::vector<std::uint8_t> bytes;
        for (const std::uint32_t w : code_)
            for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(w >> (8 * i)));
        EXPECT_TRUE(memory.add_bytes(bytes, {base}, {}, "program").has_value());
        EXPECT_TRUE(memory.add_bytes(std::vector<std::uint8_t>(0x100, 0), {0x8000}, {}, "others").has_value());
        symbols.add("f", {base}, 4 * (words + 1), image::SymbolKind::function);
        symbols.add("g", {at(words + 1)}, 8, image::SymbolKind::function);
        symbols.add("handler", {0x8000}, 0x10, image::SymbolKind::function);
        symbols.add("caller", {0x8010}, 0x10, image::SymbolKind::function);
        for (unsigned calls = 0; calls < 6; ++calls) run();
    }

    /// A loop by its definition, from the executed instructions: where it is entered, how often, and its nesting depth.
    struct Found {
        std::set<std::uint32_t> nodes, entered;
        std::uint64_t entries{};
        bool irreducible{};
        std::size_t depth{};
    };
    std::vector<Found> loops() const {
        using Nodes = std::set<std::uint32_t>;
        std::set<std::pair<std::uint32_t, std::uint32_t>> ways;
        for (const std::vector<std::uint32_t>& run : ran_)
            for (std::size_t i = 1; i < run.size(); ++i) ways.emplace(run[i - 1], run[i]);
        const auto reach = [](const auto& by, Nodes out, const Nodes& without) {
            for (const std::uint32_t n : without) out.erase(n);
            for (bool more = true; more;) {
                more = false;
                for (const auto& [from, to] : by)
                    if (out.contains(from) && !without.contains(to)) more |= out.insert(to).second;
            }
            return out;
        };
        const Nodes all = reach(ways, {0}, {});
        const auto dominates = [&](std::uint32_t n, std::uint32_t other) {
            return n == other || !reach(ways, {0}, {n}).contains(other);
        };
        std::set<std::pair<std::uint32_t, std::uint32_t>> back, forward;
        for (const auto& [from, to] : ways) {
            back.emplace(to, from);
            if (!dominates(to, from)) forward.emplace(from, to);
        }
        std::vector<Found> out;
        for (const std::uint32_t head : all) {
            Nodes latches;
            for (const auto& [from, to] : ways)
                if (to == head && !forward.contains({from, to})) latches.insert(from);
            if (latches.empty()) continue;
            Found loop{reach(back, latches, {head}), {head}};
            loop.nodes.insert(head);
            out.push_back(loop);
        }
        const std::size_t natural = out.size();
        Nodes done;
        for (const std::uint32_t n : all) {
            Nodes region;
            for (const std::uint32_t other : reach(forward, {n}, {}))
                if (reach(forward, {other}, {}).contains(n)) region.insert(other);
            if (region.size() < 2 || done.contains(n)) continue;
            done.insert(region.begin(), region.end());
            Found loop{region, {}, 0, true};
            for (std::size_t i = 0; i < natural; ++i)
                if (region.contains(*out[i].entered.begin()))
                    loop.nodes.insert(out[i].nodes.begin(), out[i].nodes.end());
            if (loop.nodes.contains(0)) loop.entered.insert(0);
            for (const auto& [from, to] : ways)
                if (loop.nodes.contains(to) && !loop.nodes.contains(from)) loop.entered.insert(to);
            out.push_back(loop);
        }
        for (Found& loop : out) {
            for (const std::vector<std::uint32_t>& run : ran_)
                for (std::size_t i = 0; i < run.size(); ++i)
                    if (loop.entered.contains(run[i]) && (i == 0 || !loop.nodes.contains(run[i - 1]))) ++loop.entries;
            for (const Found& other : out)
                if (std::includes(other.nodes.begin(), other.nodes.end(), loop.nodes.begin(), loop.nodes.end()))
                    ++loop.depth;
        }
        return out;
    }
    std::uint64_t iterations(std::uint64_t head) const {
        std::uint64_t out = 0;
        for (const std::vector<std::uint32_t>& run : ran_)
            for (const std::uint32_t n : run) out += at(n) == head ? 1U : 0U;
        for (const std::uint32_t n : unseen_) out -= at(n) == head ? 1U : 0U;
        return out;
    }
    static std::uint32_t number(std::uint64_t address) { return static_cast<std::uint32_t>((address - base) / 4); }
    Answers answers() const {
        FlowCode code(symbols, memory);
        FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = true});
        sink.consume({blocks_, {}, ranges_, events_});
        sink.finish();
        Answers out;
        fill_flow_answers(out, {{.sink = &sink, .source = "source"}}, {.instructions = true});
        return out;
    }
    std::string text() const {
        std::string out;
        for (std::uint32_t n = 0; n < code_.size(); ++n) out += fmt::format("{:x} {:08x}\n", at(n), code_[n]);
        return out;
    }

    image::MemoryMap memory;
    image::Symbols symbols;

private:
    static constexpr std::uint64_t base = 0x1000;
    static constexpr std::uint32_t words = 20;
    static std::uint64_t at(std::uint32_t n) { return base + std::uint64_t{4} * n; }
    static std::uint32_t branch(std::uint32_t opcode, std::uint32_t from, std::uint32_t to) {
        return opcode | ((to - from - 2) & 0xffffff);
    }
    std::uint32_t word(std::uint32_t n) {
        switch (random_.below(8)) {
            case 0:
            case 1: return branch(0x0a000000, n, random_.below(words + 1));                                   // beq
            case 2: return random_.below(3) != 0 ? branch(0x0a000000, n, random_.below(n + 1)) : 0xe12fff13;  // bx r3
            case 3: return branch(0xea000000, n, random_.below(words + 1));                                   // b
            case 4: return branch(0xeb000000, n, words + 1);                                                  // bl g
            default: return 0xe3a01001;  // mov r1, #1
        }
    }

    void emit(std::uint32_t first, std::uint32_t last, End end, std::uint8_t flags, std::uint64_t target, bool taken) {
        range({.start = at(first),
               .target = target,
               .bytes = 4 * (last - first + 1),
               .instructions = last - first + 1,
               .section = 0,
               .isa = isa::Isa::a32,
               .end = end,
               .last_bytes = 4,
               .flags = flags},
              taken);
    }
    /// An instruction of code outside f.
    void other(std::uint64_t address, End end, std::uint8_t flags, std::uint64_t target) {
        range({.start = address,
               .target = target,
               .bytes = 4,
               .instructions = 1,
               .section = 1,
               .isa = isa::Isa::a32,
               .end = end,
               .last_bytes = 4,
               .flags = flags},
              true);
    }
    void range(const Block& block, bool taken) {
        std::uint32_t id = 0;
        while (id < blocks_.size() && !(blocks_[id] == block)) ++id;
        if (id == blocks_.size()) blocks_.push_back(block);
        ranges_.push_back({id * 2 + (taken ? 1U : 0U), 0, flow::no_cycles, 1});
    }
    void handle(std::uint32_t next) {
        events_.push_back(
            {static_cast<std::uint32_t>(ranges_.size()),
             {},
             flow::Exception{&synthetic::exception_type(14), Address{at(next)}, Address{0x8000}, flow::no_cycles}});
        other(0x8000, End::indirect, Block::exception_return, 0);
    }

    /// Executes f from its call to its return, or until a limit; then trace is switched off.
    void run() {
        std::vector<std::uint32_t>& run = ran_.emplace_back();
        std::uint32_t first = 0, n = 0;
        other(0x8010, End::direct, Block::link, base);
        for (unsigned steps = 0;; ++steps) {
            run.push_back(n);
            const std::uint32_t op = code_[n] >> 24;
            if (n == words) return emit(first, n, End::indirect, Block::function_return, 0, true);
            std::uint32_t next = n + 1;
            const auto target = static_cast<std::uint32_t>((n + 2 + code_[n]) & 0xffffff);
            const bool branches = op == 0x0a || op == 0xea || op == 0xeb || code_[n] == 0xe12fff13;
            if (op == 0x0a) {
                const bool taken = random_.below(3) == 0;
                emit(first, n, End::direct, Block::conditional, at(target), taken);
                if (taken) next = target;
            } else if (op == 0xea) {
                emit(first, n, End::direct, 0, at(target), true);
                next = target;
            } else if (op == 0xeb) {
                emit(first, n, End::direct, Block::link, at(target), true);
                emit(words + 1, words + 2, End::indirect, Block::function_return, 0, true);
            } else if (branches) {
                emit(first, n, End::indirect, 0, 0, true);
                next = random_.below(words + 1);
            }
            if (branches) first = next;
            bool delivered = code_[n] != 0xe12fff13 && op != 0xeb;
            if (random_.below(20) == 0) {
                delivered = true;
                if (!branches) emit(first, n, End::not_a_waypoint, 0, 0, false);
                handle(next);
                first = next;
            }
            if (steps > 150) {
                if (first != next) emit(first, n, End::not_a_waypoint, 0, 0, false);
                // Execution arrived there, but no trace shows that the code ran; nothing shows the target of an
                // indirect branch or a return.
                if (delivered) {
                    run.push_back(next);
                    unseen_.push_back(next);
                }
                events_.push_back(
                    {static_cast<std::uint32_t>(ranges_.size()), {}, flow::TraceOn{flow::TraceOnReason::enabled}});
                return;
            }
            n = next;
        }
    }

    synthetic::Random random_;
    std::vector<std::uint32_t> code_;
    std::vector<Block> blocks_;
    std::vector<flow::Range> ranges_;
    std::vector<flow::Event> events_;
    std::vector<std::vector<std::uint32_t>> ran_;
    std::vector<std::uint32_t> unseen_;
};

TEST(Loops, OfRandomProgramsAreThoseOfTheDefinition) {
    std::size_t natural = 0, irreducible = 0;
    for (std::uint64_t seed = 1; seed <= sized(100U, 25U); ++seed) {
        const RandomLoops program(seed);
        const Answers a = program.answers();
        std::vector<RandomLoops::Found> expected = program.loops();
        for (const Loop& loop : a.loops) {
            if (a.functions[loop.function].name != "f") continue;
            const std::string which =
                "seed " + std::to_string(seed) + fmt::format(", {:x}\n", loop.head) + program.text();
            const auto same = std::find_if(expected.begin(), expected.end(), [&](const RandomLoops::Found& f) {
                return f.irreducible == loop.irreducible && f.entered.contains(RandomLoops::number(loop.head));
            });
            ASSERT_NE(same, expected.end()) << which;
            ASSERT_EQ(loop.entries, same->entries) << which;
            ASSERT_EQ(loop.depth, same->depth) << which;
            ASSERT_EQ(loop.iterations, program.iterations(loop.head)) << which;
            ++(loop.irreducible ? irreducible : natural);
            expected.erase(same);
        }
        ASSERT_TRUE(expected.empty()) << seed << "\n" << program.text();
    }
    EXPECT_GT(natural, sized(100U, 25U));
    EXPECT_GT(irreducible, sized(10U, 2U));
}

}  // namespace
}  // namespace waymark::analysis
