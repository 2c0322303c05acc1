/// The parts that docs/spec/dpu.md, section 1, draws around and inside the unit: each has a visible effect on the
/// model's output, which differs without it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dpu/support.h"
#include "dpu/unit_driver.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/model.h"

namespace waymark::dpu {
namespace {

using test::Driver;
using test::edca;
using test::item;
using test::supervisor;
using test::trace_control;
using test::user;

constexpr std::uint32_t counts_at_once = 15U << 16, counts_for_trace = 2, counts_as_group = 1;

/// What counter `i` of group A counted in one cycle in which `wire` alone was reported, under the event set `ceg`.
std::uint64_t counted_in_a_cycle(unsigned ceg, unsigned i, EventWire wire, std::uint64_t times) {
    Driver d;
    for (const std::uint32_t offset : {0x30U, 0x38U, 0x40U}) d.write(offset, 0x7fffffff);
    d.write(DpTac::offset, counts_at_once | ceg << 4 | counts_for_trace | counts_as_group);
    d.step();
    d.in.set(wire, times);
    d.step();
    return 0x7fffffffU - d.model.values()[i];
}

// Section 1: everything that the parts around the unit report can be counted, each part by its own events. The
// processor's two ports meet on XA and XB, program and data on the memories they share, others at the interface.
// Requirements: R4 R6
TEST(DpuStructure, EveryPartOfTheSystemIsCountedByItself) {
    const struct {
        std::string part;
        std::vector<EventWire> events;
    } parts[] = {
        {"processor", {EventWire::vles, EventWire::wait, EventWire::stall_all, EventWire::stall_cof}},
        {"program bus", {EventWire::stall_prog}},
        {"instruction cache", {EventWire::ic_hit, EventWire::ic_miss, EventWire::ic_thrash}},
        {"fetch and prefetch unit", {EventWire::ic_pfhit}},
        {"data ports XA and XB", {EventWire::cont_xaxb}},
        {"program and data in one memory", {EventWire::cont_pd, EventWire::stall_bank}},
        {"data channel", {EventWire::dc_hit, EventWire::dc_miss, EventWire::dc_pfhit, EventWire::dc_wback}},
        {"interface to higher memory", {EventWire::bus_busy, EventWire::bus_wait, EventWire::cont_ext}},
        {"second-level cache", {EventWire::l2_hit, EventWire::l2_miss}},
    };
    for (const auto& [part, events] : parts)
        for (const EventWire event : events) {
            unsigned sets = 0;
            for (unsigned ceg = 0; ceg < event_sets; ++ceg)
                for (unsigned i = 0; i < counters_per_triad; ++i) {
                    if (is_own(event_set(ceg)[i])) continue;  // the unit's own event in this cycle
                    const std::uint64_t expected = event_set(ceg)[i] == event ? 1 : 0;
                    EXPECT_EQ(counted_in_a_cycle(ceg, i, event, 1), expected)
                        << part << ": " << name(event) << ", set " << ceg;
                    sets += event_set(ceg)[i] == event;
                }
            EXPECT_GT(sets, 0U) << part << ": no counter can count " << name(event);
        }
}

// Section 3.4: program counter values are virtual, addresses of the trace buffer physical. So a value that equals an
// address of the buffer, or lies where no memory is, does not change where lines are written, and is recorded
// unchanged.
// Requirements: R7
TEST(DpuStructure, ProgramAddressesAreVirtualThoseOfTheBufferPhysical) {
    for (const std::uint32_t pc : {0x00401010U, Driver::base + 4, 0xffffff00U}) {
        Driver d(Driver::traced(TraceMode::eonce_raw));
        d.write({{DpTc::offset, trace_control(TraceMode::eonce_raw)}, {DpTer::offset, Driver::base}});
        d.step();
        for (unsigned i = 0; i < 8; ++i) d.step({item(ItemKind::call, pc, pc + 0x20, user(5))});
        d.close();
        ASSERT_FALSE(d.bursts.empty());
        std::uint32_t next = Driver::base;
        for (const Burst& burst : d.bursts) {
            EXPECT_EQ(burst.address, next);
            next += 32U * burst.lines;
        }
        const auto entries = test::parse(test::memory(d.written), test::in(TraceMode::eonce_raw));
        std::size_t pairs = 0;
        for (const Entry& entry : entries.entries)
            if (const auto* pair = std::get_if<RawPair>(&entry)) {
                ++pairs;
                EXPECT_EQ(pair->source, pc);
                EXPECT_EQ(pair->destination, pc + 0x20);
            }
        EXPECT_EQ(pairs, 8U);
    }
}

/// The visible effects of each part of the unit in a run.
struct Shown {
    bool counted{}, interrupted{}, asked_for_debug{}, nexus{};
    std::uint64_t entries{}, words{}, lines{};
};

/// Three turns of a loop and two calls of different tasks.
Shown run(TraceMode mode, std::uint32_t control, std::uint32_t cr, std::uint32_t tac) {
    Driver d(Driver::traced(mode), 16);
    for (const std::uint32_t offset : {0x30U, 0x38U, 0x40U}) d.write(offset, 0x7fffffff);
    d.write(
        {{DpCr::offset, cr}, {DpRpid::offset, 7}, {DpTac::offset, tac}, {DpTc::offset, trace_control(mode, control)}});
    Shown shown;
    const auto see = [&](const CycleOutput& out) {
        shown.interrupted |= out.pic[0];
        shown.asked_for_debug |= out.debug_request;
        shown.nexus |= !out.nexus.empty();
    };
    see(d.step());
    for (unsigned i = 0; i < 3; ++i) see(d.step({item(ItemKind::loop_short, 0x1010, 0, user(5))}));
    see(d.step({edca(3, user(5))}));
    see(d.step({item(ItemKind::call, 0x1020, 0x2000, user(5))}));
    d.in.ctx = user(7);
    see(d.step({item(ItemKind::call, 0x2020, 0x3000, user(7))}));
    d.in.debug_ext = true;
    see(d.step());
    d.in.debug_ext = false;
    shown.counted = d.model.values()[0] != 0x7fffffffU;
    shown.entries = d.model.counts().entries;
    d.write(DpTc::offset, 0);
    for (unsigned i = 0; i < 20; ++i) see(d.step());
    shown.words = d.model.counts().words;
    shown.lines = d.model.counts().lines_written;
    return shown;
}

// Section 1: counter and register logic, ID compare logic, Nexus interface, output interface, trace write management,
// both switches, compressor and trace information logic: each changes the unit's output in its own way only.
// Requirements: R12
TEST(DpuStructure, EachPartOfTheUnitDoesItsOwn) {
    constexpr std::uint32_t counting = counts_at_once | 1U << 4 | counts_for_trace | counts_as_group;
    constexpr std::uint32_t mirror = 1U << 24, nexus_only = 3U << 24;
    const Shown plain = run(TraceMode::eonce_raw, 0, 0, 0);
    EXPECT_FALSE(plain.counted || plain.interrupted || plain.nexus);
    EXPECT_TRUE(plain.asked_for_debug) << "a request from outside is passed on";
    EXPECT_GT(plain.lines, 0U);

    // Counter and register logic.
    const Shown counters = run(TraceMode::eonce_raw, 0, 0, counting);
    EXPECT_TRUE(counters.counted);
    EXPECT_EQ(counters.words, plain.words);
    // Output interface: watchpoint 3 interrupts.
    const Shown output = run(TraceMode::eonce_raw, 0, 1U << 22, 0);
    EXPECT_TRUE(output.interrupted);
    EXPECT_EQ(output.words, plain.words);
    // Switch 1 leads to the compressor: three turns of a loop become one entry.
    const Shown compressed = run(TraceMode::eonce_comp, 0, 0, 0);
    EXPECT_LT(compressed.entries, plain.entries);
    // Trace information logic: pairs of the selected classes alone make entries, with a sample of all counters.
    const Shown flow = run(TraceMode::flow, 0, 0, 0);
    EXPECT_EQ(flow.entries, 2U);
    // ID compare logic: among these, only pairs of task 7; a call is traced if its ID applies before or after it.
    const Shown filtered = run(TraceMode::flow, test::tc_idflt, 1U << 28, 0);
    EXPECT_EQ(filtered.entries, 1U);
    // Nexus interface, beside the buffer and, by switch 2, in its place: then trace write management writes nothing.
    const Shown both = run(TraceMode::flow, mirror, 0, 0);
    EXPECT_TRUE(both.nexus);
    EXPECT_EQ(both.words, flow.words);
    EXPECT_EQ(both.lines, flow.lines);
    const Shown elsewhere = run(TraceMode::flow, nexus_only, 0, 0);
    EXPECT_TRUE(elsewhere.nexus);
    EXPECT_EQ(elsewhere.words, 0U);
    EXPECT_EQ(elsewhere.lines, 0U);
}

// Section 9: registers and the program counter (each class of trace is asked for by a bit of its own and gives the
// addresses), the event counter and its extension, event detection, and the interrupt. Signals of its JTAG port are not
// part of the model: what comes through it is a debug request.
// Requirements: R14
TEST(DpuStructure, TheEonceGivesWhatItIsProgrammedFor) {
    const struct {
        bool EonceSetup::*bit;
        ItemKind kind;
        std::string words;
    } classes[] = {
        {&EonceSetup::tchof, ItemKind::cof, "00001001 00002000"},
        {&EonceSetup::tint, ItemKind::interrupt, "00001001 00002000"},
        {&EonceSetup::texec, ItemKind::exec_set, "00001001"},
        {&EonceSetup::tmark, ItemKind::mark, "00001001"},
        {&EonceSetup::tloop, ItemKind::loop_long, "00001001 00002000"},
        {&EonceSetup::tsub, ItemKind::ret, "00001001 00002000"},
        {&EonceSetup::trte, ItemKind::rte, "00001001 00002000"},
    };
    for (const auto& [bit, kind, words] : classes)
        for (const unsigned counters : {0U, 1U, 2U}) {
            // A unit that traces every set has no time for counters.
            if (counters > 0 && (kind == ItemKind::exec_set || kind == ItemKind::mark)) continue;
            for (const bool wanted : {true, false}) {
                ModelConfig config;
                config.eonce.*bit = wanted;
                config.eonce.tcount = counters > 0;
                config.eonce.tcntext = counters > 1;
                ASSERT_TRUE(config.check());
                Driver d(config);
                d.write(DpTc::offset, trace_control(TraceMode::eonce_raw));
                d.step();
                EonceItem i = item(kind, 0x1000, 0x2000, user(5));
                i.count = 0x7fffff00;
                i.ext = 0x11;
                d.step({i});
                d.close();
                std::string expected = "FFF0A20B";  // the context, first of all
                if (wanted)
                    expected += " " + words + (counters > 0 ? " FFFFFE00" : "") + (counters > 1 ? " 00000022" : "");
                EXPECT_TRUE(d.words().starts_with(expected + " FFF0AA01"))
                    << static_cast<int>(kind) << ": " << d.words();
            }
        }
    // Event detection: each channel has a wire of its own.
    for (unsigned channel = 0; channel < 6; ++channel) {
        Driver d;
        for (const std::uint32_t offset : {0x30U, 0x38U, 0x40U}) d.write(offset, 0x7fffffff);
        d.write(DpTac::offset, counts_at_once | (channel < 3 ? 16U : 17U) << 4 | counts_for_trace | counts_as_group);
        d.step();
        d.step({edca(channel, user(5))});
        d.step();
        for (unsigned i = 0; i < 3; ++i)
            EXPECT_EQ(0x7fffffffU - d.model.values()[i], channel % 3 == i ? 1U : 0U) << channel;
    }
}

}  // namespace
}  // namespace waymark::dpu
