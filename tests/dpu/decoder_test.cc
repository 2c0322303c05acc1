// Words → elements (docs/spec/dpu.md, sections 7.3 and 7.4), and the fast decoder against the reference.
#include <gtest/gtest.h>

#include "support.h"
#include "support/sanitized.h"
#include "waymark/dpu/loop_starts.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;

std::string text(const Element& e) {
    std::string out = std::to_string(e.offset.value) + " " + std::string(name(e.kind));
    const auto hex = [&](std::string_view what, std::uint64_t value) {
        out += ' ';
        out += what;
        wire::append_number(out, value);
    };
    if (e.has(Element::run_known)) hex("start=", e.start);
    if (e.from != 0) hex("from=", e.from);
    if (e.to != 0) hex("to=", e.to);
    if (e.kind == ElementKind::gap) out += " " + std::string(name(e.reason));
    hex("value=", e.value);
    if (e.has(Element::privilege_known)) out += e.context.supervisor ? " supervisor" : " user";
    if (e.has(Element::id_known)) hex("id=", e.context.id);
    if (e.has(Element::doubtful)) out += " doubtful";
    if (e.has(Element::at_destination)) out += " at destination";
    return out;
}
std::vector<std::string> texts(const Elements& decoded) {
    std::vector<std::string> out;
    for (const Element& e : decoded.elements) out.push_back(text(e));
    return out;
}
using Texts = std::vector<std::string>;

/// Both decoders, which must agree.
Elements decoded(const std::string& hex, const TraceFormat& format, const StartState& start = {},
                 bool complete = true) {
    const Bytes8 bytes = memory(words(hex));
    Elements slow = decode<ReferenceDecoder>(bytes, format, start, complete);
    EXPECT_EQ(slow, decode<Decoder>(bytes, format, start, complete));
    return slow;
}

constexpr Counters full{0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF};

// Section 10.1: the entries and the table of attributed counts.
// Requirements: R1 R2 R64 R113 R129
TEST(Decoder, TaskSwitchesSampleAndUserData) {
    const Elements out = decoded(
        R"(00401011 FFFFF82E FFFFFF0E FFFFFFFE FFFFFDA6 FFFFFFE6 FFFFFFFC 00000200
           FFF0A40A 00000281 FFFFF69E FFFFFEAA FFFFFFFE FFFFFD56 FFFFFFD4 FFFFFFFC
           00402000 FFF0A20E FFF0A20F FFFFCF8E FFFFF932 FFFFFFFE FFFFF19E FFFFFF92
           FFFFFFF8 FFF0A000 FFF0AC0F FFF0A20E 000195FC 00000002 FFF0A001 FFF0A001)",
        in(TraceMode::task), {.context = TaskContext{false, 5}, .counters = full});
    EXPECT_EQ(texts(out),
              (Texts{"0 task switch from=0x401010 to=0x200 value=0 supervisor id=5",
                     "36 task switch start=0x200 from=0x280 to=0x402000 value=1 user id=7",
                     "72 sample value=2 user id=7", "104 user data value=0xcafe0001 user id=7", "120 held value=0"}));
    ASSERT_EQ(out.readings.size(), 3U);
    EXPECT_EQ(out.readings[0].deltas, (Counters{1000, 120, 0, 300, 12, 1}));
    EXPECT_EQ(out.readings[1].deltas, (Counters{200, 50, 0, 40, 9, 0}));
    EXPECT_EQ(out.readings[2].deltas, (Counters{5000, 700, 0, 1500, 33, 2}));
    EXPECT_EQ(out.totals.deltas, (std::array<std::uint64_t, 6>{6200, 870, 0, 1840, 54, 3}));
    EXPECT_EQ(out.readings[0].flags, Reading::mixed);
    EXPECT_EQ(out.readings[2].flags, 0);
    EXPECT_EQ(out.totals.count<Pad>(), 2U);
    EXPECT_EQ(out.totals.entry_bytes, 128U);
    EXPECT_EQ(out.totals.lost_bytes(), 0U);
}

// Section 10.2.
// Requirements: R50 R51 R52 R77
TEST(Decoder, CompressedFlowWithLoops) {
    const Elements out = decoded(
        R"(FFF0A20F 00402011 FFF0A20E 00403000 FFF0A60F 00403008 0000001E FFF0A80F
           0040301C 00000012 00403029 FFF0A20E 00402014 FFF0AA01 FFF0AA01 FFF0AA01)",
        in(TraceMode::eonce_comp));
    EXPECT_EQ(texts(out), (Texts{"0 context value=0 user id=7", "4 pair from=0x402010 to=0x403000 value=0 user id=7",
                                 "16 short loop start=0x403000 from=0x403008 value=0xf user id=7",
                                 "28 long loop start=0x403000 from=0x40301c value=9 user id=7",
                                 "40 pair start=0x403000 from=0x403028 to=0x402014 value=0 user id=7",
                                 "52 closed value=0 user id=7"}));
    EXPECT_EQ(out.totals.count<Closed>(), 3U);
}

// Pads stand where tracing was held: the code that ran meanwhile, its end, and the owner of its counts are unknown.
// Requirements: R61 R93
TEST(Decoder, PadsMarkAHold) {
    const Elements out = decoded(
        R"(FFF0A20F 00000002 00000002 00000002 00000002 00000002 00000002 FFF0A000 FFF0A001 FFF0A001 FFF0A001
           FFF0A20F 00000000 00000000 00000000 00000000 00000000 00000000 FFF0A000
           FFF0A20F 00000000 00000000 00000000 00000000 00000000 00000000 FFF0A000)",
        in(TraceMode::sw_sample), {.context = TaskContext{false, 7}, .counters = Counters{2, 2, 2, 2, 2, 2}});
    EXPECT_EQ(texts(out), (Texts{"0 sample value=0 user id=7", "32 held value=0", "44 sample value=1 user id=7",
                                 "76 sample value=2 user id=7"}));
    EXPECT_EQ(out.totals.holds, 1U);
    EXPECT_FALSE(out.readings[0].has(Reading::lossy));
    EXPECT_TRUE(out.readings[1].has(Reading::lossy));
    EXPECT_FALSE(out.readings[2].has(Reading::lossy));
    // The last destination has no meaning any more.
    EXPECT_EQ(texts(decoded("00402011 00403000 FFF0A001 00403021 00404000", in(TraceMode::eonce_raw))),
              (Texts{"0 pair from=0x402010 to=0x403000 value=0", "8 held value=0",
                     "12 pair from=0x403020 to=0x404000 value=0"}));
}

// A raw pair does not show its context; the context entry behind it holds from its destination (5.3).
TEST(Decoder, RawPairsAndTheirContext) {
    const Elements out =
        decoded("FFF0A20F 00402011 00000200 FFF0A40F 00000281 00402014 00402021", in(TraceMode::eonce_raw));
    EXPECT_EQ(texts(out), (Texts{"0 context value=0 user id=7", "4 pair from=0x402010 to=0x200 value=0 user id=7",
                                 "12 context value=0 supervisor id=7 at destination",
                                 "16 pair start=0x200 from=0x280 to=0x402014 value=0 supervisor id=7",
                                 "24 pc start=0x402014 from=0x402020 value=0 supervisor id=7"}));
}

// A loop's flag carries the ID alone.
TEST(Decoder, LoopsShowTheIdOnly) {
    const Elements out = decoded("FFF0A60F 00403008 0000001E", in(TraceMode::eonce_comp));
    EXPECT_EQ(texts(out), Texts{"0 short loop from=0x403008 value=0xf id=7"});
}

// The start of a loop: taken from the image; else from a pair with the same address; else unknown (5.4).
TEST(Decoder, LoopStarts) {
    const TraceFormat format = in(TraceMode::eonce_comp);
    const std::vector<Entry> entries{CompressedFlow{0x1010, 0x1000, {}}, CompressedFlow{0x1020, 0x1030, {}},
                                     LongLoop{0, 0x1010, 3}, CompressedFlow{0x1040, 0x1038, {}}};
    LoopStarts starts;
    starts.set(0x1040, 0x1034);
    for (const Element& element : decode<Decoder>(encoded(entries, format), format).elements) starts.saw(element);
    EXPECT_EQ(starts.find(0x1010), 0x1000U);
    EXPECT_EQ(starts.find(0x1020), std::nullopt);
    EXPECT_EQ(starts.find(0x1040), 0x1034U);
}

// Counters wrap at 31 bits; 2^30 or more in one interval may have wrapped unseen.
// Requirements: R31
TEST(Decoder, DeltasWrap) {
    const TraceFormat format = in(TraceMode::sw_sample);
    const Counters before{3, 0, 0x7FFFFFFF, 0x40000000, 0x40000001, 5};
    const Counters after{0x7FFFFFFE, 0x7FFFFFFF, 0x7FFFFFFF, 0, 0, 6};
    const Bytes8 bytes = encoded({Sample{{}, before}, Sample{{}, after}}, format);
    const Elements out = decode<ReferenceDecoder>(bytes, format);
    EXPECT_EQ(out, decode<Decoder>(bytes, format));
    ASSERT_EQ(out.readings.size(), 2U);
    EXPECT_EQ(out.readings[0].deltas, Counters{});
    EXPECT_TRUE(out.readings[0].has(Reading::first));
    EXPECT_EQ(out.readings[1].deltas, (Counters{5, 1, 0, 0x40000000, 0x40000001, 0x7FFFFFFF}));
    EXPECT_EQ(out.readings[1].wide, 0x38) << "2^30 itself is what a flipped bit 30 gives";
    EXPECT_EQ(out.totals.wide, 1U);
    EXPECT_FALSE(out.readings[1].has(Reading::mixed));
}

// A loss makes context and flow unknown, and the interval belongs to no task; its deltas stay exact.
TEST(Decoder, Losses) {
    const TraceFormat format = in(TraceMode::flow);
    const auto flow = [](std::uint32_t value) {
        return Entry(Flow{0x1000, 0x2000, {value, value, value, value, value, value}, {false, 2}});
    };
    const std::vector<Entry> entries{flow(100), GapEntry{3}, UserData{{true, 2}, 1}, flow(90), flow(80)};
    const Bytes8 bytes = encoded(entries, format);
    const Elements out = decode<ReferenceDecoder>(bytes, format);
    EXPECT_EQ(out, decode<Decoder>(bytes, format));
    EXPECT_EQ(texts(out),
              (Texts{"0 flow from=0x1000 to=0x2000 value=0 user id=2", "36 lost entries value=3",
                     "44 user data value=1 supervisor id=2", "60 flow from=0x1000 to=0x2000 value=1 user id=2",
                     "96 flow start=0x2000 from=0x1000 to=0x2000 value=2 user id=2"}));
    EXPECT_EQ(out.readings[1].deltas[0], 10U);
    EXPECT_EQ(out.readings[1].flags, Reading::lossy | Reading::mixed);
    EXPECT_EQ(out.readings[2].flags, 0);
    EXPECT_EQ(out.totals.lost, 3U);
}

TEST(Decoder, DoubtfulEntriesSetNothing) {
    const Elements out = decoded("FFF0A001 FFF0A20F FFF0A003 FFF0AE01 00000008 FFF0A40F FFF0AA01", in(TraceMode::flow),
                                 {.context = TaskContext{true, 1}, .counters = {}});
    EXPECT_EQ(texts(out), (Texts{"0 held value=0", "4 context value=0 user id=7 doubtful",
                                 "8 gap malformed packet value=4", "12 lost entries value=4 doubtful",
                                 "20 context value=0 supervisor id=7", "24 closed value=0 supervisor id=7"}));
    EXPECT_EQ(out.totals.doubtful, 2U);
    EXPECT_EQ(out.totals.lost, 0U);
    EXPECT_EQ(
        texts(decoded("FFF0A003 FFF0A20F 00402011 FFF0A40F 00402021", in(TraceMode::eonce_raw))),
        (Texts{"0 gap malformed packet value=4", "4 context value=0 user id=7 doubtful", "8 pc from=0x402010 value=0",
               "12 context value=0 supervisor id=7", "16 pc from=0x402020 value=0 supervisor id=7"}));
}

// Tracing was off between two periods: the interval between them belongs to no task, and the context is the new
// period's.
TEST(Decoder, Periods) {
    const TraceFormat first = in(TraceMode::flow), second = in(TraceMode::task);
    const Counters values{1, 1, 1, 1, 1, 1};
    const Bytes8 a = encoded({Flow{0x1000, 0x2000, values, {false, 2}}, Closed{}}, first);
    const Bytes8 b = encoded({UserData{{false, 9}, 4}, TaskSwitch{0x3000, 0x4000, {}, {false, 2}}}, second);
    const auto run = [&]<class D>(std::type_identity<D>) {
        Elements out;
        D decoder(first, ByteOrder::big, out);
        decoder.feed(a);
        decoder.restart(second, {.context = TaskContext{true, 3}, .counters = {}});
        decoder.feed(b);
        decoder.finish(true);
        out.totals = decoder.totals();
        return out;
    };
    const Elements out = run(std::type_identity<ReferenceDecoder>{});
    EXPECT_EQ(out, run(std::type_identity<Decoder>{}));
    EXPECT_EQ(texts(out), (Texts{"0 flow from=0x1000 to=0x2000 value=0 user id=2", "36 closed value=0 user id=2",
                                 "40 enabled value=0 supervisor id=3", "40 user data value=4 user id=9",
                                 "56 task switch from=0x3000 to=0x4000 value=1 user id=2"}));
    EXPECT_EQ(out.readings[1].deltas[0], 1U);
    EXPECT_TRUE(out.readings[1].has(Reading::lossy));
    EXPECT_EQ(out.totals.offs, 1U);
}

// Literal data do not show which task wrote them, whichever task ran when tracing was enabled (7.2).
TEST(Decoder, LiteralDataHaveNoContext) {
    const Elements out = decoded("00000001 FFF0A001 00000003", in(TraceMode::user_raw),
                                 {.context = TaskContext{false, 7}, .counters = {}});
    EXPECT_EQ(texts(out), (Texts{"0 user data value=1", "4 user data value=0xfff0a001", "8 user data value=3"}));
    EXPECT_EQ(out.totals.holds, 0U);
}

// Random traces, whole and damaged, in pieces of any size and both byte orders: the fast decoder gives the same as the
// reference decoder, and every byte is accounted for.
TEST(Decoder, FastIsReference) {
    std::vector<TraceFormat> all = formats();
    all.push_back(any_mode());
    for (const TraceFormat& format : all)
        for (std::uint64_t seed = 0; seed < sized(60U, 12U); ++seed) {
            RandomTrace trace(format, seed);
            const ByteOrder order = seed % 2 == 0 ? ByteOrder::big : ByteOrder::little;
            Bytes8 bytes = encoded(trace.entries(1500), format, order);
            const std::uint64_t damages = seed % 4 == 0 ? 0 : trace.random()() % 40;
            for (std::uint64_t i = 0; i < damages; ++i) {
                std::uint8_t& byte = bytes[trace.random()() % bytes.size()];
                byte = static_cast<std::uint8_t>(byte ^ 1U << trace.random()() % 8);
                // A flag in the place of another word: some kinds of words need a flag, others must not have one.
                Bytes8 flag;
                append_word(flag,
                            format.word({static_cast<FlagKind>(trace.random()() % 8),
                                         static_cast<std::uint8_t>(trace.random()() % 3), trace.random()() % 8 == 0}),
                            order);
                std::copy(flag.begin(), flag.end(),
                          bytes.begin() + static_cast<std::ptrdiff_t>(trace.random()() % (bytes.size() / 4) * 4));
            }
            if (seed % 5 == 0) bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(seed));
            const bool complete = seed % 3 == 0;
            const StartState start{.context = TaskContext{false, 1}, .counters = full};
            const Elements slow = decode<ReferenceDecoder>(bytes, format, start, complete, order);
            ASSERT_EQ(slow, decode<Decoder>(bytes, format, start, complete, order)) << "seed " << seed;
            const std::size_t piece = 1 + trace.random()() % 300;
            ASSERT_EQ(slow, decode<Decoder>(bytes, format, start, complete, order, piece)) << "seed " << seed;
            std::uint64_t gaps = 0;
            for (const std::uint64_t each : slow.totals.gap_bytes) gaps += each;
            EXPECT_EQ(slow.totals.entry_bytes + gaps, bytes.size());
            EXPECT_EQ(slow.totals.bytes, bytes.size());
            EXPECT_TRUE(gaps == 0 || damages != 0 || seed % 5 == 0 || !complete) << "seed " << seed;
        }
}

}  // namespace
