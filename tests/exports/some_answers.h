/// Answers for the tests of exports: made by hand, with every number known, and random ones.
#pragma once

#include <string>

#include "support/random.h"
#include "waymark/answers/answers.h"

namespace waymark::support {

/// A program with three functions in one file: `main` calls `sort` twice, `sort` calls `compare` five times; an
/// interrupt occurs in `sort`. Instructions and cycles are counted, and the parts add up.
inline answers::Answers small_answers() {
    using namespace answers;
    Answers a;
    a.capture = "small";
    a.unit = "PTM";
    a.version = "0.1.0";
    a.trace_bytes = 100'000;
    a.health = {{Finding::Severity::warning, "bytes were lost", "use a larger buffer", 0x40}};
    a.summary = {{"instructions", "46", ""}};
    a.metrics = {{"instructions", "instructions"}, {"cycles", "cycles"}};
    a.images = {{"sort.elf", "/tmp/sort.elf", "a1b2c3d4", true, true}};
    a.sources = {{"/src/sort.c", {}}, {"/src/inline.h", {}}};
    a.functions = {{"main", "main", 0, 0x8000, 16, 0, 10, false},
                   {"sort(int*, int)", "_Z4sortPii", 0, 0x8010, 24, 0, 20, false},
                   {"compare", "compare", 0, 0x8028, 12, 0, 40, false},
                   {"[interrupt 6]", "", none, 0, 0, none, 0, true}};
    const auto instruction = [&](std::uint64_t address, Index function, Index source, std::uint32_t line,
                                 std::uint64_t times, std::uint64_t cycles, Seen seen = Seen::executed) {
        a.instructions.push_back(
            {address, 4, isa::Isa::a32, seen, function, source, line, times, {times, cycles}, "nop"});
    };
    instruction(0x8000, 0, 0, 10, 1, 2);
    instruction(0x8004, 0, 0, 11, 2, 4);  // bl sort
    instruction(0x8008, 0, 0, 11, 2, 2);  // bne 8004
    instruction(0x800c, 0, 0, 13, 1, 1);  // bx lr
    instruction(0x8010, 1, 0, 20, 2, 3);
    instruction(0x8014, 1, 0, 21, 5, 9);  // bl compare
    instruction(0x8018, 1, 1, 7, 5, 5);   // inlined
    instruction(0x801c, 1, 0, 22, 5, 6);  // bne 8014
    instruction(0x8020, 1, 0, 24, 2, 2);  // bx lr
    instruction(0x8024, 1, 0, 25, 0, 0, Seen::not_observed);
    instruction(0x8028, 2, 0, 40, 5, 6);
    instruction(0x802c, 2, 0, 41, 5, 5);
    instruction(0x8030, 2, 0, 42, 5, 5);  // bx lr
    a.instructions.push_back({0x8034, 4, isa::Isa::a32, Seen::not_executed, 2, 0, 44, 0, {0, 0}, "nop"});
    const auto line = [&](Index source, std::uint32_t number, Index function, std::uint64_t times, Costs costs,
                          Seen seen = Seen::executed) {
        a.lines.push_back({source, number, seen, function, times, std::move(costs)});
    };
    line(0, 10, 0, 1, {1, 2});
    line(0, 11, 0, 2, {4, 6});
    line(0, 13, 0, 1, {1, 1});
    line(0, 20, 1, 2, {2, 3});
    line(0, 21, 1, 5, {5, 9});
    line(0, 22, 1, 5, {5, 6});
    line(0, 24, 1, 2, {2, 2});
    line(0, 25, 1, 0, {0, 0}, Seen::not_observed);
    line(0, 40, 2, 5, {5, 6});
    line(0, 41, 2, 5, {5, 5});
    line(0, 42, 2, 5, {5, 5});
    line(0, 44, 2, 0, {0, 0}, Seen::not_executed);
    line(1, 7, 1, 5, {5, 5});
    const auto branch = [&](std::uint64_t address, std::uint64_t target, Branch::Kind kind, Index function,
                            std::uint32_t number, std::uint64_t taken, std::uint64_t not_taken) {
        a.branches.push_back({address, target, kind, function, 0, number, taken, not_taken, Seen::executed,
                              Seen::executed, std::nullopt});
    };
    branch(0x8004, 0x8010, Branch::Kind::call, 0, 11, 2, 0);
    branch(0x8008, 0x8004, Branch::Kind::conditional, 0, 11, 1, 1);
    branch(0x800c, 0, Branch::Kind::function_return, 0, 13, 1, 0);
    branch(0x8014, 0x8028, Branch::Kind::call, 1, 21, 5, 0);
    branch(0x801c, 0x8014, Branch::Kind::conditional, 1, 22, 3, 2);
    branch(0x8020, 0, Branch::Kind::function_return, 1, 24, 2, 0);
    branch(0x8030, 0, Branch::Kind::function_return, 2, 42, 5, 0);
    const auto edge = [&](std::uint64_t from, std::uint64_t to, Index from_function, Index to_function,
                          Branch::Kind kind, std::uint64_t times, Costs inclusive = {}) {
        a.edges.push_back({from, to, from_function, to_function, kind, times, std::move(inclusive)});
    };
    edge(0x8004, 0x8010, 0, 1, Branch::Kind::call, 2, {40, 48});
    edge(0x8008, 0x8004, 0, 0, Branch::Kind::conditional, 1);
    edge(0x8008, 0x800c, 0, 0, Branch::Kind::conditional, 1);
    edge(0x8014, 0x8028, 1, 2, Branch::Kind::call, 5, {15, 16});
    edge(0x801c, 0x8014, 1, 1, Branch::Kind::conditional, 3);
    edge(0x801c, 0x8020, 1, 1, Branch::Kind::conditional, 2);
    edge(0x8020, 0x8008, 1, 0, Branch::Kind::function_return, 2);
    edge(0x8030, 0x8018, 2, 1, Branch::Kind::function_return, 5);
    a.blocks = {{0x8000, 8, 2, 0, 1}, {0x8004, 4, 1, 0, 1}, {0x8008, 4, 1, 0, 2},
                {0x800c, 4, 1, 0, 1}, {0x8010, 8, 2, 1, 2}, {0x8014, 4, 1, 1, 3},
                {0x8018, 8, 2, 1, 5}, {0x8020, 4, 1, 1, 2}, {0x8028, 12, 3, 2, 5}};
    a.loops = {{0x8004, 0x8008, 0, 0, 11, 1, 2, {4, 6}}, {0x8014, 0x801c, 1, 0, 21, 2, 5, {15, 20}}};
    a.calls = {{none, none, CallNode::Kind::root, 1, {0, 0}},
               {0, 0, CallNode::Kind::call, 1, {6, 9}},
               {1, 1, CallNode::Kind::call, 2, {19, 25}},
               {2, 2, CallNode::Kind::call, 5, {15, 16}},
               {2, 3, CallNode::Kind::interrupt, 1, {6, 7}}};
    a.timeline.axis = {"cycles", 1'000'000, 1000, 1057, 1, "from cycle counts"};
    a.timeline.tracks = {{"core 0", none}, {"interrupts", 0}};
    a.timeline.slices = {{1000, 1057, 0, 0, 0, 1}, {1004, 1028, 0, 1, 1, 1}, {1006, 1012, 0, 2, 2, 2},
                         {1030, 1054, 0, 1, 1, 1}, {1032, 1040, 0, 2, 2, 3}, {1041, 1048, 1, 0, 0, 1}};
    a.timeline.marks = {{1028, 1030, 0, TimelineMark::Kind::gap, "bytes lost"},
                        {1041, 1041, 1, TimelineMark::Kind::exception, "IRQ"}};
    a.timeline.series = {{"cycles per instruction", "cycles", 0, {{1000, 1.25}, {1030, 2}}}};
    a.exceptions = {{"IRQ", 6, 1, 0, 7, 7, 7, 1}};
    a.levels = {{"Non-secure", "EL1", "AArch64", 2, {5, 9}}, {"Non-secure", "", "AArch32", 1, {1, 2}}};
    a.charts = {{Chart::Kind::histogram, "time in IRQ", "cycles", "times", "", {{"4-7", 1, ""}}}};
    a.tables = {{"stays", "", {Column::text("task"), Column::count("times")}, {{"a,b \"c\"", "3"}}}};
    return a;
}

/// Random slices, nested like a stack's; names with all characters that are difficult in some format.
inline answers::Answers random_answers(std::uint64_t seed, std::size_t slices) {
    using namespace answers;
    synthetic::Random random(seed);
    Answers a;
    a.capture = "random \"capture\" <&>";
    a.unit = "PTM";
    a.version = "0.1.0";
    a.trace_bytes = 20 * slices;
    a.metrics = {{"instructions", "instructions"}};
    constexpr const char* awkward[] = {"operator<",   "a;b",      "say \"hi\"", "back\\slash", "line\nbreak",
                                       "caf\xc3\xa9", "bad\xffy", "tab\there",  "<&>",         "(1) x"};
    a.sources = {{"/src/a b.c", {}}};
    for (Index i = 0; i < 40; ++i)
        a.functions.push_back({std::string(awkward[i % 10]) + std::to_string(i), "f" + std::to_string(i), none,
                               0x1000 + i * 64, 64, 0, 10 + i * 20, false});
    for (Index i = 0; i < 40; ++i)
        for (std::uint32_t k = 0; k < 16; ++k)
            a.instructions.push_back({0x1000 + i * 64 + k * 4,
                                      4,
                                      isa::Isa::a32,
                                      Seen::executed,
                                      i,
                                      0,
                                      10 + i * 20 + k,
                                      1 + random.below(1000),
                                      {},
                                      ""});
    a.calls.push_back({none, none, CallNode::Kind::root, 1, {0}});
    for (std::size_t i = 0; i < 200; ++i)
        a.calls.push_back({random.below(static_cast<std::uint32_t>(a.calls.size())),
                           random.below(40),
                           CallNode::Kind::call,
                           1 + random.below(9),
                           {random.below(500)}});
    Timeline& t = a.timeline;
    t.axis = {"ns", 0, 5'000'000'000, 0, 0, ""};
    const std::size_t tracks = 1 + random.below(3);
    for (std::size_t track = 0; track < tracks; ++track) {
        t.tracks.push_back({"core " + std::to_string(track), none});
        std::vector<std::size_t> open;
        std::uint64_t now = t.axis.begin;
        for (std::size_t i = 0; i < slices / tracks; ++i) {
            while (!open.empty() && (open.size() > 12 || random.below(3) == 0)) {
                t.slices[open.back()].end = now += random.below(50);
                open.pop_back();
            }
            now += random.below(random.chance(200) ? 100000 : 60);
            t.slices.push_back(
                {now, now, static_cast<Index>(track), random.below(40), static_cast<std::uint32_t>(open.size()), 1});
            open.push_back(t.slices.size() - 1);
            if (random.chance(300))
                t.marks.push_back(
                    {now, now + random.below(30), static_cast<Index>(track), TimelineMark::Kind::gap, "lost"});
        }
        while (!open.empty()) {
            t.slices[open.back()].end = now += random.below(50);
            open.pop_back();
        }
        Series s{"rate", "per ns", static_cast<Index>(track), {}};
        for (std::uint64_t time = t.axis.begin; time < now; time += (now - t.axis.begin) / 100 + 1)
            s.points.push_back({time, static_cast<double>(random.below(1000)) / 8});
        t.series.push_back(std::move(s));
        t.axis.end = std::max(t.axis.end, now);
    }
    return a;
}

/// Answers of a Statistical Profiling unit: no calls, no timeline, samples by instruction.
inline answers::Answers sampled_answers() {
    answers::Answers a = small_answers();
    a.unit = "SPE";
    a.metrics = {{"samples", "samples", false, ""}, {"latency cycles", "cycles", false, ""}};
    a.calls.clear();
    a.timeline = {};
    a.blocks.clear();
    a.loops.clear();
    for (auto& i : a.instructions) {
        i.times = 0;
        i.isa = isa::Isa::a64;
    }
    for (auto& l : a.lines) l.times = 0;
    for (auto& b : a.branches) b.mispredicted = b.taken / 2;
    for (auto& e : a.edges) e.inclusive.clear();
    return a;
}

}  // namespace waymark::support
