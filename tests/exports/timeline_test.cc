/// Timelines for viewers: nesting, times, and what is merged or left out to fit.
#include "../../src/exports/timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "../../src/exports/look_up.h"

namespace waymark::exports {
namespace {

using answers::Index;
using answers::none;
using answers::Slice;
using answers::Timeline;
using answers::TimelineMark;

std::string text(const std::vector<Slice>& slices) {
    std::string out;
    for (const Slice& s : slices)
        out += fmt::format("{}-{} t{} f{} d{} x{}\n", s.begin, s.end, s.track,
                           s.function == none ? "?" : std::to_string(s.function), s.depth, s.merged);
    return out;
}

TEST(Timelines, NanosecondsOfEachUnit) {
    const auto ns = [](const char* unit, std::uint64_t rate, std::uint64_t time) {
        answers::TimeAxis axis;
        axis.unit = unit;
        axis.ticks_per_second = rate;
        const Nanoseconds of(axis);
        return fmt::format("{} {}", of(time), of.note());
    };
    EXPECT_EQ(ns("ns", 5, 7), "7 ");
    EXPECT_EQ(ns("ticks", 2'000'000'000, 7), "3 ");
    EXPECT_EQ(ns("ticks", 7, 20), "2857142857 ");
    EXPECT_EQ(ns("ticks", 18'000'000'000, 36'000'000'001), "2000000000 ");
    EXPECT_EQ(ns("ticks", 18'000'000'001, 36'000'000'000), "2000000000 ") << "no remainder overflows";
    EXPECT_EQ(ns("ticks", 17'999'999'999, 17'999'999'998), "999999999 ");
    EXPECT_EQ(ns("cycles", 0, 7), "7 1 ns = 1 cycle");
    EXPECT_EQ(ns("s", 0, 7), "7 1 ns = 1 s");
    EXPECT_EQ(ns("us", 0, 7), "7 1 ns = 1 u");
    EXPECT_EQ(ns("tick", 0, 7), "7 1 ns = 1 tick");
    EXPECT_EQ(ns("", 0, 7), "7 1 ns = 1 ");
}

TEST(Timelines, SlicesAndMarksOfATrack) {
    Timeline t;
    t.slices = {{1, 2, 0, 0, 0, 1}, {1, 2, 2, 1, 0, 1}, {3, 4, 2, 2, 0, 1}, {1, 2, 3, 3, 0, 1}};
    t.marks = {{1, 1, 1, TimelineMark::Kind::gap, "a"}, {2, 2, 1, TimelineMark::Kind::gap, "b"}};
    std::vector<std::size_t> slices, marks;
    for (Index track = 0; track < 5; ++track) {
        slices.push_back(slices_of(t, track).size());
        marks.push_back(marks_of(t, track).size());
    }
    EXPECT_EQ(slices, (std::vector<std::size_t>{1, 0, 2, 1, 0}));
    EXPECT_EQ(marks, (std::vector<std::size_t>{0, 2, 0, 0, 0}));
    EXPECT_EQ(slices_of(t, 2)[0].function, 1U);
    EXPECT_EQ(marks_of(t, 1)[1].text, "b");
}

TEST(Timelines, EveryKindOfMarkHasAWord) {
    using Kind = TimelineMark::Kind;
    const std::vector<std::pair<Kind, const char*>> words{{Kind::gap, "gap"},         {Kind::exception, "exception"},
                                                          {Kind::context, "context"}, {Kind::user_data, "user data"},
                                                          {Kind::trigger, "trigger"}, {Kind::overflow, "overflow"}};
    for (const auto& [kind, word] : words) EXPECT_EQ(name(kind), word);
    EXPECT_EQ(name(static_cast<Kind>(99)), "mark");
}

TEST(Timelines, WalkedSlicesNest) {
    const auto walked = [](const std::vector<Slice>& slices) {
        std::string out;
        walk(
            slices, [&](const Slice& s) { out += fmt::format("({}@{}", s.function, s.begin); },
            [&](const Slice& s, std::uint64_t time) { out += fmt::format(" {}@{})", s.function, time); });
        return out;
    };
    EXPECT_EQ(walked({}), "");
    EXPECT_EQ(walked({{1, 9, 0, 1, 0, 1}, {2, 4, 0, 2, 1, 1}, {4, 6, 0, 3, 1, 1}}), "(1@1(2@2 2@4)(3@4 3@6) 1@9)");
    EXPECT_EQ(walked({{1, 9, 0, 1, 0, 1}, {2, 12, 0, 2, 1, 1}}), "(1@1(2@2 2@9) 1@9)") << "it outlasts its parent";
    EXPECT_EQ(walked({{1, 5, 0, 1, 0, 1}, {5, 7, 0, 2, 1, 1}}), "(1@1 1@5)(2@5 2@7)") << "its parent is over";
    EXPECT_EQ(walked({{1, 5, 0, 1, 0, 1}, {5, 5, 0, 2, 1, 1}}), "(1@1(2@5 2@5) 1@5)") << "a moment at its end";
    EXPECT_EQ(walked({{1, 5, 0, 1, 0, 1}, {6, 7, 0, 2, 1, 1}}), "(1@1 1@5)(2@6 2@7)");
    EXPECT_EQ(walked({{4, 8, 0, 1, 0, 1}, {2, 6, 0, 2, 0, 1}}), "(1@4 1@8)(2@8 2@8)") << "time does not go back";
    EXPECT_EQ(walked({{4, 2, 0, 1, 0, 1}}), "(1@4 1@4)") << "it ends before it begins";
    EXPECT_EQ(walked({{1, 9, 0, 1, 0, 1}, {2, 8, 0, 2, 1, 1}, {3, 4, 0, 3, 2, 1}, {5, 6, 0, 4, 1, 1}}),
              "(1@1(2@2(3@3 3@4) 2@8)(4@8 4@8) 1@9)");
}

struct Reduced {
    Timeline timeline;
    Reduction what;
};
Reduced reduced(const Timeline& t, std::uint64_t resolution) {
    Reduced out;
    out.timeline = reduce(t, resolution, out.what);
    return out;
}

TEST(Timelines, ShortSlicesAreMergedOrLeftOut) {
    Timeline t;
    t.axis.unit = "ns";
    t.tracks = {{"a", none}, {"b", none}};
    t.resolution = 3;
    // Below function 1: three short slices side by side, of which 3 takes longest; one slice as long as the
    // resolution; a short one that stays alone, with an inner one.
    t.slices = {{0, 100, 0, 1, 0, 1}, {1, 4, 0, 2, 1, 1},   {5, 9, 0, 3, 1, 2},   {9, 11, 0, 2, 1, 1},
                {20, 30, 0, 4, 1, 1}, {22, 24, 0, 5, 2, 1}, {40, 43, 0, 6, 1, 1}, {41, 42, 0, 7, 2, 1},
                {60, 69, 0, 8, 1, 1}, {0, 9, 1, 9, 0, 1},   {19, 28, 1, 9, 0, 1}, {37, 46, 1, 10, 0, 5}};
    const Reduced r = reduced(t, 10);
    // 9-11 is as long as 2 and 3 together: 5 of function 2, 4 of function 3.
    // On the other track, 0-9 is 10 from the next, which is 9 from the last.
    EXPECT_EQ(text(r.timeline.slices), "0-100 t0 f1 d0 x1\n1-11 t0 f2 d1 x4\n20-30 t0 f4 d1 x1\n19-46 t1 f9 d0 x6\n");
    EXPECT_EQ(r.what.resolution, 10U);
    EXPECT_EQ(r.what.merged, 5U);
    EXPECT_EQ(r.what.dropped, 5U);
    EXPECT_EQ(r.timeline.resolution, 10U);
    EXPECT_EQ(r.timeline.tracks.size(), 2U);
    EXPECT_EQ(r.timeline.axis.unit, "ns");
    EXPECT_EQ(reduced(t, 2).timeline.resolution, 3U);
    // Distances of less than the resolution do not separate slices.
    EXPECT_EQ(text(reduced(t, 11).timeline.slices), "0-100 t0 f1 d0 x1\n1-43 t0 f4 d1 x6\n0-46 t1 f9 d0 x7\n");
    EXPECT_EQ(text(reduced(t, 0).timeline.slices), text(t.slices));
    EXPECT_EQ(reduced(t, 0).what.resolution, 0U);
}

TEST(Timelines, TheFunctionOfMergedSlicesIsTheLongestAndThenTheFirst) {
    Timeline t;
    t.slices = {{0, 5, 0, 7, 0, 1}, {5, 10, 0, 2, 0, 1}, {10, 14, 0, 9, 0, 0xffffffff}};
    EXPECT_EQ(text(reduced(t, 6).timeline.slices), "0-14 t0 f2 d0 x4294967295\n");
}

TEST(DamagedTimelines, ASliceThatEndsBeforeItBeginsHasNoLength) {
    Timeline t;
    t.slices = {{9, 3, 0, 1, 0, 1}, {0, 8, 0, 2, 0, 1}};
    EXPECT_EQ(text(reduced(t, 6).timeline.slices), "0-8 t0 f2 d0 x1\n");
}

TEST(Timelines, MarksAndPointsAreThinned) {
    Timeline t;
    using Kind = TimelineMark::Kind;
    t.tracks = {{"a", none}};
    t.marks = {{100, 100, 0, Kind::gap, "a"}, {109, 109, 0, Kind::gap, "b"},    {109, 109, 0, Kind::trigger, "c"},
               {110, 110, 0, Kind::gap, "d"}, {112, 122, 0, Kind::gap, "long"}, {121, 121, 0, Kind::gap, "e"},
               {122, 122, 0, Kind::gap, "f"}, {123, 122, 0, Kind::gap, "back"}, {123, 123, 1, Kind::gap, "g"},
               {120, 120, 1, Kind::gap, "h"}};
    t.series = {{"s", "u", 0, {{0, 1}, {9, 3}, {5, 2}, {10, 1}, {19, 1}, {20, -1}, {25, 0}}}, {"t", "v", none, {}}};
    const Reduced r = reduced(t, 10);
    std::string kept;
    for (const TimelineMark& m : r.timeline.marks) kept += m.text + " ";
    EXPECT_EQ(kept, "a c d long f g ");
    EXPECT_EQ(r.what.marks, 4U);
    std::string points;
    for (const auto& p : r.timeline.series.at(0).points) points += fmt::format("{}:{} ", p.time, p.value);
    EXPECT_EQ(points, "9:3 10:1 25:0 ");
    EXPECT_EQ(r.what.points, 4U);
    ASSERT_EQ(r.timeline.series.size(), 2U);
    EXPECT_EQ(r.timeline.series[0].name + r.timeline.series[0].unit, "su");
    EXPECT_EQ(r.timeline.series[0].track, 0U);
    EXPECT_EQ(r.timeline.series[1].name + r.timeline.series[1].unit, "tv");
    EXPECT_EQ(r.timeline.series[1].track, none);
}

TEST(Timelines, WhatIsLeftOutIsOneSentence) {
    answers::TimeAxis axis;
    axis.unit = "cycles";
    const auto sentence = [&](Reduction r) {
        r.resolution = 4096;
        return r.text(axis);
    };
    EXPECT_EQ(sentence({}), "");
    EXPECT_EQ(sentence({.merged = 1, .dropped = 2, .marks = 3, .points = 1}),
              "to fit, items shorter than 4,096 cycles are not shown separately: 1 slice merged into longer ones, "
              "2 slices left out, 3 marks left out, 1 point of series left out");
}

TEST(TimelineNotes, PointsOfSeriesAreMany) {
    answers::TimeAxis axis;
    axis.unit = "cycles";
    EXPECT_EQ((Reduction{.resolution = 4096, .points = 2}.text(axis)),
              "to fit, items shorter than 4,096 cycles are not shown separately: 2 points of series left out");
}

TEST(Timelines, TheFinestThatFitsIsTaken) {
    // One slice of each length from 1 to 64; each takes a byte. From a resolution of 10,001 on they are merged into
    // one of 642,080, which is too short for 655,360.
    Timeline t;
    std::uint64_t now = 0;
    for (std::uint64_t length = 1; length <= 64; ++length) {
        t.slices.push_back({now, now + length, 0, 0, 0, 1});
        now += length + 10'000;
    }
    const auto size = [](const Timeline& of) { return std::uint64_t{of.slices.size()} + 1; };
    struct Want {
        std::uint64_t limit, resolution, slices;
        bool fits;
    };
    for (const Want& w : {Want{65, 0, 64, true}, Want{100, 0, 64, true}, Want{64, 2, 63, true}, Want{33, 34, 31, true},
                          Want{9, 58, 7, true}, Want{2, 64, 1, true}, Want{1, 655'360, 0, true},
                          Want{0, ~std::uint64_t{0}, 0, false}}) {
        const Fitted f = fit(t, w.limit, size);
        EXPECT_EQ(f.fits, w.fits) << w.limit;
        EXPECT_LE(f.timeline.slices.size(), w.limit);
        EXPECT_EQ(f.what.resolution, w.resolution) << w.limit;
        EXPECT_EQ(f.timeline.slices.size(), w.slices) << w.limit;
    }
}

TEST(Lookup, LinesAsText) {
    EXPECT_EQ(line_list({}), "");
    EXPECT_EQ(line_list({7}), "7");
    EXPECT_EQ(line_list({1, 2, 4, 6, 7, 7, 8}), "1-2, 4, 6-8");
    EXPECT_EQ(line_list({5, 5}), "5");
    EXPECT_EQ(line_list({1, 3, 5}), "1, 3, 5");
}

TEST(Lookup, NodesWithoutFunctionHaveWords) {
    answers::Answers a;
    a.functions = {{"f"}};
    using Kind = answers::CallNode::Kind;
    EXPECT_EQ(node_name(a, {none, 0, Kind::root, 0, {}}), "f");
    EXPECT_EQ(node_name(a, {none, 1, Kind::root, 0, {}}), "all");
    EXPECT_EQ(node_name(a, {none, none, Kind::unsynchronised, 0, {}}), "[caller not in the trace]");
    for (const Kind kind : {Kind::call, Kind::interrupt, Kind::tail_call, Kind::signal})
        EXPECT_EQ(node_name(a, {none, none, kind, 0, {}}), "[unknown]");
}

TEST(Lookup, WhatEntersAFunction) {
    answers::Answers a;
    a.functions = {{"f", "", 0, 0x100, 16}, {"g", "", 0, 0x200, 16}, {"[irq]", "", none, 0x300, 0, none, 0, true}};
    using Kind = answers::Branch::Kind;
    const auto entered = [&](std::uint64_t to, Index from_function, Index to_function, Kind kind) {
        return enters(a, {0x104, to, from_function, to_function, kind, 1, {}});
    };
    EXPECT_TRUE(entered(0x200, 0, 1, Kind::call));
    EXPECT_TRUE(entered(0x200, 0, 1, Kind::indirect_call));
    EXPECT_TRUE(entered(0x200, 0, 1, Kind::unconditional)) << "a tail call";
    EXPECT_TRUE(entered(0x100, 0, 0, Kind::call)) << "recursion";
    EXPECT_TRUE(entered(0x100, 0, 0, Kind::indirect_call));
    EXPECT_FALSE(entered(0x100, 0, 0, Kind::conditional)) << "a loop";
    EXPECT_FALSE(entered(0x204, 0, 1, Kind::call)) << "not its beginning";
    EXPECT_FALSE(entered(0x200, 0, 1, Kind::function_return));
    EXPECT_FALSE(entered(0x300, 0, 2, Kind::call)) << "no code";
    EXPECT_FALSE(entered(0x200, 0, none, Kind::call));
}

TEST(Lookup, PathsAreCutFromOneFrameTooManyOn) {
    const auto walked = [](std::size_t nodes) {
        answers::Answers a;
        a.calls.resize(nodes);
        for (Index i = 0; i < nodes; ++i) a.calls[i].parent = i == 0 ? none : i - 1;
        CutPaths paths(a);
        std::vector<Index> path;
        std::size_t omitted = 0;
        paths.walk(
            static_cast<Index>(nodes - 1), [&](Index node) { path.push_back(node); },
            [&](std::size_t n) {
                omitted = n;
                path.push_back(none);
            });
        return fmt::format("{} frames, {} omitted after {}, last {}; {}", path.size(), omitted,
                           std::find(path.begin(), path.end(), none) - path.begin(), path.back(), paths.note());
    };
    EXPECT_EQ(walked(1), "1 frames, 0 omitted after 1, last 0; ");
    EXPECT_EQ(walked(512), "512 frames, 0 omitted after 512, last 0; ");
    EXPECT_EQ(walked(513),
              "512 frames, 2 omitted after 255, last 0; a path is deeper than 512 frames: the outermost 256 and the "
              "innermost frames of each are written");
    EXPECT_EQ(walked(1000),
              "512 frames, 489 omitted after 255, last 0; a path is deeper than 512 frames: the outermost 256 and the "
              "innermost frames of each are written");
}

TEST(Lookup, MetricsThatAreNotThereAreRefused) {
    answers::Answers a;
    a.metrics.resize(2);
    EXPECT_TRUE(check_metric(a, 1));
    const Status refused = check_metric(a, 2);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, "there is no metric 2 of 2");
    EXPECT_EQ(refused.error().code, Errc::usage);
}

}  // namespace
}  // namespace waymark::exports
