/// The unit by hand: each rule of docs/spec/dpu.md, sections 3 to 5 and 11, by a case that shows it.
#include "waymark/dpu/model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dpu/support.h"
#include "dpu/unit_driver.h"
#include "waymark/dpu/nexus.h"

namespace waymark::dpu {
namespace {

using test::Driver;
using test::edca;
using test::item;
using test::supervisor;
using test::trace_control;
using test::user;

constexpr std::uint32_t immediate = 15U << 16, trace_mode = 2, grouped = 1;
constexpr std::uint32_t set(unsigned ceg) { return ceg << 4; }

std::uint64_t counted(const Driver& d, unsigned i) { return (0x7fffffffU - d.model.values()[i]) & 0x7fffffffU; }
void full_values(Driver& d) {
    for (const std::uint32_t offset : {0x30U, 0x38U, 0x40U, 0x58U, 0x60U, 0x68U}) d.write(offset, 0x7fffffff);
}

// ---- registers

TEST(DpuModel, ReadsShowPlainFieldsAtOnceAndGapsAsZero) {
    Driver d;
    d.write(DpRpid::offset, 0x1ff);
    EXPECT_EQ(d.read(DpRpid::offset), 0xffU);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    EXPECT_FALSE(d.get<DpTc>().en);
    EXPECT_EQ(d.get<DpTc>().mode(), TraceMode::flow);
    d.step();
    EXPECT_TRUE(d.get<DpTc>().en);
    for (const std::uint32_t gap : {0x14U, 0x28U, 0x44U, 0x6cU, 0x94U, 0x2fcU}) {
        d.write(gap, 0xffffffff);
        d.step();
        EXPECT_EQ(d.read(gap), 0U);
    }
    d.model.reset();
    EXPECT_EQ(d.read(DpRpid::offset), 0U);
}

TEST(DpuModel, DisabledOnceTheUnitIsDeadUntilReset) {
    Driver d;
    d.in.dpue = false;
    d.step();
    EXPECT_EQ(d.errors.size(), 3U);  // the driver's own writes
    EXPECT_EQ(d.read(DpTsa::offset), 0U);
    d.in.dpue = true;
    d.write(DpRpid::offset, 7);
    d.step();
    EXPECT_EQ(d.read(DpRpid::offset), 7U);
    d.in.dpue = false;
    d.step();
    d.in.dpue = true;
    d.errors.clear();
    d.write(DpRpid::offset, 9);
    d.step();
    EXPECT_EQ(d.read(DpRpid::offset), 0U);
    ASSERT_EQ(d.errors.size(), 1U);
    EXPECT_NE(d.errors[0].message.find("platform reset"), std::string::npos);
    d.model.reset();
    d.write(DpRpid::offset, 9);
    d.step();
    EXPECT_EQ(d.read(DpRpid::offset), 9U);
}

TEST(DpuModel, ModesAreLockedWhileTracing) {
    Driver d(Driver::traced(TraceMode::flow));
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    d.write(DpTc::offset, trace_control(TraceMode::task, test::tc_single | test::tc_tids | 1U << 24 | 3U << 16));
    d.step();
    EXPECT_EQ(d.get<DpTc>().mode(), TraceMode::flow);
    EXPECT_EQ(d.get<DpTc>().vtb_mode(), VtbMode::overwrite);
    EXPECT_FALSE(d.get<DpTc>().tids);
    EXPECT_EQ(d.get<DpTc>().nexus_mode(), NexusMode::off);
    EXPECT_EQ(d.get<DpTc>().burst_lines(), 8U);
    ASSERT_EQ(d.errors.size(), 1U);
    d.write(DpTc::offset, 0);
    d.settle();
    EXPECT_EQ(d.errors.size(), 1U);
    EXPECT_FALSE(d.get<DpTc>().en);
}

// ---- counters

// Requirements: R36 R87 R88
TEST(DpuModel, EventsEnableAndDisableInTheContextThatQualifies) {
    // Enabled by EDCA2 in supervisor state of task 5, disabled by MARK in any state of task 5.
    Driver d;
    full_values(d);
    d.write({{DpCr::offset, 1U << 28}, {DpRpid::offset, 5}});
    d.write(DpCa0c::offset, 3U << 28 | 8U << 24 | 2U << 20 | 3U << 16 | set(1) | trace_mode);
    d.in.ctx = user(5);
    d.step();
    d.step({edca(2, user(5))});
    EXPECT_FALSE(d.get<DpSr>().enca0);
    d.in.ctx = supervisor(6);
    d.step({edca(2, supervisor(6))});
    EXPECT_FALSE(d.get<DpSr>().enca0);
    d.in.ctx = supervisor(5);
    d.step({edca(1, supervisor(5))});
    EXPECT_FALSE(d.get<DpSr>().enca0);
    d.step({edca(2, supervisor(5))});
    EXPECT_TRUE(d.get<DpSr>().enca0);
    EXPECT_EQ(counted(d, 0), 0U);  // not counted in the cycle that enabled the counter
    d.step();
    EXPECT_EQ(counted(d, 0), 1U);
    d.in.ctx = user(6);
    d.step({item(ItemKind::mark, 0x1000, 0, user(6))});
    EXPECT_TRUE(d.get<DpSr>().enca0);
    d.in.ctx = user(5);
    d.step({item(ItemKind::mark, 0x1000, 0, user(5)), edca(2, user(5))});
    EXPECT_FALSE(d.get<DpSr>().enca0);
    EXPECT_EQ(counted(d, 0), 2U);  // nor in the cycle that disabled it
}

// Requirements: R36 R90 R97
TEST(DpuModel, ATriadIsGroupedTheOtherIsNot) {
    Driver d;
    full_values(d);
    d.write(DpTac::offset, immediate | set(1) | trace_mode | grouped);
    d.write(DpCa1c::offset, set(7));  // kept, ignored
    d.write(DpCb1c::offset, immediate | set(7) | trace_mode);
    d.step();
    EXPECT_EQ(d.read(DpSr::offset), 0b010111U);
    d.in.set(EventWire::vles, 1);
    d.in.set(EventWire::dc_miss, 3);
    d.step();
    EXPECT_EQ(counted(d, 0), 1U);
    EXPECT_EQ(counted(d, 1), 1U);
    EXPECT_EQ(counted(d, 4), 3U);
    // Under another rule all three stop first.
    d.write(DpTac::offset, set(1) | trace_mode);
    d.step();
    EXPECT_EQ(d.read(DpSr::offset), 0b010000U);
    EXPECT_EQ(counted(d, 0), 1U);
    d.write(DpTac::offset, immediate | set(1) | grouped);
    d.step();
    EXPECT_EQ(d.read(DpSr::offset), 0b010111U);
    EXPECT_EQ(d.read(DpCa1c::offset), set(7));
}

TEST(DpuModel, ZeroMeansTwoToTheThirtyFirst) {
    Driver d;
    d.write({{DpCa0v::offset, 0}, {DpCa0c::offset, immediate | set(7)}});
    d.step();
    d.in.set(EventWire::dc_hit, 0x7fffffff);
    d.step();
    EXPECT_EQ(d.read(DpCa0v::offset), 1U);
    EXPECT_FALSE(d.get<DpMr>().drca0);
    d.in.set(EventWire::dc_hit, 1);
    d.step();
    EXPECT_TRUE(d.get<DpMr>().drca0);
    EXPECT_FALSE(d.get<DpSr>().enca0);
}

// Requirements: R89 R97
TEST(DpuModel, OneTask) {
    Driver d;
    full_values(d);
    d.write(
        {{DpCr::offset, 1U << 28}, {DpRpid::offset, 7}, {DpTac::offset, immediate | set(12) | trace_mode | grouped}});
    d.write(DpTbc::offset, immediate | 3U << 12 | set(1) | trace_mode | grouped);  // cycles of the task alone
    d.in.ctx = user(5);
    d.step(3);
    d.in.ctx = user(7);
    d.step(4);
    d.in.ctx = supervisor(5);
    d.step(5);
    d.in.ctx = supervisor(7);
    d.step(6);
    EXPECT_EQ(counted(d, 0), 10U);  // TASK_ACTIVE
    EXPECT_EQ(counted(d, 1), 15U);  // TASK_TOTAL
    EXPECT_EQ(counted(d, 2), 2U);   // TASK_IN
    EXPECT_EQ(counted(d, 3), 10U);
}

TEST(DpuModel, DebugStateStopsTheClock) {
    Driver d;
    full_values(d);
    d.write(DpTac::offset, immediate | set(1) | trace_mode | grouped);
    d.step();
    d.step(2);
    d.in.in_debug = true;
    d.step(5);
    EXPECT_EQ(counted(d, 0), 2U);
}

TEST(DpuModel, CostOfTracingIsCountedInTheNextCycle) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.high = config.choices.low = ModelChoices::Grant::never;
    Driver d(config);
    full_values(d);
    d.write(
        {{DpTac::offset, immediate | set(15) | trace_mode | grouped}, {DpTc::offset, trace_control(TraceMode::flow)}});
    d.step();
    std::vector<EonceItem> calls(9, item(ItemKind::call, 0x1000, 0x2000, user(5)));
    d.step(calls);  // eight entries fit: the buffer is full, one is lost
    EXPECT_EQ(counted(d, 1), 0U);
    d.step();
    EXPECT_EQ(counted(d, 1), 1U);
    EXPECT_EQ(counted(d, 2), 1U);
    d.step();
    EXPECT_EQ(counted(d, 1), 2U);
    EXPECT_EQ(counted(d, 2), 1U);
}

// ---- shadow registers

// Requirements: R11 R32 R33 R34
TEST(DpuModel, EachShadowRegisterLoadsAlone) {
    Driver d;
    for (unsigned i = 0; i < 3; ++i) d.write(0x30 + 8 * i, 100);
    d.write(DpTac::offset, immediate | set(7) | trace_mode | grouped);
    d.step();
    d.in.set(EventWire::dc_hit, 1);
    d.in.set(EventWire::dc_miss, 2);
    d.step();
    d.model.capture(0b000010);
    EXPECT_EQ(d.model.shadow(), (Counters{0, 98, 0, 0, 0, 0}));
    d.step();
    EXPECT_EQ(d.model.shadow()[1], 98U);
    EXPECT_EQ(d.model.values()[1], 96U);
    d.model.capture(0b111111);
    EXPECT_EQ(d.model.shadow(), d.model.values());
}

// Requirements: R26 R32
TEST(DpuModel, ABusyShadowSetLosesTheNextTrigger) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.drain_words_per_cycle = 3;  // three cycles for nine words
    Driver d(config);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    const auto call = [&] { d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))}); };
    call();
    call();
    call();
    EXPECT_EQ(d.model.counts().lost, 2U);
    call();
    EXPECT_EQ(d.model.counts().lost, 2U);
    d.close();
    EXPECT_EQ(Driver::hex(std::span(d.written).subspan(9, 3)), "FFF0AE01 00000004 00001001");
}

// ---- bus

// Requirements: R8 R9 R13 R40 R93
TEST(DpuModel, LowRequestsWaitForOthersHighOnesDoNot) {
    Driver d(Driver::traced(TraceMode::flow), 16);
    d.write({{DpTc::offset, trace_control(TraceMode::flow, 2U << 19 | 1U << 16)}});  // bursts of two
    d.step();
    d.in.bus_others = true;
    for (unsigned i = 0; i < 7; ++i) d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    EXPECT_TRUE(d.bursts.empty());  // 63 words: low priority
    d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    ASSERT_EQ(d.bursts.size(), 1U);  // eight lines: high priority
    EXPECT_EQ(d.bursts[0].address, Driver::base);
    EXPECT_EQ(d.bursts[0].lines, 2U);
    EXPECT_EQ(d.bursts[0].global, 2U);
    EXPECT_TRUE(d.bursts[0].prov);
    d.step(3);
    EXPECT_EQ(d.bursts.size(), 1U);
    d.in.bus_others = false;
    d.step();
    EXPECT_EQ(d.bursts.size(), 2U);  // a burst of two lines held the bus for two cycles, long over
    d.step();
    EXPECT_EQ(d.bursts.size(), 2U);
    d.step();
    EXPECT_EQ(d.bursts.size(), 3U);
}

// Requirements: R42
TEST(DpuModel, SingleAddress) {
    Driver d(Driver::traced(TraceMode::user));
    d.write({{DpTw::offset, 0x20000040}, {DpTc::offset, trace_control(TraceMode::user, test::tc_single | 1U << 16)}});
    d.step();
    for (std::uint32_t i = 0; i < 8; ++i) d.write(DpTd::offset, i);
    d.step();
    d.close();
    ASSERT_EQ(d.bursts.size(), 2U);
    for (const Burst& burst : d.bursts) {
        EXPECT_EQ(burst.address, 0x20000040U);
        EXPECT_EQ(burst.lines, 2U);
    }
    EXPECT_EQ(d.read(DpTw::offset), 0x20000040U);
    EXPECT_FALSE(d.get<DpMr>().twrap);
}

TEST(DpuModel, BurstsEndAtTheBuffersEndAndAtTheRequestLine) {
    Driver d(Driver::traced(TraceMode::user), 4);
    d.write({{DpTw::offset, 0x20000020},
             {DpTer::offset, 0x2000005f},
             {DpTc::offset, trace_control(TraceMode::user, test::tc_request | 3U << 16)}});
    d.step();
    for (std::uint32_t i = 0; i < 16; ++i) d.write(DpTd::offset, i);  // eight lines
    d.step();
    d.step(5);
    std::string all;
    for (const Burst& burst : d.bursts)
        all += std::to_string(burst.address & 0xff) + ":" + std::to_string(burst.lines) + " ";
    EXPECT_EQ(all, "32:2 ");  // full once; then no request until the flush
    EXPECT_TRUE(d.get<DpMr>().drtb);
    d.close();
    all.clear();
    for (const Burst& burst : d.bursts)
        all += std::to_string(burst.address & 0xff) + ":" + std::to_string(burst.lines) + " ";
    EXPECT_EQ(all, "32:2 96:1 0:3 96:1 0:1 ");
}

// Requirements: R43 R44 R83
TEST(DpuModel, ReadoutByRequests) {
    Driver d(Driver::traced(TraceMode::user), 4);
    d.write({{DpCr::offset, 2U << 12},
             {DpTer::offset, 0x20000020},
             {DpTc::offset, trace_control(TraceMode::user, test::tc_request)}});
    d.step();
    const auto two_lines = [&] {
        for (std::uint32_t i = 0; i < 4; ++i) d.write(DpTd::offset, i);
        d.step(4);
    };
    two_lines();
    EXPECT_TRUE(d.step().pic[1]);
    d.write({{DpMr::offset, 1U << 6}, {DpTer::offset, 0x20000060}});
    EXPECT_FALSE(d.step().pic[1]);
    two_lines();
    EXPECT_TRUE(d.step().pic[1]);
    EXPECT_TRUE(d.get<DpMr>().twrap);
    // A lap without service: no second request.
    d.write({{DpCr::offset, 3U << 12}});
    bool asked = false;
    for (unsigned i = 0; i < 8; ++i) {
        d.write(DpTd::offset, i);
        asked |= d.step().debug_request;
    }
    EXPECT_FALSE(asked);
}

TEST(DpuModel, TheCoreMayWaitInstead) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.full = ModelChoices::Full::stall;
    Driver d(config, 64);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    d.step(std::vector<EonceItem>(20, item(ItemKind::call, 0x1000, 0x2000, user(5))));
    EXPECT_EQ(d.model.counts().lost, 0U);
    EXPECT_GT(d.model.counts().stalled_cycles, 0U);
    d.close();
    EXPECT_EQ(d.model.counts().entries, 20U);
}

// ---- interrupts

// Requirements: R15 R82 R108
TEST(DpuModel, WatchpointsAndTheEonceInterrupt) {
    for (unsigned channel = 0; channel < 6; ++channel)
        for (unsigned code = 0; code < 4; ++code) {
            Driver d;
            d.write(DpCr::offset, code << (16 + 2 * channel));
            d.step();
            const CycleOutput& out = d.step({edca(channel, user(5))});
            EXPECT_EQ(out.pic[0], (code & 1) != 0) << channel;
            EXPECT_EQ(out.pic[1], (code & 2) != 0) << channel;
            EXPECT_FALSE(d.step({edca((channel + 1) % 6, user(5))}).pic[0]);
            EXPECT_FALSE(d.step().pic[1]);
        }
    Driver d;
    d.write(DpCr::offset, 3U << 14);
    d.in.eonce_irq = true;
    EXPECT_TRUE(d.step().pic[0]);
    d.in.eonce_irq = false;
    EXPECT_FALSE(d.step().pic[1]);
}

// Requirements: R30 R83 R85 R108
TEST(DpuModel, CounterEvents) {
    constexpr std::uint32_t values[] = {0x30, 0x38, 0x40, 0x58, 0x60, 0x68};
    for (unsigned i = 0; i < counter_count; ++i)
        for (unsigned code = 0; code < 4; ++code) {
            Driver d;
            d.write({{DpCr::offset, code << 2 * i}, {values[i], 2}, {values[i] - 4, immediate | set(7)}});
            d.step();
            for (const EventWire wire : {EventWire::dc_hit, EventWire::dc_miss, EventWire::dc_thrash})
                d.in.set(wire, 2);
            const CycleOutput& out = d.step();
            EXPECT_EQ(out.pic[0], code == 1);
            EXPECT_EQ(out.pic[1], code == 2);
            EXPECT_EQ(out.debug_request, code == 3);
            EXPECT_EQ(d.read(DpMr::offset), 1U << i);
            const CycleOutput& next = d.step();
            EXPECT_EQ(next.pic[0], code == 1);  // until software clears the cause
            EXPECT_FALSE(next.debug_request);
            d.write(DpMr::offset, 1U << i);
            EXPECT_FALSE(d.step().pic[0]);
            EXPECT_EQ(d.read(DpMr::offset), 0U);
        }
}

// Requirements: R85
TEST(DpuModel, DebugRequestsFromOutside) {
    Driver d;
    d.in.debug_ext = true;
    EXPECT_TRUE(d.step().debug_request);
    EXPECT_TRUE(d.get<DpMr>().dra);
    d.in.debug_ext = false;
    d.in.debug_nexus = true;
    EXPECT_TRUE(d.step().debug_request);
    EXPECT_TRUE(d.get<DpMr>().drn);
    d.in.debug_nexus = false;
    EXPECT_FALSE(d.step().debug_request);
}

// ---- flush, hold, close

// Requirements: R61 R84 R93
TEST(DpuModel, FlushHoldAndResume) {
    Driver d(Driver::traced(TraceMode::flow));
    full_values(d);
    d.write(
        {{DpTac::offset, immediate | set(1) | trace_mode | grouped}, {DpTc::offset, trace_control(TraceMode::flow)}});
    d.step();
    const auto call = [&] { d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))}); };
    call();
    d.in.bus_others = true;
    d.write(DpTc::offset, trace_control(TraceMode::flow, test::tc_tmpdis));
    call();  // ignored, not lost
    EXPECT_TRUE(d.get<DpSr>().twba);
    EXPECT_FALSE(d.model.idle());
    d.in.bus_others = false;
    d.settle();
    EXPECT_TRUE(d.model.idle());
    EXPECT_EQ(Driver::hex(std::span(d.written).subspan(9)),
              "FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001");
    const std::uint64_t before = counted(d, 0);
    call();
    EXPECT_EQ(counted(d, 0), before + 1);
    EXPECT_EQ(d.model.counts().entries, 1U);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    call();
    EXPECT_EQ(d.model.counts().entries, 2U);
    EXPECT_EQ(d.model.counts().lost, 0U);
}

TEST(DpuModel, CloseThenEnableAgain) {
    Driver d(Driver::traced(TraceMode::flow), 16);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    d.in.bus_others = true;
    d.write(DpTc::offset, 0);
    d.step();
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    ASSERT_EQ(d.errors.size(), 1U);
    EXPECT_FALSE(d.get<DpTc>().en);
    d.in.bus_others = false;
    d.settle();
    EXPECT_EQ(d.written.back(), 0xfff0aa01U);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    EXPECT_TRUE(d.get<DpTc>().en);
    ASSERT_EQ(d.model.periods().size(), 2U);
    EXPECT_EQ(d.model.periods()[1].tw, Driver::base + 64);
}

// ---- switches

// Requirements: R46 R47 R55 R94
TEST(DpuModel, SwitchesGiveWhatTheModeSelects) {
    // Everything happens in every mode; entries by name.
    const auto traced = [](TraceMode mode, std::uint32_t more) {
        ModelConfig config = Driver::traced(mode);
        config.eonce = {true, true, false, false, true, true, true, false, false};
        Driver d(config, 64);
        d.write(DpTc::offset, trace_control(mode, more));
        d.in.ctx = user(7);
        d.step();
        d.step({item(ItemKind::call, 0x1000, 0x2000, user(7))});
        d.step({item(ItemKind::interrupt, 0x2010, 0x200, supervisor(7))});
        d.step({edca(5, supervisor(7))});
        d.write(DpTd::offset, 0x12345679);
        d.write(DpTc::offset, trace_control(mode, more | test::tc_sample));
        d.step();
        d.write(DpTc::offset, trace_control(mode, more | test::tc_tmpdis));
        d.settle();
        std::string names;
        const auto parsed = test::parse(test::memory(d.written), config.format(from_value<DpTc>(trace_control(mode))));
        for (const test::Item& i : parsed.items)
            if (!i.text.starts_with("PAD")) names += i.text.substr(0, i.text.find(' ')) + " ";
        return names;
    };
    EXPECT_EQ(traced(TraceMode::eonce_raw, 0), "CONTEXT RAW-PAIR RAW-PAIR CONTEXT SAMPLE ");
    EXPECT_EQ(traced(TraceMode::eonce_comp, test::tc_uden),
              "CONTEXT COMPRESSED-FLOW COMPRESSED-FLOW SAMPLE USER-DATA ");
    EXPECT_EQ(traced(TraceMode::task, 0), "TASK-SWITCH SAMPLE ");
    EXPECT_EQ(traced(TraceMode::flow, test::tc_ctxen), "CONTEXT FLOW FLOW SAMPLE ");
    EXPECT_EQ(traced(TraceMode::sw_sample, 0), "SAMPLE ");
    EXPECT_EQ(traced(TraceMode::edca5, 0), "SAMPLE SAMPLE ");
    EXPECT_EQ(traced(TraceMode::user, 0), "SAMPLE USER-DATA ");
    EXPECT_EQ(traced(TraceMode::user_raw, test::tc_ctxen), "USER-RAW ");
}

// A hold is always marked by a line of pads, even if the trace before it fills its line, or if there is no trace before
// it.
// Requirements: R61 R93
TEST(DpuModel, AHoldIsAlwaysMarked) {
    const std::string pads = "FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001";
    for (const unsigned samples : {0U, 1U, 9U}) {
        Driver d({}, 64);
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample));
        d.step();
        for (unsigned i = 0; i < samples; ++i) {
            d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_sample));
            d.step();
        }
        d.in.bus_others = samples == 9;  // no room for the mark at first
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_tmpdis));
        d.step(3);
        d.in.bus_others = false;
        d.settle();
        EXPECT_TRUE(d.model.idle());
        ASSERT_EQ(d.written.size(), 8 * (samples + 1)) << samples;
        EXPECT_EQ(Driver::hex(std::span(d.written).last(8)), pads);
        // Held without entries to write: no second mark. Lifted and held again: one more mark.
        d.step(20);
        EXPECT_EQ(d.written.size(), 8 * (samples + 1));
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample));
        d.step();
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_tmpdis));
        d.settle();
        EXPECT_EQ(d.written.size(), 8 * (samples + 2));
    }
}

// Losses before a hold are reported first; then comes the mark.
// Requirements: R61 R93
TEST(DpuModel, AGapEntryIsBeforeTheMarkOfAHold) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.high = config.choices.low = ModelChoices::Grant::never;
    Driver d(config, 64);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    for (unsigned i = 0; i < 10; ++i) d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    EXPECT_EQ(d.model.counts().lost, 2U);
    d.write(DpTc::offset, trace_control(TraceMode::flow, test::tc_tmpdis));
    d.step(5);
    EXPECT_FALSE(d.model.idle()) << "gap entry and mark wait for room";
    d.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
    d.settle();
    EXPECT_TRUE(d.model.idle());
    EXPECT_EQ(Driver::hex(std::span(d.written).subspan(72)),
              "FFF0AE01 00000004 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001 FFF0A001");
}

// Conditions on which figures of counters depend: whether they counted all the time, and whether software wrote to
// them.
TEST(DpuModel, HistoryOfCounters) {
    Driver d;
    d.write({{DpTac::offset, immediate | set(1) | trace_mode | grouped},
             {DpTbc::offset, set(7) | trace_mode | grouped},
             {DpCa0v::offset, 100},
             {DpTc::offset, trace_control(TraceMode::sw_sample)}});
    d.step(3);
    EXPECT_EQ(d.model.counter_history(), (CounterHistory{0x38, 0, 0})) << "triad B was never enabled";
    d.write(DpTac::offset, set(2) | trace_mode | grouped | 0xfU << 24);
    d.step();
    EXPECT_EQ(d.model.counter_history(), (CounterHistory{0x3f, 0x02, 0})) << "A1 counts something else now";
    d.write(DpCb1v::offset, 5);
    d.step();
    EXPECT_EQ(d.model.counter_history(), (CounterHistory{0x3f, 0x02, 0x10}));
    d.write(DpTc::offset, 0);
    d.step();
    d.write(DpTbc::offset, immediate | set(1) | trace_mode | grouped);
    d.step();
    EXPECT_EQ(d.model.counter_history().changed, 0x3a)
        << "the registers no longer say what triad B counted in the trace";
    Driver once;
    once.write({{DpTac::offset, immediate | set(1) | grouped},
                {DpCa0v::offset, 3},
                {DpCa1v::offset, 9},
                {DpCa2v::offset, 9},
                {DpTbc::offset, immediate | set(7) | trace_mode | grouped},
                {DpTc::offset, trace_control(TraceMode::sw_sample)}});
    once.step(3);
    EXPECT_EQ(once.model.counter_history().partial, 0);
    once.step(2);
    EXPECT_EQ(once.model.counter_history().partial, 1) << "it came to zero and stopped";
}

// The filter, and the value to which it compares IDs, with the place in the trace from which they apply.
// Requirements: R80 R81
TEST(DpuModel, HistoryOfTheFilter) {
    Driver d(Driver::traced(TraceMode::flow), 64);
    d.write({{DpCr::offset, 1U << 28},
             {DpRpid::offset, 7},
             {DpTc::offset, trace_control(TraceMode::flow, test::tc_idflt)}});
    d.in.ctx = user(7);
    d.step();
    d.step({item(ItemKind::call, 0x1000, 0x2000, user(7))});
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step({item(ItemKind::call, 0x1000, 0x2000, user(7))});
    d.write(DpRdid::offset, 3);
    d.step();
    const std::vector<FilterChange> expected{
        {0, true, false, 1, 7, 0}, {9, false, false, 1, 7, 0}, {18, false, false, 1, 7, 3}};
    EXPECT_EQ(d.model.filters(), expected);
}

// Nothing goes to the buffer, so words have no places.
TEST(DpuModel, FilterChangesHaveAPlaceAmongMessages) {
    Driver d(Driver::traced(TraceMode::flow), 64);
    const std::uint32_t nexus_only = 3U << 24;
    d.write({{DpCr::offset, 1U << 28},
             {DpRpid::offset, 7},
             {DpTc::offset, trace_control(TraceMode::flow, test::tc_idflt | nexus_only)}});
    d.in.ctx = user(7);
    std::uint64_t bytes = d.step().nexus.size();
    bytes += d.step({item(ItemKind::call, 0x1000, 0x2000, user(7))}).nexus.size();
    const std::uint64_t first = bytes;
    d.write(DpTc::offset, trace_control(TraceMode::flow, nexus_only));
    bytes += d.step({item(ItemKind::call, 0x1000, 0x2000, user(7))}).nexus.size();
    d.write(DpRdid::offset, 3);
    bytes += d.step().nexus.size();
    EXPECT_GT(first, 0U);
    EXPECT_GT(bytes, first);
    constexpr std::uint64_t enabled = 4;  // the message that tracing begins in this context
    const std::vector<FilterChange> expected{
        {0, true, false, 1, 7, 0, enabled}, {0, false, false, 1, 7, 0, first}, {0, false, false, 1, 7, 3, bytes}};
    EXPECT_EQ(d.model.filters(), expected);
}

// Requirements: R80 R81
TEST(DpuModel, AFilterKeepsWhatTouchesTheTask) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    Driver d(config, 64);
    d.write({{DpCr::offset, 1U << 28},
             {DpRpid::offset, 7},
             {DpTc::offset, trace_control(TraceMode::flow, test::tc_idflt)}});
    d.in.ctx = user(5);
    d.step();
    d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});            // not its
    d.step({item(ItemKind::rte, 0x200, 0x3000, user(7))});              // into it
    d.step({item(ItemKind::call, 0x3000, 0x4000, user(7))});            // inside
    d.step({item(ItemKind::interrupt, 0x4000, 0x200, supervisor(5))});  // out of it
    d.step({item(ItemKind::call, 0x200, 0x300, supervisor(5))});        // not its
    d.close();
    EXPECT_EQ(d.model.counts().entries, 3U);
    EXPECT_EQ(d.model.counts().lost, 0U);
}

TEST(DpuModel, ProgramCountersInTheUnitsPageAreRefused) {
    Driver d(Driver::traced(TraceMode::flow));
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.step();
    d.step({item(ItemKind::call, 0xfff0a200, 0x2000, user(5))});
    ASSERT_EQ(d.errors.size(), 1U);
    EXPECT_EQ(d.model.counts().lost, 1U);
    d.close();
    EXPECT_EQ(d.words().substr(0, 17), "FFF0AE01 00000002");
}

// ---- Nexus

struct Messages {
    std::vector<std::string> texts;
    void operator()(const nexus::Message& m, nexus::Extent) { texts.push_back(nexus::to_text(m)); }
    void operator()(const Gap& gap) { texts.push_back("gap " + std::string(name(gap.reason))); }
};
std::vector<std::string> messages(const std::vector<std::uint8_t>& bytes) {
    Messages out;
    nexus::Parser<Messages> parser(out);
    parser.feed(bytes);
    parser.finish();
    return out.texts;
}
std::string hex_bytes(const std::vector<std::uint8_t>& bytes) {
    constexpr char digits[] = "0123456789ABCDEF";
    std::string out;
    for (const std::uint8_t b : bytes) {
        if (!out.empty()) out += ' ';
        out += digits[b >> 4];
        out += digits[b & 15];
    }
    return out;
}

// After an Error the next counters are absolute, because lost differences would otherwise be missing for ever. Losses
// just before tracing is disabled are reported: Error and correlation wait for room.
TEST(DpuModel, NexusReportsALossAtTheEnd) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.nexus_queue_bytes = 60;
    config.choices.nexus_bytes_per_cycle = 1;
    Driver d(config, 64);
    full_values(d);
    d.write({{DpTac::offset, immediate | set(1) | trace_mode | grouped},
             {DpTc::offset, trace_control(TraceMode::flow, 3U << 24)}});
    std::vector<std::uint8_t> out;
    const auto step = [&](std::vector<EonceItem> items = {}) {
        const auto& bytes = d.step(std::move(items)).nexus;
        out.insert(out.end(), bytes.begin(), bytes.end());
    };
    step();
    for (unsigned i = 0; i < 6; ++i) step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    EXPECT_GT(d.model.counts().nexus_lost, 1U);
    d.write(DpTc::offset, d.read(DpTc::offset) & ~1U);
    for (unsigned i = 0; i < 500 && !d.model.idle(); ++i) step();
    EXPECT_TRUE(d.model.idle());
    for (unsigned i = 0; i < 100; ++i) step();
    const auto texts = messages(out);
    ASSERT_GT(texts.size(), 3U);
    EXPECT_TRUE(texts[texts.size() - 2].starts_with("ERROR SRC=0 ETYPE=0 ECODE=0x2c")) << texts[texts.size() - 2];
    EXPECT_TRUE(texts.back().starts_with("CORRELATION SRC=0 EVCODE=4")) << texts.back();

    // There is room again before the end: the counters after the Error are absolute.
    Driver again(config, 64);
    full_values(again);
    again.write({{DpTac::offset, immediate | set(1) | trace_mode | grouped},
                 {DpTc::offset, trace_control(TraceMode::flow, 3U << 24)}});
    out.clear();
    const auto step_again = [&](std::vector<EonceItem> items = {}) {
        const auto& bytes = again.step(std::move(items)).nexus;
        out.insert(out.end(), bytes.begin(), bytes.end());
    };
    step_again();
    for (unsigned i = 0; i < 6; ++i) step_again({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    for (unsigned i = 0; i < 100; ++i) step_again();
    step_again({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    const std::uint32_t value = again.model.values()[0];
    for (unsigned i = 0; i < 100; ++i) step_again();
    const auto after = messages(out);
    const auto error = std::find_if(after.begin(), after.end(), [](const auto& t) { return t.starts_with("ERROR"); });
    ASSERT_NE(error, after.end());
    ASSERT_GE(after.end() - error, 3);
    EXPECT_TRUE(error[1].starts_with("DATA-ACQUISITION SRC=0 IDTAG=0x11 DQDATA=")) << error[1];
    std::string hex;
    wire::append_number(hex, value);
    EXPECT_NE(error[1].find("=" + hex + ","), std::string::npos) << error[1] << " " << hex;
}

// Requirements: R5 R13 R38 R48 R109
TEST(DpuModel, NexusGetsTheSameOrSomethingElse) {
    const auto run = [](std::uint32_t nexus_mode, std::uint64_t& words) {
        ModelConfig config;
        config.eonce = {true, true, false, false, true, true, true, false, false};
        Driver d(config, 16);
        full_values(d);
        d.write({{DpTac::offset, immediate | set(1) | trace_mode | grouped},
                 {DpTc::offset, trace_control(TraceMode::task, nexus_mode << 24)}});
        d.in.ctx = user(5);
        std::vector<std::uint8_t> bytes;
        const auto keep = [&](const CycleOutput& out) {
            bytes.insert(bytes.end(), out.nexus.begin(), out.nexus.end());
        };
        keep(d.step());
        for (unsigned i = 0; i < 9; ++i) keep(d.step());
        keep(d.step({item(ItemKind::interrupt, 0x00401010, 0x00000200, supervisor(5))}));
        keep(d.step({edca(3, supervisor(5))}));
        keep(d.step({item(ItemKind::call, 0x00000220, 0x00000300, supervisor(5))}));
        d.write(DpTc::offset, 0);
        for (unsigned i = 0; i < 5; ++i) keep(d.step());
        words = d.model.counts().words;
        return bytes;
    };
    std::uint64_t words = 0;
    EXPECT_TRUE(run(0, words).empty());
    EXPECT_EQ(words, 16U);
    const auto mirrored = run(1, words);
    EXPECT_EQ(words, 16U);
    EXPECT_EQ(hex_bytes(mirrored),
              "08 80 08 2B "                 // owner: user 5
              "1C 00 10 29 01 01 01 01 03 "  // ten cycles
              "24 40 05 20 80 00 23 "        // sync at the source
              "10 40 01 20 90 00 23 "        // the branch
              "08 C0 08 2B "                 // owner: supervisor 5
              "3C 00 0B "                    // EDCA3
              "84 00 07");                   // off
    EXPECT_EQ(run(3, words), mirrored);
    EXPECT_EQ(words, 0U);
    const auto raw = messages(run(2, words));
    EXPECT_EQ(words, 16U);
    EXPECT_EQ(
        std::count_if(raw.begin(), raw.end(), [](const std::string& m) { return m.starts_with("INDIRECT-BRANCH "); }),
        2);
    EXPECT_EQ(std::count_if(raw.begin(), raw.end(), [](const std::string& m) { return m.starts_with("DATA"); }), 0);
}

// After a hold the owner is sent again, even if nothing goes to the buffer, so that no pad marks the hold (5.10, 11.3).
TEST(DpuModel, TheOwnerIsSentAfterAHold) {
    for (const std::uint32_t nexus_mode : {1U, 3U}) {
        Driver d(Driver::traced(TraceMode::eonce_raw), 16);
        const std::uint32_t tc = trace_control(TraceMode::eonce_raw, nexus_mode << 24);
        d.write(DpTc::offset, tc);
        std::vector<std::uint8_t> bytes;
        const auto steps = [&](unsigned times) {
            for (unsigned i = 0; i < times; ++i) {
                const auto& nexus = d.step().nexus;
                bytes.insert(bytes.end(), nexus.begin(), nexus.end());
            }
        };
        steps(3);
        d.write(DpTc::offset, tc | tc_tmpdis);
        steps(20);
        d.write(DpTc::offset, tc);
        steps(20);
        const auto texts = messages(bytes);
        ASSERT_EQ(texts.size(), 3U) << nexus_mode;
        EXPECT_TRUE(texts[1].starts_with("CORRELATION SRC=0 EVCODE=4")) << texts[1];
        EXPECT_EQ(texts[2], texts[0]);
        EXPECT_TRUE(texts[2].starts_with("OWNERSHIP")) << texts[2];
    }
}

// Requirements: R5 R48
TEST(DpuModel, ASlowNexusPortLosesNothingOfTheBuffer) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.nexus_queue_bytes = 80;
    config.choices.nexus_bytes_per_cycle = 1;
    Driver d(config, 64);
    d.write(DpTc::offset, trace_control(TraceMode::flow, 1U << 24));
    std::vector<std::uint8_t> bytes;
    const auto keep = [&](const CycleOutput& out) { bytes.insert(bytes.end(), out.nexus.begin(), out.nexus.end()); };
    keep(d.step());
    for (unsigned i = 0; i < 20; ++i) keep(d.step({item(ItemKind::call, 0x1000 + 2 * i, 0x2000, user(5))}));
    for (unsigned i = 0; i < 100; ++i) keep(d.step());
    keep(d.step({item(ItemKind::call, 0x1000, 0x2000, user(5))}));
    for (unsigned i = 0; i < 100; ++i) keep(d.step());
    EXPECT_EQ(d.model.counts().lost, 0U);
    EXPECT_EQ(d.model.counts().entries, 21U);
    EXPECT_GT(d.model.counts().nexus_lost, 10U);
    const auto texts = messages(bytes);
    EXPECT_NE(std::count_if(texts.begin(), texts.end(), [](const std::string& m) { return m.starts_with("ERROR"); }),
              0);
    EXPECT_EQ(std::count_if(texts.begin(), texts.end(), [](const std::string& m) { return m.starts_with("gap"); }), 0);
}

TEST(DpuModel, ConfigurationsThatCannotBe) {
    ModelConfig config;
    EXPECT_TRUE(config.check());
    config.dpu_base = 0xfff0a010;
    EXPECT_FALSE(config.check());
    config = {};
    config.eonce.tmark = config.eonce.tcount = true;
    EXPECT_FALSE(config.check());
    config = {};
    config.choices.bus_cycles_per_line = 0;
    EXPECT_FALSE(config.check());
    Driver d;
    d.write(DpTc::offset, trace_control(TraceMode::user));
    d.step();
    EXPECT_FALSE(d.model.set_eonce(EonceSetup::for_mode(TraceMode::flow)));
    d.close();
    d.step();
    EXPECT_TRUE(d.model.set_eonce(EonceSetup::for_mode(TraceMode::flow)));
}

}  // namespace
}  // namespace waymark::dpu
