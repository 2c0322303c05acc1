// Edges of the unit's rules, each with the words, bytes or values that docs/spec/dpu.md gives for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "dpu/support.h"
#include "dpu/unit_driver.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/nexus.h"

namespace waymark::dpu {
namespace {

using test::Driver;
using test::edca;
using test::item;
using test::trace_control;
using test::user;

constexpr std::uint32_t enabled_at_once = 15U << 16, disabled_at_once = 15U << 24, in_trace_mode = 2, of_triad = 1;
constexpr std::uint32_t cycles_set = 1U << 4;

struct EdgeTexts {
    std::vector<std::string> texts;
    void operator()(const nexus::Message& m, nexus::Extent) { texts.push_back(nexus::to_text(m)); }
    void operator()(const Gap&) { texts.emplace_back("gap"); }
};
/// A unit whose messages are kept.
class EdgeSender {
public:
    EdgeSender(const ModelConfig& config, std::uint32_t tc, CoreContext context) : driver(config, 64) {
        driver.in.ctx = context;
        driver.write(DpTc::offset, tc);
        step();
    }
    void step(std::vector<EonceItem> items = {}) {
        const auto& out = driver.step(std::move(items)).nexus;
        bytes_.insert(bytes_.end(), out.begin(), out.end());
    }
    void wait(unsigned cycles) {
        for (unsigned i = 0; i < cycles; ++i) step();
    }
    [[nodiscard]] std::vector<std::string> messages() const {
        EdgeTexts out;
        nexus::Parser<EdgeTexts> parser(out);
        parser.feed(bytes_);
        parser.finish();
        return out.texts;
    }
    Driver driver;

private:
    std::vector<std::uint8_t> bytes_;
};

// 4.1: TDM = 15 disables in the cycle of the write; this cycle is not counted.
// Requirements: R87
TEST(DpuModelEdges, TdmAtOnce) {
    Driver d;
    d.write({{DpTac::offset, enabled_at_once | cycles_set | in_trace_mode | of_triad}, {DpCa0v::offset, 100}});
    d.step(3);
    EXPECT_EQ(d.model.values()[0], 98U);
    d.write(DpTac::offset, disabled_at_once | cycles_set | in_trace_mode | of_triad);
    d.step();
    EXPECT_EQ(d.model.values()[0], 98U);
    EXPECT_EQ(d.read(DpSr::offset) & 0x3fU, 0U);
    // If one write enables and disables, disabling wins.
    d.write(DpTac::offset, disabled_at_once | enabled_at_once | cycles_set | in_trace_mode | of_triad);
    d.step(3);
    EXPECT_EQ(d.model.values()[0], 98U);
}

// 5.6: TWBA stays 1 while a burst is on the bus, though the buffer holds nothing more.
// Requirements: R84 R93
TEST(DpuModelEdges, TwbaWhileABurstIsOnTheBus) {
    ModelConfig config;
    config.choices.bus_cycles_per_line = 4;
    Driver d(config);
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample));
    d.step();
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_sample));
    ASSERT_EQ(d.step().bursts.size(), 1U);
    std::string seen;
    for (unsigned i = 0; i < 5; ++i) {
        seen += d.get<DpSr>().twba ? '1' : '0';
        d.step();
    }
    EXPECT_EQ(seen, "11100");
    // A flush ends when the bus is free, not before.
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_sample));
    d.step();
    d.write(DpTc::offset, 0);
    d.step();
    EXPECT_FALSE(d.model.idle());
    d.step(4);
    EXPECT_TRUE(d.model.idle());
}

// 3.2, 5.9: DETB = 3 requests debug state when the request line is written, and no interrupt.
// Requirements: R83
TEST(DpuModelEdges, TheTraceEventAsDebugRequest) {
    Driver d;
    d.write({{DpTer::offset, Driver::base}, {DpCr::offset, 3U << 12}});
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_request));
    EXPECT_FALSE(d.step().debug_request);
    d.write(DpTc::offset, trace_control(TraceMode::sw_sample, test::tc_request | test::tc_sample));
    const CycleOutput& out = d.step();
    EXPECT_TRUE(out.debug_request);
    EXPECT_FALSE(out.pic[0] || out.pic[1]);
    EXPECT_TRUE(d.get<DpMr>().drtb);
    EXPECT_FALSE(d.step().debug_request) << "a pulse";
}

// 7.2: c words after a raw pair, the event counter first, each shifted by one.
// Requirements: R23
TEST(DpuModelEdges, CounterAndExtensionOfTheEonce) {
    ModelConfig config;
    config.eonce.tchof = config.eonce.tcount = config.eonce.tcntext = true;
    Driver d(config);
    d.write(DpTc::offset, trace_control(TraceMode::eonce_raw));
    d.step();
    EonceItem i = item(ItemKind::cof, 0x1000, 0x2000, user(5));
    i.count = 0x7fffff00;
    i.ext = 0x11;
    d.step({i});
    d.close();
    EXPECT_EQ(d.words(), "FFF0A20B 00001001 00002000 FFFFFE00 00000022 FFF0AA01 FFF0AA01 FFF0AA01");
}

// 3.4: EN stays 0 where DP_TW lies outside of the buffer, on either side.
// Requirements: R96
TEST(DpuModelEdges, DpTwOutsideOfTheBuffer) {
    for (const std::uint32_t at : {Driver::base - 32, Driver::base + 0x80}) {
        Driver d;
        d.write({{DpTw::offset, at}, {DpTc::offset, trace_control(TraceMode::flow)}});
        d.step();
        EXPECT_FALSE(d.get<DpTc>().en) << at;
        EXPECT_EQ(d.errors.size(), 1U);
    }
    for (const std::uint32_t at : {Driver::base, Driver::base + 0x60}) {
        Driver d;
        d.write({{DpTw::offset, at}, {DpTc::offset, trace_control(TraceMode::flow)}});
        d.step();
        EXPECT_TRUE(d.get<DpTc>().en) << at;
    }
}

// 5.4: a branch to itself is a software loop, for its destination is not above its source.
// Requirements: R51
TEST(DpuModelEdges, ALoopToItself) {
    ModelConfig config;
    config.eonce = EonceSetup::for_mode(TraceMode::eonce_comp);
    Driver d(config);
    d.write(DpTc::offset, trace_control(TraceMode::eonce_comp));
    d.step();
    for (unsigned i = 0; i < 3; ++i) d.step({item(ItemKind::cof, 0x1000, 0x1000, user(5))});
    d.close();
    EXPECT_EQ(d.words(), "FFF0A20B FFF0A80B 00001000 00000006 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01");
}

// 5.4: each edge of IDFLT flushes the compressor.
// Requirements: R49 R51 R80
TEST(DpuModelEdges, EdgesOfTheFilterFlush) {
    ModelConfig config;
    config.eonce = EonceSetup::for_mode(TraceMode::eonce_comp);
    Driver d(config);
    d.in.ctx = user(7);
    d.write({{DpCr::offset, 1U << 28}, {DpRpid::offset, 7}, {DpTc::offset, trace_control(TraceMode::eonce_comp)}});
    d.step();
    const auto back = [&] { d.step({item(ItemKind::cof, 0x1010, 0x1000, user(7))}); };
    back();
    back();
    d.write(DpTc::offset, trace_control(TraceMode::eonce_comp, test::tc_idflt));
    back();
    d.write(DpTc::offset, trace_control(TraceMode::eonce_comp));
    back();
    d.close();
    EXPECT_EQ(d.words(),
              "FFF0A20F FFF0A80F 00001010 00000004 00001011 FFF0A20E 00001000 00001011 FFF0A20E 00001000 "
              "FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01 FFF0AA01");
}

// 5.8, 11.3: entries without room in the trace write buffer are an Error in mirrored messages, too.
// Requirements: R38
TEST(DpuModelEdges, AGapIsMirrored) {
    ModelConfig config = Driver::traced(TraceMode::flow);
    config.choices.high = config.choices.low = ModelChoices::Grant::never;
    EdgeSender s(config, trace_control(TraceMode::flow, 1U << 24), user(5));
    for (unsigned i = 0; i < 10; ++i) s.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    const auto errors = [&] {
        const auto texts = s.messages();
        return std::count(texts.begin(), texts.end(), "ERROR SRC=0 ETYPE=0 ECODE=0x2c");
    };
    EXPECT_EQ(errors(), 0);
    s.driver.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
    s.wait(20);
    s.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    s.wait(2);
    EXPECT_EQ(errors(), 1);
    // The same if a flush writes the gap entry.
    EdgeSender flushed(config, trace_control(TraceMode::flow, 1U << 24), user(5));
    for (unsigned i = 0; i < 10; ++i) flushed.step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
    flushed.driver.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
    flushed.driver.write(DpTc::offset, flushed.driver.read(DpTc::offset) & ~1U);
    flushed.wait(40);
    const auto texts = flushed.messages();
    ASSERT_GE(texts.size(), 2U);
    EXPECT_EQ(texts[texts.size() - 2], "ERROR SRC=0 ETYPE=0 ECODE=0x2c");
    EXPECT_EQ(texts.back(), "CORRELATION SRC=0 EVCODE=4 CDF=0 I-CNT=0");
}

// 11.2: ECODE names the classes that were lost, watchpoints where there were any.
TEST(DpuModelEdges, EcodeOfLostWatchpoints) {
    ModelConfig config;
    config.choices.nexus_queue_bytes = 8;
    config.choices.nexus_bytes_per_cycle = 1;
    EdgeSender s(config, trace_control(TraceMode::sw_sample, 3U << 24), user(7));
    for (unsigned i = 0; i < 20; ++i) s.step({edca(2, user(7))});
    EXPECT_GT(s.driver.model.counts().nexus_lost, 0U);
    s.wait(20);
    s.step({edca(2, user(7))});
    s.wait(20);
    const auto texts = s.messages();
    const auto errors = std::count_if(texts.begin(), texts.end(), [](const auto& t) { return t.starts_with("ERROR"); });
    EXPECT_GE(errors, 1);
    EXPECT_EQ(std::count(texts.begin(), texts.end(), "ERROR SRC=0 ETYPE=0 ECODE=0x29"), errors);
    EXPECT_EQ(texts.back(), "WATCHPOINT SRC=0 WPHIT=4");
}

// 5.8: a message of the queue's size fits into an empty queue; if the queue is one byte smaller, it does not.
TEST(DpuModelEdges, SizeOfTheQueue) {
    for (const std::uint32_t size : {3U, 4U}) {
        ModelConfig config;
        config.choices.nexus_queue_bytes = size;
        EdgeSender s(config, trace_control(TraceMode::sw_sample, 3U << 24), user(7));
        s.wait(5);
        EXPECT_EQ(s.driver.model.counts().nexus_lost, 4 - size);
        EXPECT_EQ(s.messages().size(), size - 3);
    }
}

// 11.2: RESOURCE-FULL carries a part of the next I-CNT; for other resources it has no meaning.
TEST(NexusReader, ResourceFullAddsToTheCount) {
    nexus::Reader reader;
    EXPECT_FALSE(reader.read(nexus::ProgramTraceSync{0, nexus::Sync::trace_enabled, 0, 0x1000 >> 1}));
    EXPECT_FALSE(reader.read(nexus::ResourceFull{0, 0, 0x10}));
    EXPECT_EQ(reader.read(nexus::ResourceFull{0, 1, 0x100})->kind, nexus::Meaning::Kind::unknown);
    const auto delivered =
        reader.read(nexus::IndirectBranch{0, nexus::BranchType::indirect, 2, (0x1000 ^ 0x3000) >> 1});
    ASSERT_TRUE(delivered.has_value());
    EXPECT_TRUE(delivered->from_known);
    EXPECT_EQ(delivered->from, 0x1000U + 2 * (0x10 + 2));
    EXPECT_EQ(delivered->to, 0x3000U);
    const auto next = reader.read(nexus::IndirectBranch{0, nexus::BranchType::indirect, 1, 0});
    EXPECT_EQ(next->from, 0x3002U) << "it counted once";
}

// 7.3: a loop of no repetitions is no entry, for the fast decoder as for the other.
// Requirements: R50 R51
TEST(DecoderEdges, LoopsOfNoRepetitions) {
    const TraceFormat format = test::in(TraceMode::eonce_comp);
    std::string words = "FFF0A60F 00403008 00000000 FFF0A80F 0040301C 00000000";
    for (unsigned i = 0; i < 20; ++i) words += " 00402011 FFF0A20E 00403000";
    const auto bytes = test::memory(test::words(words));
    const test::Elements slow = test::decode<ReferenceDecoder>(bytes, format, StartState{}, true);
    EXPECT_EQ(slow, test::decode<Decoder>(bytes, format, StartState{}, true));
    EXPECT_EQ(slow.totals.count<ShortLoop>() + slow.totals.count<LongLoop>(), 0U);
    EXPECT_EQ(slow.totals.count<CompressedFlow>(), 20U);
    EXPECT_EQ(slow.totals.gap_bytes[static_cast<std::size_t>(GapReason::malformed_packet)], 24U);
}

}  // namespace
}  // namespace waymark::dpu
