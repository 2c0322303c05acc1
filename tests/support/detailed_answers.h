/// Answers with every table filled, and with every kind of row that an export treats specially. Numbers differ wherever
/// they can, so that a wrong field, row or order shows in what is written.
#pragma once

#include "waymark/answers/answers.h"

namespace waymark::support {

/// Two programs, a library and the kernel. `main` calls `work` three times, `work` calls the library's `sin` through a
/// pointer and itself; `main` ends in a jump to a part of `work`. The library's code has the same addresses as the
/// program's.
inline answers::Answers detailed_answers() {
    using namespace answers;
    using isa::Isa;
    using Kind = Branch::Kind;
    Answers a;
    a.capture = "detailed \"<run>\"";
    a.unit = "ETMv4";
    a.version = "1.2";
    a.trace_bytes = 777;
    a.cut = true;
    a.account = {{.reason = AccountReason::decoded, .instructions = 40},
                 {.reason = AccountReason::overflow, .of = "ETMv4", .times = 2, .bytes = 8, .instructions = 9},
                 {.reason = AccountReason::cut, .times = 3, .ranges = 4, .records = 5}};
    a.health = {{Finding::Severity::bad, "bytes are missing", "", 0x40, false, "", 0},
                {Finding::Severity::warning, "names are missing", "give \"files\"", {}, true, "", 0},
                {Finding::Severity::note, "a, b", "", {}, false, "", 0},
                {Finding::Severity::good, "whole", "", {}, false, "", 0}};
    a.trust = {{"functions", "counts", "cycles", "time"}, {"timeline", "", "", "all"}};
    a.summary = {{"instructions", "40", "at least"}, {"cycles", "81", ""}};
    a.metrics = {{"instructions", "instructions", true, ""},
                 {"cycles", "cycles", true, ""},
                 {"bus time", "ns", false, "reads only"},
                 {"2 kinds", "bytes", true, ""}};
    a.images = {{.name = "prog", .path = "/tmp/prog", .build_id = "0a1b2c3d4e5f", .has_symbols = true, .whole = true},
                {.name = "libm.so.6"},
                {.name = "[kernel.kallsyms]", .path = "/boot/vmlinux", .build_id = "ff00"},
                {.name = "blob", .path = "/tmp/blob", .recorded = "/opt/blob"}};
    a.images[0].recorded = "/bin/prog";
    a.images[0].segments = {{0x10000, 0, 0x800, false}, {0x11000, 0x800, 0x1000, true}};
    a.images[1].segments = {{0x10f80, 0x40, 0x200, true}};
    a.images[3].segments = {{0x2000, 0x200, 0x1001, true}};
    a.sources = {
        {"/src/main.c", {}}, {"/src/util.h", {}}, {"rel/lib.c", {}}, {"/usr/include/c++/12/vector", {}}, {"top.c", {}}};
    a.functions = {
        {"main", "main", 0, 0x11000, 0x20, 0, 10, false, "", 0, 9, false},
        {"work(int)", "_Z4worki", 0, 0x11020, 0x18, 0, 30, false, "_Z4worki", 0, 29, true},
        {"work(int) [clone .part.0]", "_Z4worki.part.0", 0, 0x11040, 8, 0, 35, false, "_Z4worki", 0, 29, true},
        {"sin", "sin@@GLIBC_2.17", 1, 0x11000, 0x10, 2, 3, false, "", none, 0, false},
        {"[unknown]", "", 3, 0x2000, 0, none, 0, false, "", none, 0, false},
        {"[interrupt 6]", "", none, 0, 0, none, 0, true, "", none, 0, false},
        {"idle", "idle", 2, 0xffff'0000'0000'1000, 16, none, 0, false, "", none, 0, false},
        {"main", "main.cold", 0, 0x11060, 8, 1, 5, false, "", none, 0, false},
        {"never", "never", 0, 0x11100, 4, 4, 1, false, "", none, 0, false},
        {"(no symbol) in prog", "", 0, 0x11080, 4, 4, 3, false, "", none, 0, false},
        {"task", "", 0, 0, 0, 0, 50, true, "", none, 0, false},
        {"stub", "stub", 0, 0x11110, 8, 4, 5, false, "", none, 0, false},
        {"of nothing", "", 4, 0x9000, 4, 5, 0, false, "", none, 0, false}};  // there is no such image or source
    a.inlined = {{none, 0, SharedText("area(int, int)"), SharedText("_Z4areaii"), 0, 13, 0, 6},
                 {0, 0, SharedText("square"), SharedText(), 1, 7, 0, 8},
                 {none, 1, SharedText("area(int, int)"), SharedText("_Z4areaii"), 0, 32, 5, 6}};
    const auto no_function = static_cast<Index>(a.functions.size());
    const auto code = [&](std::uint64_t address, Index function, Index source, std::uint32_t line, std::uint64_t times,
                          Costs costs, Seen seen = Seen::executed, Index inlined = none,
                          std::uint32_t discriminator = 0) {
        const bool thumb = function == 4;
        a.instructions.push_back({address, static_cast<std::uint8_t>(thumb ? 2 : 4), thumb ? Isa::t32 : Isa::a64, seen,
                                  function, source, line, times, std::move(costs), thumb ? "" : "nop", inlined,
                                  discriminator});
    };
    code(0x2000, 4, none, 0, 4, {});
    code(0x3000, no_function, none, 0, 2, {2, 1, 0, 0});
    code(0x9000, 12, 5, 9, 1, {1, 2, 0, 0});
    code(0x11000, 0, 0, 10, 1, {1, 3, 7, 0});
    code(0x11000, 3, 2, 3, 5, {5, 9, 0, 0});
    code(0x11004, 0, 0, 11, 3, {3, 5, 0, 2});  // bl work
    code(0x11004, 3, 2, 4, 5, {5, 6, 2, 0});   // ret
    code(0x11008, 0, 0, 12, 3, {3, 4, 1, 1});  // b.ne 11004
    code(0x1100c, 0, 1, 7, 1, {1, 1, 0, 0}, Seen::executed, 0);
    code(0x11010, 0, 1, 9, 1, {1, 2, 0, 0}, Seen::executed, 1);
    code(0x11014, 0, 0, 14, 1, {1, 0, 0, 0});  // b work.part
    code(0x11018, 0, 0, 15, 0, {0, 0, 0, 0}, Seen::not_observed);
    code(0x1101c, 0, 0, 16, 0, {0, 0, 0, 0}, Seen::not_executed);
    code(0x11020, 1, 0, 30, 6, {6, 8, 0, 0}, Seen::executed, none, 0x304);   // base 2, 3 times
    code(0x11024, 1, 0, 31, 6, {6, 7, 0, 0}, Seen::executed, none, 0x40c2);  // base 33; b.eq main.cold
    code(0x11028, 1, 1, 7, 5, {5, 6, 0, 3}, Seen::executed, 2);              // blr sin
    code(0x1102c, 1, 0, 33, 4, {4, 4, 0, 0});                                // br
    code(0x11030, 1, 0, 34, 4, {4, 4, 0, 0});                                // ret
    code(0x11034, 1, none, 0, 0, {0, 0, 0, 0}, Seen::not_executed);
    code(0x11040, 2, 0, 36, 2, {2, 2, 0, 0});
    code(0x11044, 2, 0, 37, 2, {2, 3, 0, 0});  // ret
    code(0x11060, 7, 1, 5, 1, {1, 12, 0, 0});
    code(0x11080, 9, 4, 3, 1, {1, 13, 0, 0});
    code(0x110f0, 10, 0, 51, 3, {3, 1, 0, 0});                        // of a task
    code(0x11110, 11, 4, 6, 0, {0, 0, 0, 0}, Seen::not_executed, 3);  // there is no such inlined call
    code(0xffff'0000'0000'1000, 6, none, 0, 8, {8, 30, 0, 0});
    a.statements = {{0x11004, 0, 0, 17}, {0x1102c, 1, 1, 8}};
    const auto line = [&](Index source, std::uint32_t number, Index function, std::uint64_t times, Costs costs,
                          Seen seen = Seen::executed) {
        a.lines.push_back({source, number, seen, function, times, std::move(costs)});
    };
    line(0, 10, 0, 1, {1, 3, 7, 0});
    line(0, 11, 0, 3, {3, 5, 0, 2});
    line(0, 12, 0, 3, {3, 4, 1, 1});
    line(0, 14, 0, 1, {1, 0, 0, 0});
    line(0, 15, 0, 0, {0, 0, 0, 0}, Seen::not_observed);
    line(0, 16, 0, 0, {0, 0, 0, 0}, Seen::not_executed);
    line(0, 17, 0, 0, {});  // executed, but its count is not known
    line(0, 30, 1, 6, {6, 8, 0, 0});
    line(0, 31, 1, 6, {6, 7, 0, 0});
    line(0, 33, 1, 4, {4, 4, 0, 0});
    line(0, 34, 1, 4, {4, 4, 0, 0});
    line(0, 36, 2, 2, {2, 2, 0, 0});
    line(0, 37, 2, 2, {2, 3, 0, 0});
    line(1, 5, 7, 1, {1, 12, 0, 0});
    line(1, 7, 0, 6, {6, 7, 0, 3});
    line(1, 9, 0, 1, {1, 2, 0, 0});
    line(2, 3, 3, 5, {5, 9, 0, 0});
    line(2, 4, 3, 5, {5, 6, 2, 0});
    line(3, 99, 1, 1, {1, 1, 1, 1});
    line(4, 1, 8, 0, {0, 0, 0, 0}, Seen::not_observed);
    line(4, 2, 8, 0, {0, 0, 0, 0}, Seen::not_observed);
    line(4, 3, 9, 1, {1, 13, 0, 0});
    line(4, 6, 11, 0, {0, 0, 0, 0}, Seen::not_executed);
    line(5, 9, 12, 1, {1, 2, 0, 0});
    const auto branch = [&](std::uint64_t address, std::uint64_t target, Kind kind, Index function, Index source,
                            std::uint32_t number, std::uint64_t taken, std::uint64_t not_taken,
                            Seen seen_taken = Seen::executed, Seen seen_not_taken = Seen::executed) {
        a.branches.push_back({address, target, kind, function, source, number, taken, not_taken, seen_taken,
                              seen_not_taken, std::nullopt});
    };
    branch(0x11004, 0x11020, Kind::call, 0, 0, 11, 3, 0);
    branch(0x11004, 0, Kind::function_return, 3, 2, 4, 5, 0);
    branch(0x11008, 0x11004, Kind::conditional, 0, 0, 12, 2, 1);
    branch(0x1100c, 0x11018, Kind::conditional, 0, 1, 7, 0, 1, Seen::not_observed);
    branch(0x11014, 0x11040, Kind::unconditional, 0, 0, 14, 1, 0);
    branch(0x11018, 0x11000, Kind::conditional, 0, 0, 15, 0, 0, Seen::not_observed, Seen::not_executed);
    branch(0x11024, 0x11060, Kind::conditional, 1, 0, 31, 1, 5);
    branch(0x11028, 0, Kind::indirect_call, 1, 1, 7, 5, 0);
    branch(0x1102c, 0, Kind::indirect, 1, 0, 33, 4, 0);
    branch(0x11030, 0, Kind::function_return, 1, 0, 34, 4, 0);
    branch(0x11034, 0x11020, Kind::conditional, 1, 0, 31, 7, 0, Seen::executed, Seen::not_observed);
    branch(0x11044, 0, Kind::function_return, 2, 0, 37, 2, 0);
    const auto edge = [&](std::uint64_t from, std::uint64_t to, Index from_function, Index to_function, Kind kind,
                          std::uint64_t times, Costs inclusive = {}) {
        a.edges.push_back({from, to, from_function, to_function, kind, times, std::move(inclusive)});
    };
    edge(0x11004, 0x11008, 3, 0, Kind::function_return, 5);
    edge(0x11004, 0x11020, 0, 1, Kind::call, 3, {31, 44, 2, 3});
    edge(0x11008, 0x11004, 0, 0, Kind::conditional, 2);
    edge(0x11008, 0x1100c, 0, 0, Kind::conditional, 1);
    edge(0x11014, 0x11040, 0, 2, Kind::unconditional, 1, {4, 5, 0, 0});  // a tail call
    edge(0x11024, 0x11060, 1, 7, Kind::conditional, 1);
    edge(0x11028, 0x11000, 1, 3, Kind::indirect_call, 5, {10, 15, 2, 0});
    edge(0x11028, 0x11020, 1, 1, Kind::indirect_call, 0, {1, 1, 1, 1});  // never
    edge(0x1102c, 0x11080, 1, 9, Kind::indirect, 4);
    edge(0x11030, 0x11008, 1, 0, Kind::function_return, 4);
    edge(0x11060, 0x2000, 7, 4, Kind::unconditional, 1);
    edge(0x11060, 0x4000, 7, no_function, Kind::call, 2, {2, 1, 0, 0});
    edge(0x110f0, 0, 10, 10, Kind::call, 1, {1, 1, 0, 1});
    a.blocks = {{0x2000, 2, 1, 4, 4},
                {0x11000, 8, 2, 0, 1},
                {0x11020, 12, 3, 1, 5},
                {0x11040, 8, 2, 2, 2},
                {0x11060, 4, 1, 7, 0}};
    a.loops = {{0x11004, 0x11008, 0, 0, 11, 1, 3, {6, 9, 1, 3}, 1, false, std::nullopt},
               {0x11020, 0x11034, 1, none, 0, 2, 6, {}, 2, true, 0x11004}};
    a.ranges = {{0, 0x11000, 0x11004, Isa::a64, 2, 1, 1, 0}, {0, 0x11004, 0x11008, Isa::a64, 2, 3, 2, 1},
                {0, 0x1100c, 0x11014, Isa::a64, 3, 1, 1, 0}, {0, 0x11020, 0x11024, Isa::a64, 2, 6, 1, 5},
                {0, 0x12000, 0x12004, Isa::a64, 2, 9, 0, 0}, {0, 0x12100, 0x12104, Isa::a64, 2, 3, 0, 0},
                {1, 0x11000, 0x11004, Isa::a64, 2, 5, 5, 0}, {2, 0x1000, 0x100c, Isa::a64, 4, 8, 0, 8},
                {3, 0x2000, 0x2000, Isa::t32, 1, 4, 3, 1},   {3, 0x2010, 0x2010, Isa::t32, 1, 0, 0, 0},
                {3, 0x2020, 0x2020, Isa::t32, 1, 2, 0, 0},   {4, 0x9000, 0x9004, Isa::a64, 2, 1, 1, 0}};
    a.jumps = {{0, 0x11004, 0, 0x11020, Kind::call, 3},          {0, 0x11008, 0, 0x11004, Kind::conditional, 2},
               {0, 0x11014, 0, 0x11040, Kind::unconditional, 1}, {0, 0x11028, 1, 0x11000, Kind::indirect_call, 5},
               {0, 0x12004, none, 0, Kind::indirect, 2},         {1, 0x11004, 0, 0x1100c, Kind::function_return, 5},
               {3, 0x2000, none, 0, Kind::indirect, 2},          {3, 0x2000, 4, 0x9000, Kind::call, 1}};
    a.calls = {{none, none, CallNode::Kind::root, 1, {0, 0, 0, 0}},
               {0, 0, CallNode::Kind::call, 1, {11, 16, 8, 3}},
               {1, 1, CallNode::Kind::call, 3, {20, 23, 0, 3}},
               {2, 1, CallNode::Kind::call, 2, {5, 6, 0, 0}},  // recursion
               {2, 3, CallNode::Kind::call, 5, {10, 15, 2, 0}},
               {1, 2, CallNode::Kind::tail_call, 1, {4, 5, 0, 0}},
               {2, 7, CallNode::Kind::call, 1, {1, 12, 0, 0}},
               {4, 5, CallNode::Kind::interrupt, 1, {0, 0, 0, 0}},
               {7, 6, CallNode::Kind::call, 1, {8, 30, 0, 0}},
               {0, none, CallNode::Kind::unsynchronised, 1, {2, 1, 0, 0}},
               {9, 4, CallNode::Kind::call, 4, {4, 0, 0, 0}},
               {none, 9, CallNode::Kind::root, 0, {1, 13, 0, 0}},  // a task
               {11, no_function, CallNode::Kind::signal, 1, {3, 0, 0, 0}},
               {1, 11, CallNode::Kind::call, 2, {}}};
    a.timeline.axis = {"ticks", 3'000'000, 100, 400, 7, "from timestamps"};
    a.timeline.resolution = 2;
    a.timeline.tracks = {{"cores", none},
                         {"thread a[12] on cpu0", 0},
                         {"thread a[12] on cpu1", 0},
                         {"thread b[x] on cpu1", none},
                         {"channel 5", 5}};  // its parent is no track
    a.timeline.slices = {{90, 160, 1, 0, 0, 1},           {110, 130, 1, 1, 1, 3}, {130, 170, 1, 3, 1, 1},
                         {180, 200, 1, 0, 0, 1},          {200, 230, 2, 1, 0, 1}, {200, 200, 2, 2, 1, 1},
                         {300, 400, 3, no_function, 0, 1}};
    a.timeline.marks = {{150, 155, 1, TimelineMark::Kind::gap, "bytes lost"},
                        {140, 140, 1, TimelineMark::Kind::exception, "IRQ"},
                        {210, 210, 2, TimelineMark::Kind::context, ""},
                        {220, 210, 2, TimelineMark::Kind::trigger, "trigger"},
                        {310, 310, 4, TimelineMark::Kind::user_data, "x = 1, \"y\""},
                        {320, 320, 4, TimelineMark::Kind::user_data, ""},
                        {330, 340, 4, TimelineMark::Kind::overflow, "2 messages"},
                        {350, 350, 5, TimelineMark::Kind::gap, "of no track"}};
    a.timeline.series = {{"load", "%", 1, {{100, 1.25}, {200, -3}}},
                         {"none", "", none, {}},
                         {"all", "1/s", none, {{100, 9007199254740994.0}}}};
    a.exceptions = {{"IRQ", 6, 4, 1, 3, 9, 17, 3, "cycles"}, {"SVC", 11, 2, 0, 0, 0, 0, 0, "instructions"}};
    a.levels = {{"Secure", "EL3", "AArch64", 1, {1, 2, 3, 4}}, {"Non-secure", "", "AArch32", 5, {6}}};
    a.charts = {{Chart::Kind::histogram, "time in IRQ", "cycles", "times", "long", {{"4-7", 1, ""}, {"8-15", 2, "n"}}},
                {Chart::Kind::shares, "data", "", "", "", {{"L1", 3, ""}}}};
    a.tables = {{"stays", "of tasks", {Column::text("task"), Column::count("times")}, {{"a,b \"c\"", "3"}, {"d", "4"}}},
                {"more", "", {Column::text("task")}, {{"e", "5"}}}};
    return a;
}

}  // namespace waymark::support
