/// Troubles counted in one pass and in parts, and the place of the first of each.
#include "waymark/flow/troubles.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace waymark::flow {
namespace {

constexpr std::uint64_t shift = 0x1000;  // from the stream to the buffer
std::uint64_t in_buffer(Offset at) { return at.value + shift; }

const std::array<Block, 2> blocks{Block{.start = 0x8000, .bytes = 8}, Block{.start = 0x20000, .bytes = 64 * 1024}};

/// An element of a stream: a block that runs, or an event.
struct Step {
    std::optional<std::uint32_t> block{};
    What what{};
};

/// The steps from `first` on, at distances of `bytes`, as one batch.
Troubles counted(std::span<const Step> steps, std::uint64_t first, Troubles troubles = {}) {
    std::vector<Range> ranges;
    std::vector<Event> events;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].block)
            ranges.push_back({.edge = *steps[i].block * 2});
        else
            events.push_back({static_cast<std::uint32_t>(ranges.size()), Offset{first + i}, steps[i].what});
    }
    troubles.consume({blocks, {}, ranges, events}, in_buffer);
    return troubles;
}

const std::vector<Step> stream{
    {.block = 0},
    {.what = Gap{{1}, {3}, GapReason::malformed_packet}},
    {.what = Inconsistency{Conflict::branch_disagrees, {0x8000}, {0x9000}}},
    {.block = 0},
    {.what = NoMemory{{0x8008}}},
    {.block = 1},
    {.what = NoMemory{{0x30000}}},  // right after 64 KiB without a branch
    {.what = Inconsistency{Conflict::sync_disagrees, {0x8004}, {0x9004}}},
    {.what = TraceOn{TraceOnReason::overflow}},
    {.what = Gap{{9}, {10}, GapReason::malformed_packet}},
    {.what = NoMemory{{0x40000}}},  // not where the block ends
};

TEST(Troubles, TheFirstOfEachKindHasItsPlace) {
    const Troubles t = counted(stream, 0);
    const Trouble& gap = t.gaps[static_cast<unsigned>(GapReason::malformed_packet)];
    EXPECT_EQ(gap, (Trouble{.times = 2, .bytes = 3, .offset = shift + 1}));
    EXPECT_EQ(t.no_memory, (Trouble{.times = 3, .offset = shift + 4, .address = 0x8008}));
    EXPECT_EQ(t.overflows, (Trouble{.times = 1, .offset = shift + 8}));
    EXPECT_EQ(t.long_walks, (Trouble{.times = 1, .offset = shift + 6, .address = 0x20000}));
    EXPECT_EQ(t.contradicted(), (Trouble{.times = 2, .offset = shift + 2, .address = 0x8000, .expected = 0x9000}));
    EXPECT_EQ(t.first_contradiction().conflict, Conflict::branch_disagrees);
    EXPECT_EQ(t.first_contradiction().expected.value, 0x9000U);
}

// Unseen flow is counted with its size; waypoints whose image is missing are not.
TEST(Troubles, WhatRanUnseen) {
    const std::vector<Step> steps{{.what = Atoms{2, 1}},
                                  {.block = 0},
                                  {.what = Untraced{{0x8008}, {0x9000}, 40}},
                                  {.what = Untraced{{0x9008}, {0x9100}, 0}},
                                  {.what = NoMemory{{0x8008}}},
                                  {.what = Timestamp{}},
                                  {.what = Atoms{5, 5}},
                                  {.block = 0},
                                  {.what = Atoms{0, 4}},
                                  {.what = Mark{Mark::Kind::uncommitted, 3, 0}}};
    const Troubles t = counted(steps, 0);
    EXPECT_EQ(t.unplaced, (Trouble{.times = 2, .offset = shift, .amount = 7}));
    EXPECT_EQ(t.untraced,
              (Trouble{.times = 2, .offset = shift + 2, .address = 0x8008, .expected = 0x9000, .amount = 40}));
    EXPECT_EQ(t.untraced_unsized, 1U);
    EXPECT_EQ(t.uncommitted, (Trouble{.times = 1, .offset = shift + 9, .amount = 3}));
    EXPECT_TRUE(t.hides_code());
    EXPECT_FALSE(counted(std::span(steps).subspan(4, 3), 4).hides_code());
    for (std::size_t cut = 0; cut <= steps.size(); ++cut)
        EXPECT_EQ(counted(std::span(steps).subspan(cut), cut, counted(std::span(steps).first(cut), 0)), t) << cut;
}

// The flow between the last waypoint and a reset is unknown; before a reset that comes first, nothing ran.
TEST(Troubles, AResetHidesWhatRanBeforeIt) {
    constexpr ExceptionType reset{.number = 8, .kind = ExceptionClass::reset};
    const std::vector<Step> steps{
        {.what = Exception{&reset, {}, {}}}, {.block = 0}, {.what = Exception{&reset, {}, {}}}, {.block = 0}};
    const Troubles whole = counted(steps, 0);
    EXPECT_EQ(whole.untraced, (Trouble{.times = 1, .offset = shift + 2}));
    EXPECT_EQ(whole.untraced_unsized, 1U);
    for (std::size_t cut = 0; cut <= steps.size(); ++cut) {
        const std::span<const Step> all(steps);
        Troubles parts = counted(all.first(cut), 0);
        parts += counted(all.subspan(cut), cut);
        EXPECT_EQ(parts.untraced, whole.untraced) << cut;
        EXPECT_EQ(parts.untraced_unsized, 1U) << cut;
    }
}

// A debug exception comes first, and its handler is left out: that code ran after trace began.
TEST(Troubles, AnExceptionThatComesFirstHidesItsHandler) {
    constexpr ExceptionType debug{.number = 1, .kind = ExceptionClass::breakpoint};
    const std::vector<Step> steps{{.what = TraceOn{TraceOnReason::enabled}},
                                  {.what = Exception{&debug, {}, {}}},
                                  {.what = TraceOn{TraceOnReason::enabled}},
                                  {.block = 0}};
    for (std::size_t cut = 0; cut <= steps.size(); ++cut) {
        const std::span<const Step> all(steps);
        Troubles parts = counted(all.first(cut), 0);
        parts += counted(all.subspan(cut), cut);
        EXPECT_EQ(parts.handlers_left_out, 1U) << cut;
        EXPECT_EQ(parts.resumptions, 0U) << cut;
    }
}

// A unit whose buffer was full begins again. That is a loss, and no pause.
TEST(Troubles, MissingTraceIsNoPause) {
    const Gap missing{{2}, {2}, GapReason::missing};
    const std::vector<Step> steps{{.what = TraceOn{TraceOnReason::enabled}},
                                  {.block = 0},
                                  {.what = missing},
                                  {.what = TraceOn{TraceOnReason::enabled}},
                                  {.block = 0},
                                  {.what = TraceOn{TraceOnReason::enabled}},
                                  {.block = 0},
                                  {.what = missing},
                                  {.what = TraceOn{TraceOnReason::enabled}}};
    for (std::size_t cut = 0; cut <= steps.size(); ++cut) {
        const std::span<const Step> all(steps);
        Troubles parts = counted(all.first(cut), 0);
        parts += counted(all.subspan(cut), cut);
        EXPECT_EQ(parts.resumptions, 1U) << cut;
        EXPECT_EQ(parts.gaps[static_cast<unsigned>(GapReason::missing)].times, 2U) << cut;
    }
}

TEST(Troubles, PartsOneAfterAnotherGiveTheWhole) {
    const Troubles whole = counted(stream, 0);
    for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
        SCOPED_TRACE(cut);
        const std::span<const Step> steps(stream);
        // One after another with one object, like the batches of a stream.
        EXPECT_EQ(counted(steps.subspan(cut), cut, counted(steps.first(cut), 0)), whole);
        // Two workers, which are divided where the decoder begins again and no block precedes an event.
        if (cut != 0 && cut < stream.size() && stream[cut].block) {
            Troubles joined = counted(steps.first(cut), 0);
            joined += counted(steps.subspan(cut), cut);
            EXPECT_EQ(joined, whole);
        }
    }
}

}  // namespace
}  // namespace waymark::flow
