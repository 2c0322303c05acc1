// Frames written by hand from docs/spec/pft.md, section 6.
#include "waymark/coresight/deformatter.h"

#include <gtest/gtest.h>

#include <vector>

#include "coresight/reference_deformatter.h"

namespace waymark::coresight {
namespace {

using testing::deformat;
using testing::Heard;
using testing::heard_data;
using testing::heard_gap;
using testing::heard_reset;
using testing::heard_trigger;
using testing::ReferenceDeformatter;
using Buffer = std::vector<std::uint8_t>;

constexpr DeformatterOptions tpiu{.framing = Framing::tpiu};

Buffer operator+(Buffer a, const Buffer& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

// One source, 0x10, announced at byte 0.
const Buffer plain_frame{0x21, 0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87,
                         0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E, 0x00};
const Buffer fsync{0xFF, 0xFF, 0xFF, 0x7F};
const Buffer hsync{0xFF, 0x7F};

std::vector<Heard> heard_of(unsigned id, std::uint64_t first, const Buffer& bytes) {
    std::vector<Heard> heard;
    for (std::size_t i = 0; i < bytes.size(); ++i) heard.push_back(heard_data(id, first + i, bytes[i]));
    return heard;
}

template <class... More>
std::vector<Heard> concat(std::vector<Heard> first, const More&... more) {
    (first.insert(first.end(), more.begin(), more.end()), ...);
    return first;
}

/// Expects these results of the deformatter in one piece and byte by byte, and of the reference; returns the totals.
Totals expect_heard(const Buffer& capture, DeformatterOptions options, const std::vector<Heard>& expected) {
    const auto whole = deformat(capture, options);
    EXPECT_EQ(whole.heard, expected);
    const auto bytewise = deformat(capture, options, [] { return 1; });
    EXPECT_EQ(bytewise.heard, expected);
    EXPECT_EQ(bytewise.totals, whole.totals);
    const auto reference = ReferenceDeformatter::run(capture, options);
    EXPECT_EQ(reference.heard, expected);
    EXPECT_EQ(reference.totals, whole.totals);
    EXPECT_EQ(whole.totals.accounted(), capture.size());
    EXPECT_EQ(whole.totals.bytes_read, capture.size());
    return whole.totals;
}

TEST(Deformatter, ImmediateIdThenData) {
    const auto totals = expect_heard(
        plain_frame, {},
        heard_of(0x10, 1, {0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E}));
    EXPECT_EQ(totals.frames, 1U);
    EXPECT_EQ(totals.id_bytes, 1U);
    EXPECT_EQ(totals.aux_bytes, 1U);
    EXPECT_EQ(totals.data[0x10], 14U);
    EXPECT_EQ(totals.first_id, Offset{0});
}

// Aux bit k is bit 0 of the data in byte 2k; the ID persists into the next frame, which is data throughout.
TEST(Deformatter, AuxBitsAndPersistentId) {
    const Buffer second{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0xA5};
    expect_heard(plain_frame + second, {},
                 concat(deformat(plain_frame).heard, heard_of(0x10, 16,
                                                              {0x11, 0x11, 0x12, 0x13, 0x15, 0x15, 0x16, 0x17, 0x18,
                                                               0x19, 0x1B, 0x1B, 0x1C, 0x1D, 0x1F})));
}

// Byte 4 announces 0x11 with aux bit 2 set: byte 5 still belongs to 0x10.
TEST(Deformatter, DelayedIdChange) {
    Buffer frame = plain_frame;
    frame[4] = 0x23;
    frame[15] = 0x04;
    expect_heard(frame, {},
                 concat(heard_of(0x10, 1, {0x81, 0x02, 0x83}), heard_of(0x10, 5, {0x85}),
                        heard_of(0x11, 6, {0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
}

TEST(Deformatter, DelayedRepeatOfTheSameId) {
    Buffer immediate = plain_frame, delayed = plain_frame;
    immediate[4] = delayed[4] = 0x21;
    delayed[15] = 0x04;
    EXPECT_EQ(deformat(immediate).heard, deformat(delayed).heard);
}

// Delayed, and the very next pair announces again: the ID between never gets a byte.
TEST(Deformatter, DelayedIdOverruled) {
    Buffer frame = plain_frame;
    frame[4] = 0x23;
    frame[6] = 0x25;
    frame[15] = 0x04;
    expect_heard(frame, {},
                 concat(heard_of(0x10, 1, {0x81, 0x02, 0x83}), heard_of(0x10, 5, {0x85}),
                        heard_of(0x12, 7, {0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
}

// Byte 14 has no byte after it; its ID counts from the next frame, for any value of aux bit 7.
TEST(Deformatter, IdInByte14) {
    for (const std::uint8_t aux : {std::uint8_t{0x00}, std::uint8_t{0x80}}) {
        Buffer frame = plain_frame;
        frame[14] = 0x23;
        frame[15] = aux;
        const Buffer second{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17,
                            0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x00};
        const auto totals = expect_heard(
            frame + second, {},
            concat(
                heard_of(0x10, 1, {0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D}),
                heard_of(0x11, 16,
                         {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E})));
        EXPECT_EQ(totals.data[0x11], 15U);
    }
}

TEST(Deformatter, NullIdIsPadding) {
    Buffer frame = plain_frame;
    frame[4] = 0x01;
    frame[8] = 0x21;
    const auto totals = expect_heard(
        frame, {},
        concat(heard_of(0x10, 1, {0x81, 0x02, 0x83}), heard_of(0x10, 9, {0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
    EXPECT_EQ(totals.padding_bytes(), 3U);
}

TEST(Deformatter, TriggerFlushAndReservedIdsAreNoTrace) {
    Buffer frame = plain_frame;
    frame[2] = 0xFB;  // 0x7D
    frame[4] = 0xF7;  // 0x7B
    frame[6] = 0xE1;  // 0x70
    frame[8] = 0x21;
    const auto totals = expect_heard(
        frame, {},
        concat(heard_of(0x10, 1, {0x81}), std::vector{heard_trigger(0x7D, 3, 0x83)},
               std::vector{heard_trigger(0x7B, 5, 0x85)}, heard_of(0x10, 9, {0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
    EXPECT_EQ(totals.data_bytes(TraceIdClass::trigger), 1U);
    EXPECT_EQ(totals.data_bytes(TraceIdClass::flush), 1U);
    EXPECT_EQ(totals.data_bytes(TraceIdClass::reserved), 1U);
    EXPECT_EQ(totals.data_bytes(TraceIdClass::source), 7U);
}

TEST(Deformatter, DataBeforeTheFirstIdIsNobodys) {
    Buffer frame = plain_frame;
    frame[0] = 0x20;
    frame[6] = 0x21;
    const auto totals = expect_heard(frame, {}, heard_of(0x10, 7, {0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E}));
    EXPECT_EQ(totals.unassociated, 6U);
    EXPECT_EQ(totals.first_id, Offset{6});
}

TEST(Deformatter, ForbiddenIdLosesItsFrameAndTheCurrentId) {
    Buffer bad = plain_frame;
    bad[10] = 0xFF;
    Buffer no_id = plain_frame;
    no_id[0] = 0x20;
    const auto totals = expect_heard(
        plain_frame + bad + bad + no_id + plain_frame, {},
        concat(
            deformat(plain_frame).heard, std::vector{heard_gap(16, 48, GapReason::framing)},
            std::vector{heard_reset(48)},
            heard_of(0x10, 65, {0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
    EXPECT_EQ(totals.damaged_frames, 2U);
    EXPECT_EQ(totals.unassociated, 15U);
    EXPECT_EQ(totals.first_forbidden, Offset{26});
    EXPECT_EQ(totals.lost_bytes(), 32U);
}

TEST(Deformatter, DamagedLastFrame) {
    Buffer bad = plain_frame;
    bad[0] = 0xFF;
    expect_heard(plain_frame + bad + Buffer{1, 2, 3}, {},
                 concat(deformat(plain_frame).heard, std::vector{heard_gap(16, 32, GapReason::framing), heard_reset(32),
                                                                 heard_gap(32, 35, GapReason::incomplete_packet)}));
}

TEST(Deformatter, TheFirstBarrierIsTheFirstFullSync) {
    const Buffer barrier = fsync + fsync + fsync + fsync;
    const auto totals = deformat(plain_frame + barrier + plain_frame + barrier).totals;
    EXPECT_EQ(totals.first_fsync, Offset{16});
    EXPECT_EQ(totals.first_forbidden, std::nullopt);
    // A damaged frame before a barrier does not belong to the barrier.
    Buffer damaged = plain_frame;
    damaged[4] = 0xFF;
    const auto after_damage = deformat(damaged + barrier + plain_frame + barrier).totals;
    EXPECT_EQ(after_damage.first_forbidden, Offset{4});
    EXPECT_EQ(after_damage.first_fsync, Offset{16});
    EXPECT_EQ(after_damage.fsyncs, 8U);
}

TEST(Deformatter, BarrierSeparatesCaptures) {
    const Buffer barrier = fsync + fsync + fsync + fsync;
    Buffer no_id = plain_frame;
    no_id[0] = 0x20;
    const auto totals = expect_heard(plain_frame + barrier + no_id, {},
                                     concat(deformat(plain_frame).heard, std::vector{heard_reset(32)}));
    EXPECT_EQ(totals.barriers, 1U);
    EXPECT_EQ(totals.fsyncs, 4U);
    EXPECT_EQ(totals.unassociated, 15U);
    EXPECT_EQ(totals.first_fsync, Offset{16});

    const auto refused = expect_heard(
        plain_frame + barrier, {.reset_on_4_fsync = false},
        concat(deformat(plain_frame).heard, std::vector{heard_gap(16, 32, GapReason::framing), heard_reset(32)}));
    EXPECT_EQ(refused.damaged_frames, 1U);
    EXPECT_EQ(refused.fsyncs, 0U);
}

TEST(Deformatter, NothingAndLessThanAFrame) {
    expect_heard({}, {}, {});
    expect_heard({0x21, 0x80}, {}, {heard_gap(0, 2, GapReason::incomplete_packet)});
    expect_heard({}, tpiu, {});
    expect_heard({0x21, 0x80}, tpiu, {heard_gap(0, 2, GapReason::unsynchronised)});
    expect_heard(fsync, tpiu, {});
    expect_heard(fsync + Buffer{0x21}, tpiu, {heard_gap(4, 5, GapReason::incomplete_packet)});
    expect_heard(fsync + Buffer{0xFF, 0xFF, 0xFF}, tpiu, {heard_gap(4, 7, GapReason::incomplete_packet)});
}

TEST(Deformatter, TpiuSearchesTheFirstFullSync) {
    std::vector<Heard> shifted = deformat(plain_frame).heard;
    for (auto& heard : shifted) heard.at += 7;
    const auto totals = expect_heard(Buffer{0xFF, 0x21, 0x80} + fsync + plain_frame, tpiu,
                                     concat({heard_gap(0, 3, GapReason::unsynchronised)}, shifted));
    EXPECT_EQ(totals.fsyncs, 1U);
    EXPECT_EQ(totals.first_fsync, Offset{3});
}

// Half syncs between frames and inside one; full syncs between frames. Data on their two sides is not side by side.
TEST(Deformatter, TpiuSyncPacketsAreRemoved) {
    const Buffer head(plain_frame.begin(), plain_frame.begin() + 6), tail(plain_frame.begin() + 6, plain_frame.end());
    const auto totals =
        expect_heard(fsync + hsync + head + hsync + hsync + tail + hsync + fsync + fsync, tpiu,
                     concat(heard_of(0x10, 7, {0x81, 0x02, 0x83, 0x04, 0x85}),
                            heard_of(0x10, 16, {0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D, 0x0E})));
    EXPECT_EQ(totals.hsyncs, 4U);
    EXPECT_EQ(totals.fsyncs, 3U);
    EXPECT_EQ(totals.sync_bytes(), 20U);
}

// Around an ID in the delayed form, and before the last pair.
TEST(Deformatter, TpiuHalfSyncNextToIds) {
    Buffer frame = plain_frame;
    frame[4] = 0x23;
    frame[15] = 0x04;
    const Buffer capture =
        fsync + Buffer(frame.begin(), frame.begin() + 4) + hsync + Buffer(frame.begin() + 4, frame.begin() + 6) +
        hsync + Buffer(frame.begin() + 6, frame.begin() + 14) + hsync + Buffer(frame.begin() + 14, frame.end());
    expect_heard(
        capture, tpiu,
        concat(heard_of(0x10, 5, {0x81, 0x02, 0x83}), heard_of(0x10, 11, {0x85}),
               heard_of(0x11, 14, {0x06, 0x87, 0x08, 0x89, 0x0A, 0x8B, 0x0C, 0x8D}), heard_of(0x11, 24, {0x0E})));
}

TEST(Deformatter, TpiuFullSyncInsideAFrameLosesTheFrame) {
    const Buffer head(plain_frame.begin(), plain_frame.begin() + 6);
    std::vector<Heard> again = deformat(plain_frame).heard;
    for (auto& heard : again) heard.at += 14;
    const auto totals = expect_heard(fsync + head + fsync + plain_frame, tpiu,
                                     concat({heard_gap(4, 10, GapReason::framing), heard_reset(10)}, again));
    EXPECT_EQ(totals.sync_losses, 1U);
    EXPECT_EQ(totals.first_forbidden, Offset{10});

    // At an odd place the sync begins with what looks like data.
    for (auto& heard : again) heard.at += 1;
    expect_heard(fsync + head + Buffer{0x42} + fsync + plain_frame, tpiu,
                 concat({heard_gap(4, 11, GapReason::framing), heard_reset(11)}, again));
}

// A byte too few: the first byte of the full sync passes for the auxiliary byte of a frame that is complete with it.
TEST(Deformatter, TpiuFullSyncBeginningInTheAuxiliaryByte) {
    Buffer short_frame = plain_frame;
    short_frame.pop_back();
    std::vector<Heard> again = deformat(plain_frame).heard;
    for (auto& heard : again) heard.at += 23;
    const auto result = deformat(fsync + short_frame + fsync + plain_frame, tpiu);
    expect_heard(fsync + short_frame + fsync + plain_frame, tpiu, result.heard);
    EXPECT_EQ(result.totals.sync_losses, 1U);
    EXPECT_EQ(result.totals.lost_bytes(), 3U);
    EXPECT_TRUE(std::equal(again.rbegin(), again.rend(), result.heard.rbegin()));
}

TEST(Deformatter, TpiuForbiddenIdSearchesAFullSync) {
    Buffer bad = plain_frame;
    bad[4] = 0xFF;
    std::vector<Heard> again = deformat(plain_frame).heard;
    for (auto& heard : again) heard.at += 40;
    expect_heard(fsync + bad + plain_frame + fsync + plain_frame, tpiu,
                 concat({heard_gap(4, 36, GapReason::framing), heard_reset(36)}, again));
    // Never found again: all the rest is one gap.
    expect_heard(fsync + bad + plain_frame, tpiu, {heard_gap(4, 36, GapReason::framing), heard_reset(36)});
}

TEST(Deformatter, KnowsTheCurrentId) {
    testing::Recorder recorder;
    Deformatter deformatter;
    EXPECT_FALSE(deformatter.current());
    deformatter.feed(plain_frame, recorder);
    EXPECT_EQ(deformatter.current(), TraceId{0x10});
    EXPECT_EQ(recorder.longest, 14U);
    deformatter.feed(Buffer(16), recorder);
    EXPECT_EQ(recorder.longest, 15U);
}

}  // namespace
}  // namespace waymark::coresight
