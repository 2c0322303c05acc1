/// The worked examples of docs/spec/dpu.md, section 10, through the model.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "dpu/unit_driver.h"

namespace waymark::dpu {
namespace {

using test::Driver;
using test::edca;
using test::item;
using test::supervisor;
using test::trace_control;
using test::user;

constexpr std::uint32_t start = 0x7fffffff;

void start_values(Driver& d, std::vector<std::uint32_t> values = std::vector<std::uint32_t>(6, start)) {
    d.write({{DpCa0v::offset, values[0]},
             {DpCa1v::offset, values[1]},
             {DpCa2v::offset, values[2]},
             {DpCb0v::offset, values[3]},
             {DpCb1v::offset, values[4]},
             {DpCb2v::offset, values[5]}});
}

// Requirements: R1 R2 R3 R5 R31 R32 R34 R37 R39 R41 R64 R65 R68 R69 R70 R72 R73 R74 R75 R76 R93 R94 R95 R96 R97
// Requirements: R101 R102 R103 R107 R110 R111 R112 R113 R114 R118 R119 R120 R121 R122 R123 R124 R126 R128 R129
TEST(DpuModelExamples, TaskSwitchesASampleAndUserData) {
    Driver d(Driver::traced(TraceMode::task));
    start_values(d);
    d.write({{DpTac::offset, 0x000f0023}, {DpTbc::offset, 0x000f0073}, {DpTc::offset, 0x00200085}});
    d.in.ctx = user(5);
    d.step();
    ASSERT_TRUE(d.errors.empty()) << d.errors[0].message;

    using enum EventWire;
    d.run(999, {{stall_all, 120}, {dc_hit, 300}, {dc_miss, 12}, {dc_thrash, 1}});
    d.step({item(ItemKind::interrupt, 0x00401010, 0x00000200, supervisor(5))});
    d.run(150, {{stall_all, 50}, {dc_hit, 40}, {dc_miss, 9}});
    d.in.ctx = supervisor(7);
    d.run(49);
    d.step({item(ItemKind::rte, 0x00000280, 0x00402000, user(7))});
    d.run(4999, {{stall_all, 700}, {dc_hit, 1500}, {dc_miss, 33}, {dc_thrash, 2}});
    d.write(DpTc::offset, 0x00200085 | test::tc_sample);
    EXPECT_TRUE(d.get<DpTc>().sample);
    d.step();
    EXPECT_FALSE(d.get<DpTc>().sample);
    d.write(DpTd::offset, 0xcafe0001);
    d.step();
    d.write(DpTc::offset, 0x00200085 | test::tc_tmpdis);
    d.settle();

    EXPECT_EQ(d.memory(),
              "00401011 FFFFF82E FFFFFF0E FFFFFFFE FFFFFDA6 FFFFFFE6 FFFFFFFC 00000200 "
              "FFF0A40A 00000281 FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC "
              "00402000 FFF0A20E FFF0A20F FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92 "
              "FFFFFFF8 FFF0A000 FFF0AC0F FFF0A20E 000195FC 00000002 FFF0A001 FFF0A001");
    EXPECT_EQ(d.read(DpTw::offset), 0x20000000U);
    EXPECT_TRUE(d.get<DpMr>().twrap);
    EXPECT_FALSE(d.get<DpSr>().twba);
    EXPECT_EQ(d.model.counts().lines_written, 4U);
    ASSERT_EQ(d.model.periods().size(), 1U);
    EXPECT_EQ(d.model.periods()[0].context, user(5));
    EXPECT_EQ(d.model.periods()[0].initial, (Counters{start, start, start, start, start, start}));
}

// Requirements: R45 R49 R50 R51 R52 R56 R58 R59 R60 R77 R78 R104 R105 R106 R115 R116 R117 R125 R127
TEST(DpuModelExamples, CompressedFlowWithLoops) {
    Driver d(Driver::traced(TraceMode::eonce_comp));
    d.write(DpTc::offset, 0x00200003);
    d.in.ctx = user(7);
    d.step();
    d.step({item(ItemKind::call, 0x00402010, 0x00403000, user(7))});
    for (unsigned i = 0; i < 15; ++i) d.step({item(ItemKind::loop_short, 0x00403008, 0x00403004, user(7))});
    for (unsigned i = 0; i < 9; ++i) d.step({item(ItemKind::loop_long, 0x0040301c, 0x00403010, user(7))});
    d.step({item(ItemKind::ret, 0x00403028, 0x00402014, user(7))});
    d.write(DpTc::offset, 0x00200002);
    d.settle();
    EXPECT_TRUE(d.errors.empty());
    EXPECT_EQ(d.words(),
              "FFF0A20F 00402011 FFF0A20E 00403000 FFF0A60F 00403008 0000001E FFF0A80F "
              "0040301C 00000012 00403029 FFF0A20E 00402014 FFF0AA01 FFF0AA01 FFF0AA01");
}

// Requirements: R66 R67 R71
TEST(DpuModelExamples, FlowEntry) {
    Driver d(Driver::traced(TraceMode::flow));
    start_values(d, {0x7fffe7c7, 0x7ffffc99, 0x7fffffff, 0x7ffff8cf, 0x7fffffc9, 0x7ffffffc});
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.in.ctx = user(7);
    d.step();
    d.step({item(ItemKind::call, 0x00402010, 0x00403000, user(7))});
    d.close();
    EXPECT_EQ(d.words().substr(0, 9 * 9 - 1),
              "00402011 FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92 FFFFFFF8 FFF0A20E 00403000");
}

// Requirements: R27 R28 R29 R84 R91 R92
TEST(DpuModelExamples, OneShotFiresAfterExactlyItsValue) {
    Driver d;
    d.write({{DpCa0v::offset, 3}, {DpCa0c::offset, 0x000f0010}, {DpCr::offset, 1}});  // line 0
    std::vector<std::uint32_t> values;
    std::vector<bool> enabled, line;
    for (unsigned cycle = 0; cycle < 6; ++cycle) {
        const CycleOutput& out = d.step();
        values.push_back(d.read(DpCa0v::offset));
        enabled.push_back(d.get<DpSr>().enca0);
        line.push_back(out.pic[0]);
    }
    EXPECT_EQ(values, (std::vector<std::uint32_t>{3, 2, 1, 0, 0, 0}));
    EXPECT_EQ(enabled, (std::vector<bool>{true, true, true, false, false, false}));
    EXPECT_EQ(line, (std::vector<bool>{false, false, false, true, true, true}));
    EXPECT_TRUE(d.get<DpMr>().drca0);
}

// Requirements: R31
TEST(DpuModelExamples, TraceModeWraps) {
    Driver d;
    d.write({{DpCa0v::offset, 1}, {DpCa0c::offset, 0x000f0012}});
    std::vector<std::uint32_t> values;
    for (unsigned cycle = 0; cycle < 4; ++cycle) {
        d.step();
        values.push_back(d.read(DpCa0v::offset));
    }
    EXPECT_EQ(values, (std::vector<std::uint32_t>{1, 0, 0x7fffffff, 0x7ffffffe}));
    EXPECT_EQ(d.read(DpMr::offset), 0U);
}

TEST(DpuModelExamples, SampleOfAZero) {
    Driver d;
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample));
    d.in.ctx = user(7);
    d.step();
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_sample));
    d.step();
    EXPECT_EQ(d.words(), "FFF0A20F 00000000 00000000 00000000 00000000 00000000 00000000 FFF0A000");
}

// Requirements: R43 R44 R95
TEST(DpuModelExamples, TraceEventRequest) {
    Driver d;
    d.write({{DpTer::offset, 0x20000038},
             {DpCr::offset, 1U << 12},
             {DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_request)}});
    d.step();
    const std::uint32_t sample = trace_control(TraceMode::sw_sample, test::tc_request | test::tc_sample);
    d.write(DpTc::offset, sample);
    EXPECT_FALSE(d.step().pic[0]);
    EXPECT_EQ(d.bursts.size(), 1U);
    d.write(DpTc::offset, sample);
    EXPECT_TRUE(d.step().pic[0]);
    EXPECT_EQ(d.bursts.back().address, 0x20000020U);
    EXPECT_TRUE(d.get<DpMr>().drtb);
}

// Requirements: R53 R54 R85
TEST(DpuModelExamples, FullBufferLosesAndSaysSo) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.high = config.choices.low = ModelChoices::Grant::never;
    Driver d(config, 64);
    d.write(DpTc::offset, trace_control(TraceMode::flow));
    d.in.ctx = user(7);
    d.step();
    const auto call = [&] { d.step({item(ItemKind::call, 0x00402010, 0x00403000, user(7))}); };
    for (unsigned i = 0; i < 8; ++i) call();
    EXPECT_TRUE(d.get<DpMr>().tbf);
    EXPECT_FALSE(d.get<DpMr>().tlost);
    call();
    call();
    EXPECT_TRUE(d.get<DpMr>().tlost);
    EXPECT_EQ(d.model.counts().lost, 2U);

    const auto one_line = [&] {
        d.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
        d.step();
        d.model.set_arbiter(ModelChoices::Grant::never, ModelChoices::Grant::never);
    };
    one_line();  // h = 64
    call();
    EXPECT_EQ(d.model.counts().lost, 3U);
    one_line();  // h = 56
    call();
    EXPECT_EQ(d.model.counts().lost, 3U);
    EXPECT_EQ(d.model.counts().gaps, 1U);
    d.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
    d.close();
    EXPECT_EQ(Driver::hex(std::span(d.written).subspan(72, 3)), "FFF0AE01 00000006 00402011");
}

// Requirements: R71
TEST(DpuModelExamples, Edca5) {
    Driver d;
    start_values(d, {0x7ffffb4f, 0x7fffff55, 0x7fffffff, 0x7ffffeab, 0x7fffffea, 0x7ffffffe});
    d.write(DpTc::offset, trace_control(TraceMode::edca5));
    d.in.ctx = supervisor(5);
    d.step();
    d.step({edca(4, supervisor(5))});
    EXPECT_TRUE(d.written.empty());
    d.step({edca(5, supervisor(5))});
    EXPECT_EQ(d.words(), "FFF0A40B FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC FFF0A000");
}

// Requirements: R23
TEST(DpuModelExamples, RawWithAnEonceCounter) {
    ModelConfig config = Driver::traced(TraceMode::eonce_raw);
    config.eonce.tcount = true;
    Driver d(config);
    d.write(DpTc::offset, trace_control(TraceMode::eonce_raw));
    d.in.ctx = user(7);
    d.step();
    EonceItem call = item(ItemKind::call, 0x00402010, 0x00403000, user(7));
    call.count = 0x7fffff00;
    EonceItem loop = item(ItemKind::loop_short, 0x00403008, 0, user(7));
    loop.count = 0x7ffffeff;
    d.step({call, loop});
    d.close();
    EXPECT_EQ(d.words().substr(9, 9 * 5 - 1), "00402011 00403000 FFFFFE00 00403009 FFFFFDFE");
}

TEST(DpuModelExamples, CountersThatLookLikeFlags) {
    Driver d(Driver::traced(TraceMode::task));
    start_values(d, std::vector<std::uint32_t>(6, 0x7ff85107));
    d.write(DpTc::offset, trace_control(TraceMode::task));
    d.step();
    d.step({item(ItemKind::interrupt, 0x00401010, 0x00000200, supervisor(5))});
    d.close();
    EXPECT_EQ(d.words().substr(0, 9 * 9 - 1),
              "00401011 FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A20E FFF0A20E 00000200 FFF0A40A");
}

// Requirements: R64
TEST(DpuModelExamples, ATaskLoadedInSupervisorStateIsSeen) {
    Driver d(Driver::traced(TraceMode::task));
    d.write(DpTc::offset, trace_control(TraceMode::task));
    d.in.ctx = user(5);
    d.step();
    d.step({item(ItemKind::interrupt, 0x00401010, 0x00000200, supervisor(5))});
    d.step({item(ItemKind::interrupt, 0x00000210, 0x00000300, supervisor(5))});  // nested: nothing
    d.in.ctx = supervisor(7);
    d.step({item(ItemKind::rte, 0x00000310, 0x00000212, supervisor(7))});
    d.step({item(ItemKind::rte, 0x00000280, 0x00402000, user(7))});
    d.close();
    EXPECT_EQ(d.model.counts().entries, 3U);
}

}  // namespace
}  // namespace waymark::dpu
