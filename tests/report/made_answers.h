/// Handmade answers for tests of the report: for every kind of unit, with hostile names, and large.
#pragma once

#include <cstdint>
#include <string>

#include "waymark/answers/answers.h"

namespace waymark::test {

using namespace answers;

inline std::uint64_t next_random(std::uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/// Program flow: `functions` functions of 20 instructions, about `calls` calls, and `slices` slices on two tracks.
inline Answers made_flow(std::size_t functions = 12, std::size_t calls = 60, std::size_t slices = 400) {
    Answers a;
    a.capture = "made";
    a.unit = "PTM";
    a.version = "0.1.0";
    a.trace_bytes = 123'456;
    a.metrics = {{"instructions", "instructions", true}, {"cycles", "cycles", true}};
    a.health = {
        {Finding::Severity::warning, "2 stretches of flow were lost.", "Record again with a larger buffer.", 4096},
        {Finding::Severity::good, "Every packet was understood."}};
    a.summary = {{"instructions", "1,234,567"}, {"branches", "98,765", "12,345 of them indirect"}};
    a.images = {{"program", "/home/user/program", "0123456789abcdef"}};
    a.sources = {{"/src/main.c", {}}, {"/src/lost.c", {}}};
    for (std::size_t i = 0; i < functions * 8; ++i)
        a.sources[0].lines.push_back("    statement_" + std::to_string(i) + "();");
    std::uint64_t random = 88172645463325252;
    for (std::size_t f = 0; f < functions; ++f) {
        const std::uint64_t address = 0x10000 + f * 80;
        a.functions.push_back(
            {f == 1 ? "std::map<std::string, std::vector<int>, std::less<>>::find(std::string const&) const"
                    : "function_" + std::to_string(f),
             "", 0, address, 80, 0, static_cast<std::uint32_t>(f * 8 + 1)});
        for (std::uint32_t k = 0; k < 20; ++k) {
            Instruction i;
            i.address = address + k * 4;
            i.bytes = 4;
            i.function = static_cast<Index>(f);
            i.source = 0;
            i.line = static_cast<std::uint32_t>(f * 8 + 1 + k / 3);
            i.seen = k == 18 ? Seen::not_executed : k == 19 ? Seen::not_observed : Seen::executed;
            i.times = i.seen == Seen::executed ? 1000 * (functions - f) / (k + 1) : 0;
            i.text = k == 17 ? "bne 0x10000" : "add r0, r0, #" + std::to_string(k);
            a.instructions.push_back(i);
            if (k % 3 == 0)
                a.lines.push_back({0,
                                   i.line,
                                   k == 18 ? Seen::not_executed : Seen::executed,
                                   i.function,
                                   i.times,
                                   {i.times * 3, i.times * 4}});
        }
        Branch b;
        b.address = address + 17 * 4;
        b.target = address;
        b.function = static_cast<Index>(f);
        b.source = 0;
        b.line = static_cast<std::uint32_t>(f * 8 + 6);
        b.taken = 100 * f;
        b.not_taken = f % 2 == 0 ? 0 : 7;
        b.seen_not_taken = f % 4 == 0 ? Seen::not_observed : Seen::not_executed;
        a.branches.push_back(b);
        a.loops.push_back({address, b.address, b.function, 0, b.line, 10 + f, 100 * f + 10, {2000 * f, 3000 * f}});
    }
    a.calls.push_back({none, none, CallNode::Kind::root, 0, {0, 0}});
    for (std::size_t c = 1; c < calls; ++c) {
        CallNode node;
        node.parent = static_cast<Index>(c == 1 ? 0 : next_random(random) % c / 2 + 1);
        if (node.parent >= c) node.parent = 0;
        node.function = static_cast<Index>(next_random(random) % functions);
        node.kind = c % 17 == 0 ? CallNode::Kind::interrupt : CallNode::Kind::call;
        node.calls = next_random(random) % 50 + 1;
        node.self = {next_random(random) % 10'000 + 1, next_random(random) % 20'000 + 1};
        a.calls.push_back(node);
    }
    Timeline& t = a.timeline;
    t.axis = {"ns", 0, 5'000'000, 5'000'000 + slices * 1000, 250, "Made, not measured."};
    t.tracks = {{"core 0"}, {"core 1"}};
    for (Index track = 0; track < 2; ++track)
        for (std::size_t s = 0; s < slices / 4; ++s) {
            const std::uint64_t begin = t.axis.begin + s * 4000, length = 500 + next_random(random) % 3400;
            const auto f = static_cast<Index>(next_random(random) % functions);
            t.slices.push_back({begin, begin + length, track, f, 0, 1});
            t.slices.push_back({begin + length / 4, begin + length / 2, track, static_cast<Index>((f + 1) % functions),
                                1, s % 50 == 0 ? 9U : 1U});
        }
    t.marks = {
        {t.axis.begin + slices * 300, t.axis.begin + slices * 340, 0, TimelineMark::Kind::gap, "overflow of the FIFO"},
        {t.axis.begin + slices * 500, t.axis.begin + slices * 500, 0, TimelineMark::Kind::exception, "IRQ"},
        {t.axis.begin + slices * 700, t.axis.begin + slices * 700, 1, TimelineMark::Kind::user_data, "0x2a"}};
    Series series{"instructions per µs", "1/µs", 0, {}};
    for (std::size_t p = 0; p < slices; ++p)
        series.points.push_back({t.axis.begin + p * 1000, static_cast<double>(next_random(random) % 1000) / 10});
    t.series = {series};
    a.exceptions = {{"IRQ", 18, 40, 2, 900, 12'000, 100'000, 39}, {"supervisor call", 11, 7, 0, 0, 0, 0, 0}};
    a.levels = {{"Secure", "EL3", "AArch64", 1, {1'000}}, {"Non-secure", "EL0", "AArch64", 41, {2'000'000}}};
    return a;
}

/// Samples: no calls, no timeline, but charts and tables.
inline Answers made_samples() {
    Answers a = made_flow();
    a.capture = "perf.data";
    a.unit = "SPE";
    a.metrics = {{"samples", "samples", true}, {"latency cycles", "cycles", false, "Estimated from samples."}};
    a.calls.clear();
    a.timeline = {};
    a.loops.clear();
    a.exceptions.clear();
    a.levels.clear();
    for (Instruction& i : a.instructions) {
        i.costs = {i.times / 10, i.times};
        i.times = 0;
    }
    for (Branch& b : a.branches) b.mispredicted = b.taken / 20;
    Chart latencies{Chart::Kind::histogram, "Latency of loads", "cycles", "samples", "", {}};
    for (unsigned i = 0; i < 24; ++i)
        latencies.bars.push_back({std::to_string(i * 16), 5000 / (i + 1) + i % 5 * 90, ""});
    Chart sources{Chart::Kind::shares,
                  "Where loads got their data",
                  "",
                  "samples",
                  "Of loads alone.",
                  {{"L1D", 91'000}, {"L2", 6'000}, {"system level cache", 1'200}, {"DRAM", 800, "mean 276 cycles"}}};
    a.charts = {latencies, sources};
    a.tables = {{"Cache lines shared by threads",
                 "Those that are written.",
                 {Column::text("line"), Column::count("threads"), Column::count("samples")},
                 {{"0x7f001040", "2", "1234"}, {"0x7f001080", "4", "99"}}}};
    return a;
}

/// Names, texts and cells that could be misread as markup or script.
inline Answers made_hostile() {
    const std::string markup = "</script><img src=x onerror=\"window.harmed=1\"><b>&amp;'`${1}";
    Answers a = made_samples();
    const Answers flow = made_flow();
    a.calls = flow.calls;
    a.timeline = flow.timeline;
    a.exceptions = flow.exceptions;
    a.loops = flow.loops;
    a.capture = markup;
    a.unit = "PTM";
    a.functions[0].name = a.functions[2].name = markup;
    a.functions[3].name = std::string("broken \xff\xfe utf-8 \x01 \xe2\x80\xae") + markup;
    a.functions[0].linkage_name = a.images[0].name = a.images[0].path = a.images[0].build_id = markup;
    a.sources[0].path = "/src/" + markup;
    for (std::string& line : a.sources[0].lines) line += markup;
    a.instructions[0].text = markup;
    a.metrics[0].name = a.metrics[0].unit = a.metrics[0].note = markup;
    a.health.push_back({Finding::Severity::bad, markup, markup});
    a.summary.push_back({markup, markup, markup});
    a.timeline.axis.unit = a.timeline.axis.note = markup;
    a.timeline.tracks[0].name = a.timeline.marks[0].text = a.timeline.series[0].name = a.timeline.series[0].unit =
        markup;
    a.exceptions[0].name = markup;
    a.charts[0].title = a.charts[0].note = a.charts[0].bars[0].label = a.charts[1].bars[0].note = markup;
    a.tables[0].title = a.tables[0].note = a.tables[0].columns[0].head = markup;
    a.tables[0].rows[0][0] = Cell(markup);
    return a;
}

}  // namespace waymark::test
