// Edge cases of the rules: words that are almost an entry, a unit at the lowest address, fields that are set but must
// not count.
#include <gtest/gtest.h>

#include <algorithm>

#include "support.h"
#include "unit_driver.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/registers.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;

void expect_the_same(const Words& words, const TraceFormat& format) {
    const Bytes8 bytes = memory(words);
    EXPECT_EQ(decode<ReferenceDecoder>(bytes, format), decode<Decoder>(bytes, format));
}

// A sample ends with a dummy; without it there is no sample, even if a counter before it looks like a dummy.
TEST(Edges, SamplesWithoutTheirDummy) {
    for (const TraceMode mode : {TraceMode::task, TraceMode::flow, TraceMode::sw_sample}) {
        const TraceFormat format = in(mode);
        const std::uint32_t flag = format.word({FlagKind::user_task, 5, true});
        const std::uint32_t dummy = format.word({FlagKind::dummy});
        const Words whole{flag, 2, 4, 6, 8, 10, 12, dummy};
        for (std::size_t at = 1; at < whole.size(); ++at) {
            Words wrong = whole;
            wrong[7] = 14;
            wrong[at] = dummy;
            // Entries after it, so that there are enough words for the fast path.
            for (unsigned i = 0; i < 4; ++i) wrong.insert(wrong.end(), whole.begin(), whole.end());
            expect_the_same(wrong, format);
        }
        Words samples;
        for (unsigned i = 0; i < 5; ++i) samples.insert(samples.end(), whole.begin(), whole.end());
        EXPECT_EQ(decode<Decoder>(memory(samples), format).totals.count<Sample>(), 5U);
        expect_the_same(samples, format);
    }
}

// Flags are distinguished from data by the page of the unit, wherever that is: also among the numbers that user data
// can be.
TEST(Edges, UnitsAtAnyAddress) {
    for (const std::uint32_t base : {0U, 0x1000U, 0x1f000U, 0x20000U, 0xfffff000U})
        for (const TraceMode mode : {TraceMode::task, TraceMode::flow, TraceMode::sw_sample, TraceMode::eonce_comp}) {
            const TraceFormat format{.dpu_base = base, .mode = mode, .eonce_counters = 0};
            const TaskContext context{false, 5};
            std::vector<Entry> entries(8, UserData{context, 0x1234'0005});
            if (mode != TraceMode::eonce_comp) entries.emplace_back(Sample{context, {2, 4, 6, 8, 10, 12}});
            entries.emplace_back(UserData{context, 0xffff'ffff});
            const Bytes8 bytes = encoded(entries, format);
            const Elements fast = decode<Decoder>(bytes, format);
            EXPECT_EQ(decode<ReferenceDecoder>(bytes, format), fast);
            EXPECT_EQ(fast.totals.lost_bytes(), 0U);
            ASSERT_GE(fast.elements.size(), 9U);
            for (unsigned i = 0; i < 8; ++i) {
                EXPECT_EQ(fast.elements[i].kind, ElementKind::user_data);
                EXPECT_EQ(fast.elements[i].value, 0x1234'0005U) << std::hex << base;
            }
        }
}

// A reset reports the cut part once, and reports a cut even where nothing was left.
TEST(Edges, ResetReportsOneGap) {
    const auto gaps = [](std::size_t bytes) {
        Collector out(in(TraceMode::flow));
        Parser<Collector> parser(out.format, ByteOrder::big, out);
        const Bytes8 all = memory(words("00401011 FFFFF82E"));
        parser.feed(Bytes(all).first(bytes));
        parser.reset();
        std::string text;
        for (const Item& item : out.items) text += std::to_string(item.bytes) + " " + item.text + "; ";
        return text;
    };
    EXPECT_EQ(gaps(0), "0 no entry: framing; ");
    EXPECT_EQ(gaps(3), "3 no entry: framing; ");
    EXPECT_EQ(gaps(4), "4 no entry: framing; ");
    EXPECT_EQ(gaps(8), "8 no entry: framing; ");
}

// Section 3: names of the bits beside a number, and addresses of some registers.
TEST(Edges, NamesOfUnusedBits) {
    const auto names = [](std::string_view name) {
        const auto about = Registers::find(name);
        EXPECT_TRUE(about.has_value()) << name;
        std::string out;
        for (const Field& field : Registers{}.fields(about->offset)) out += std::string(field.name) + " ";
        return out;
    };
    EXPECT_EQ(names("DP_RPID"), "reserved[31:8] value ");
    EXPECT_EQ(names("DP_CA2V"), "reserved[31] value ");
    EXPECT_EQ(names("DP_TD"), "value ");
    EXPECT_EQ(Registers::find("DP_CA2V")->offset, 0x40U);
    EXPECT_EQ(Registers::find("DP_TD")->offset, 0x90U);
    const std::string all = Registers::names();
    EXPECT_EQ(std::count(all.begin(), all.end(), ','),
              std::count(all.begin(), all.end(), 'D') > 0 ? std::count(all.begin(), all.end(), ' ') : -1);
    EXPECT_NE(all.find("DP_RPID, "), std::string::npos);
    EXPECT_FALSE(all.starts_with(","));
}

// Section 5: TASK needs interrupts and returns from them, FLOW also calls.
TEST(Edges, WhatTheEonceMustTrace) {
    for (unsigned bits = 0; bits < 8; ++bits) {
        EonceSetup e;
        e.tint = (bits & 1) != 0, e.trte = (bits & 2) != 0, e.tsub = (bits & 4) != 0;
        EXPECT_EQ(e.missing(TraceMode::task).empty(), (bits & 3) == 3) << bits;
        EXPECT_EQ(e.missing(TraceMode::flow).empty(), bits == 7) << bits;
        EXPECT_EQ(e.missing(TraceMode::eonce_raw), "");
        EXPECT_EQ(e.missing(TraceMode::sw_sample), "");
    }
    EXPECT_NE(EonceSetup{}.missing(TraceMode::task).find("TASK"), std::string::npos);
    EXPECT_NE(EonceSetup{}.missing(TraceMode::flow).find("FLOW"), std::string::npos);
}

// Bit 0 of a program counter is not part of it.
TEST(Edges, ProgramCountersAreEven) {
    const auto traced = [](std::uint32_t odd) {
        Driver d(Driver::traced(TraceMode::eonce_raw));
        d.write(DpTc::offset, trace_control(TraceMode::eonce_raw));
        d.step();
        d.step({item(ItemKind::call, 0x1000 + odd, 0x2000 + odd, user(5))});
        d.step({item(ItemKind::mark, 0x3000 + odd, 0, user(5))});
        d.close();
        EXPECT_TRUE(d.errors.empty());
        return d.words();
    };
    EXPECT_FALSE(traced(0).empty());
    EXPECT_EQ(traced(1), traced(0));
}

// TMPDIS prevents a requested sample; the filter by ID does not, if the task matches.
TEST(Edges, SamplesWhileTracingIsHeld) {
    const auto samples = [](std::uint32_t more) {
        Driver d;
        d.write(DpRpid::offset, 5);
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample, more));
        d.step();
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample, more | tc_sample));
        d.step(3U);
        d.write(DpTc::offset, trace_control(TraceMode::sw_sample));
        d.step();
        d.close();
        const auto entries = parsed(d.words(), in(TraceMode::sw_sample));
        return std::count_if(entries.begin(), entries.end(),
                             [](const std::string& entry) { return entry.find("SAMPLE") != entry.npos; });
    };
    EXPECT_EQ(samples(tc_tmpdis), samples(tc_tmpdis | tc_idflt));
    EXPECT_GT(samples(0), samples(tc_tmpdis));
    EXPECT_EQ(samples(0), samples(tc_idflt));
}

// A reserved mode gives nothing, and the port gives nothing either.
TEST(Edges, NexusOfReservedModes) {
    for (const unsigned mode : {8U, 15U}) {
        Driver d(Driver::traced(TraceMode::flow));
        DpTc tc = from_value<DpTc>(trace_control(TraceMode::flow));
        tc.tmode = static_cast<std::uint8_t>(mode);
        tc.nxmode = 1;
        d.write(DpTc::offset, to_value(tc));
        std::size_t bytes = 0;
        const auto step = [&](const std::vector<EonceItem>& items) { bytes += d.step(items).nexus.size(); };
        step({});
        step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
        for (unsigned i = 0; i < 50; ++i) step({});
        d.write(DpTc::offset, to_value(tc) & ~1U);
        for (unsigned i = 0; i < 50; ++i) step({});
        EXPECT_EQ(bytes, 0U) << mode;
    }
}

// Writing DP_TC unchanged has no effect: a loop that is being counted goes on. CTXEN has no effect in the modes of the
// EOnCE, whose context entries are always there.
TEST(Edges, WritingTheSameChangesNothing) {
    const auto traced = [](std::uint32_t more, bool again, bool idflt) {
        Driver d(Driver::traced(TraceMode::eonce_comp));
        d.write({{DpCr::offset, 1U << 28}, {DpRpid::offset, 5}});
        const std::uint32_t tc = trace_control(TraceMode::eonce_comp, more);
        d.write(DpTc::offset, tc);
        d.step();
        for (unsigned i = 0; i < 9; ++i) {
            if (i == 4 && again) d.write(DpTc::offset, idflt ? tc ^ tc_idflt : tc);
            d.step({item(ItemKind::loop_short, 0x1000, 0x1000, user(5))});
        }
        d.in.ctx = user(7);  // another task, which no filter knows
        d.step({item(ItemKind::call, 0x3000, 0x4000, user(7))});
        d.close();
        return parsed(d.words(), in(TraceMode::eonce_comp));
    };
    const auto once = traced(0, false, false);
    EXPECT_GT(once.size(), 3U);
    EXPECT_EQ(traced(0, true, false), once);
    EXPECT_EQ(traced(tc_ctxen, false, false), once);
    EXPECT_EQ(traced(tc_ctxen, true, false), once);
    // The filter by ID ends the loop when the filter is turned on or off.
    EXPECT_NE(traced(0, true, true), once);
    EXPECT_NE(traced(tc_ctxen, true, true), once);
    EXPECT_EQ(traced(tc_idflt, true, false), traced(tc_idflt, false, false));
    EXPECT_NE(traced(tc_idflt, false, false), once);
}

// A task enters once, however many cycles are counted in one call.
TEST(Edges, TasksComeInOnce) {
    for (const std::uint64_t cycles : {1U, 2U, 9U}) {
        Driver d;
        for (const std::uint32_t offset : {0x30U, 0x38U, 0x40U}) d.write(offset, 0x7fffffff);
        d.write({{DpCr::offset, 1U << 28},
                 {DpRpid::offset, 7},
                 {DpTac::offset, 15U << 16 | 12U << 4 | 2U | 1U}});  // at once, one task, trace mode, grouped
        d.step(3U);
        d.in.ctx = user(7);
        d.run(cycles);
        d.step();
        const auto counted = [&](unsigned i) { return 0x7fffffffU - d.model.values()[i]; };
        EXPECT_EQ(counted(2), 1U) << cycles;
        EXPECT_EQ(counted(0), cycles + 1) << cycles;
    }
}

// When a task enters without a change of flow, the port shows the owner.
TEST(Edges, NexusOwnersInRawMode) {
    const auto bytes = [](bool switches) {
        Driver d(Driver::traced(TraceMode::eonce_raw));
        DpTc tc = from_value<DpTc>(trace_control(TraceMode::eonce_raw));
        tc.nxmode = static_cast<std::uint8_t>(NexusMode::raw);
        d.write(DpTc::offset, to_value(tc));
        std::vector<std::uint8_t> out;
        const auto step = [&](const std::vector<EonceItem>& items) {
            const auto& nexus = d.step(items).nexus;
            out.insert(out.end(), nexus.begin(), nexus.end());
        };
        step({});
        step({item(ItemKind::call, 0x1000, 0x2000, user(5))});
        for (unsigned i = 0; i < 50; ++i) step({});
        if (switches) d.in.ctx = user(7);
        for (unsigned i = 0; i < 50; ++i) step({});
        return out;
    };
    auto expected = bytes(false);
    EXPECT_FALSE(expected.empty());
    nexus::encode(expected, nexus::OwnershipTrace{0, nexus::Process{false, 7, 7}.value()});
    EXPECT_EQ(bytes(true), expected);
}

// A Nexus message with a field too many, or too few, is no message.
TEST(Edges, NexusMessagesHaveTheirFieldsAndNoMore) {
    const auto valid = [](const char* text) {
        Bytes8 out;
        for (const std::uint32_t byte : words(text)) out.push_back(static_cast<std::uint8_t>(byte));
        return nexus::parse_message(out).has_value();
    };
    for (const auto& [whole, longer] :
         {std::array{"08 C0 08 2B", "08 C0 08 29 07"}, std::array{"78 00 0B", "78 00 09 07"},
          std::array{"20 00 C0 0B", "20 00 C0 09 07"}, std::array{"24 40 05 20 80 00 23", "24 40 05 20 80 00 21 07"}}) {
        EXPECT_TRUE(valid(whole)) << whole;
        EXPECT_FALSE(valid(longer)) << longer;
    }
    EXPECT_FALSE(valid("24 40 07"));
    EXPECT_FALSE(valid("20 03"));
}

}  // namespace
