#include "waymark/coresight/formatter.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "coresight/reference_deformatter.h"
#include "support/sanitized.h"

namespace waymark::coresight {
namespace {

using testing::deformat;
using Buffer = std::vector<std::uint8_t>;

constexpr TraceId id_a{0x10}, id_b{0x11};

Buffer numbers(std::size_t count, unsigned from = 0) {
    Buffer bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(from++);
    return bytes;
}

TEST(Formatter, IdDataAuxiliaryByteAndPadding) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, Buffer{0x81, 0x03, 0x84});
    EXPECT_TRUE(out.empty());
    formatter.flush();
    // 0x03 stands at byte 2, its bit 0 in aux bit 1; padding begins with the null ID at byte 4.
    EXPECT_EQ(out, (Buffer{0x21, 0x81, 0x02, 0x84, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02}));
    formatter.flush();
    EXPECT_EQ(out.size(), 16U);
}

// A change at an odd place: the even byte moves with its bit 0, which the auxiliary byte held. Twice: to 0x11 at byte
// 2, to padding at byte 6.
TEST(Formatter, DelayedIdChange) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, Buffer{0x81, 0x03});
    formatter.add(id_b, Buffer{0x44, 0x45, 0x47});
    formatter.flush();
    EXPECT_EQ(out, (Buffer{0x21, 0x81, 0x23, 0x03, 0x44, 0x45, 0x01, 0x47, 0, 0, 0, 0, 0, 0, 0, 0x0A}));
}

TEST(Formatter, Byte14HoldsDataOrAnId) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, numbers(14, 1));  // the last, 14, at byte 14
    ASSERT_EQ(out.size(), 16U);
    EXPECT_EQ(out[14], 14);
    formatter.add(id_a, numbers(14, 0x21));
    formatter.add(id_b, Buffer{0xAB, 0xCD});  // its ID at byte 14, the data in the next frame
    ASSERT_EQ(out.size(), 32U);
    EXPECT_EQ(out[30], 0x23);
    EXPECT_EQ(out[31] & 0x80, 0);
    formatter.flush();
    ASSERT_EQ(out.size(), 48U);
    EXPECT_EQ(out[32], 0xAA);
    EXPECT_EQ(out[33], 0xCD);
    EXPECT_EQ(out[34], 0x01);
    EXPECT_EQ(out[47], 0x01);
}

TEST(Formatter, FlushWithOnlyByte14LeftEndsWithTheNullId) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, numbers(13));
    formatter.flush();
    ASSERT_EQ(out.size(), 16U);
    EXPECT_EQ(out[14], 0x01);
    EXPECT_EQ(deformat(out).totals.padding_bytes(), 0U);
}

// Seven frames without an ID, then the repeat at byte 0 of the eighth.
TEST(Formatter, RepeatsTheIdInTheEighthFrame) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, numbers(14 + 7 * 15 + 14 + 7 * 15 + 14));
    ASSERT_EQ(out.size(), 17U * 16);
    for (unsigned frame = 0; frame < 17; ++frame) {
        EXPECT_EQ(out[16 * frame] == 0x21, frame % 8 == 0) << frame;
    }

    Buffer never;
    Formatter quiet(never, {.repeat_frames = 0});
    quiet.add(id_a, numbers(14 + 40 * 15));
    EXPECT_EQ(deformat(never).totals.id_bytes, 1U);
}

TEST(Formatter, RepeatOnRequestTakesTheFormOfItsPlace) {
    Buffer out;
    Formatter formatter(out, {.repeat_frames = 0});
    formatter.add(id_a, Buffer{0x81});
    formatter.repeat_id();  // even place
    formatter.add(id_a, Buffer{0x82, 0x83});
    formatter.repeat_id();  // odd place: 0x83 moves
    formatter.add(id_a, Buffer{0x84, 0x85});
    formatter.flush();
    EXPECT_EQ(out, (Buffer{0x21, 0x81, 0x21, 0x82, 0x21, 0x83, 0x84, 0x85, 0x01, 0, 0, 0, 0, 0, 0, 0x04}));
}

TEST(Formatter, InitialIdNeedsNoAnnouncement) {
    Buffer out;
    Formatter formatter(out, {.initial_id = id_a});
    formatter.add(id_a, numbers(15));
    ASSERT_EQ(out.size(), 16U);
    EXPECT_EQ(deformat(out).totals.unassociated, 15U);
}

TEST(Formatter, FullSyncBeforeEveryNthFrame) {
    for (const unsigned every : {1U, 3U}) {
        Buffer out;
        Formatter formatter(out, {.full_sync_frames = every});
        formatter.add(id_a, numbers(14 + 5 * 15));
        const auto totals = deformat(out, {.framing = Framing::tpiu}).totals;
        EXPECT_EQ(totals.frames, 6U);
        EXPECT_EQ(totals.fsyncs, every == 1 ? 6U : 2U);
        EXPECT_EQ(totals.first_fsync, Offset{0});
        EXPECT_EQ(totals.lost_bytes(), 0U);
    }
}

TEST(Formatter, HalfSyncAtTheNextEvenPlace) {
    Buffer out;
    Formatter formatter(out, {.full_sync_frames = 100});
    formatter.idle();  // between frames: at once, behind the full sync that is due
    EXPECT_EQ(out, (Buffer{0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0x7F}));
    formatter.add(id_a, Buffer{0x81});
    formatter.idle();  // even
    formatter.add(id_a, Buffer{0x82});
    formatter.idle();  // odd: after the pair, into which the next ID still goes
    formatter.add(id_b, Buffer{0x83});
    formatter.flush();
    EXPECT_EQ(out, (Buffer{0xFF, 0xFF, 0xFF, 0x7F, 0xFF, 0x7F, 0x21, 0x81, 0xFF, 0x7F, 0x23, 0x82, 0xFF,
                           0x7F, 0x01, 0x83, 0,    0,    0,    0,    0,    0,    0,    0,    0,    0x06}));
}

TEST(Formatter, BarrierEndsTheCapture) {
    Buffer out;
    Formatter formatter(out);
    formatter.add(id_a, Buffer{1});
    formatter.barrier();
    formatter.add(id_a, Buffer{2});
    formatter.flush();
    ASSERT_EQ(out.size(), 48U);
    EXPECT_TRUE(std::equal(barrier_frame.begin(), barrier_frame.end(), out.begin() + 16));
    EXPECT_EQ(out[32], 0x21);
    const auto result = deformat(out);
    EXPECT_EQ(result.totals.barriers, 1U);
    EXPECT_EQ(result.totals.data[0x10], 2U);
}

TEST(Formatter, FlushFillsTheMemoryWidth) {
    for (const unsigned width : {0U, 4U, 16U, 64U}) {
        Buffer out;
        Formatter formatter(out, {.memory_width_bytes = width});
        formatter.add(id_a, numbers(14 + 15));  // ends exactly with a frame
        formatter.flush();
        EXPECT_EQ(out.size(), width == 64 ? 64U : 32U);
        const auto size = out.size();
        formatter.flush();
        EXPECT_EQ(out.size(), size);
        const auto totals = deformat(out).totals;
        EXPECT_EQ(totals.data[0x10], 29U);
        EXPECT_EQ(totals.padding_bytes(), width == 64 ? 29U : 0U);
    }
}

// Frames made the quick way count like frames made byte by byte.
TEST(Formatter, FlushCountsAllFramesTowardsTheMemoryWidth) {
    for (const std::size_t quick : {0U, 1U, 2U, 3U, 4U, 5U}) {
        Buffer out;
        Formatter formatter(out, {.memory_width_bytes = 64});
        if (quick > 0) formatter.add(id_a, numbers(14 + 15 * (quick - 1)));
        formatter.add(id_b, Buffer{1});
        formatter.flush();
        EXPECT_EQ(out.size(), quick < 4 ? 64U : 128U) << quick;
    }
}

// Whole frames of one source take a quick way; a byte at a time never does.
TEST(Formatter, HowBytesAreCutChangesNothing) {
    for (unsigned seed = 0; seed < sized(300U, 60U); ++seed) {
        std::minstd_rand random(seed + 1);
        FormatterOptions options;
        options.repeat_frames = static_cast<unsigned>(random() % 10);
        if (seed % 5 == 0) options.full_sync_frames = 3;
        if (seed % 7 == 0) options.initial_id = id_a;
        Buffer whole_out, single_out;
        Formatter whole(whole_out, options), single(single_out, options);
        for (unsigned event = 0; event < 60; ++event) {
            const TraceId id = random() % 3 == 0 ? id_b : id_a;
            const Buffer bytes = numbers(random() % (event % 8 == 0 ? 3000 : 40), static_cast<unsigned>(random()));
            whole.add(id, bytes);
            for (const std::uint8_t byte : bytes) single.add(id, {&byte, 1});
            const bool repeat = random() % 5 == 0, idle = random() % 7 == 0, flush = random() % 11 == 0;
            for (Formatter* formatter : {&whole, &single}) {
                if (repeat) formatter->repeat_id();
                if (idle) formatter->idle();
                if (flush) formatter->flush();
            }
            ASSERT_EQ(whole_out, single_out) << "seed " << seed << " event " << event;
        }
    }
}

TEST(FormatterDeathTest, TheForbiddenIdIsRefused) {
    Buffer out;
    Formatter formatter(out);
    EXPECT_DEATH(formatter.add(forbidden_id, Buffer{0}), "broken invariant");
}

}  // namespace
}  // namespace waymark::coresight
