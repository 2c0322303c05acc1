/// Decoded ranges beside executed ones: joining, the first difference and its place, sums; and the truth's own files.
#include "waymark/record/comparison.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "record/run_parts.h"
#include "support/temporary_folder.h"
#include "waymark/record/set_associative.h"
#include "waymark/record/thread_comparison.h"

namespace waymark::record {
namespace {

class Comparisons : public testing::Test {
protected:
    [[nodiscard]] RangeReader truth(const std::vector<TruthRange>& ranges) {
        auto writer = RangeWriter::create(folder_.path() / "ranges");
        EXPECT_TRUE(writer);
        for (const TruthRange& range : ranges) (*writer)->add(range);
        EXPECT_TRUE((*writer)->flush());
        auto reader = RangeReader::open(folder_.path() / "ranges");
        EXPECT_TRUE(reader);
        return std::move(*reader);
    }
    static std::string text(const std::optional<TruthRange>& r) {
        return r ? fmt::format("{:#x}-{:#x} {}", r->start, r->end, r->instructions) : "none";
    }
    static std::string text(const Comparison& c) {
        std::string out = fmt::format("{} ranges {} instructions", c.sums().ranges, c.sums().instructions);
        if (const auto& d = c.difference())
            out += fmt::format("; #{} at {} {}: executed {}, decoded {}, before {}", d->number, d->stream.value,
                               d->capture.value, text(d->executed), text(d->decoded), text(d->before));
        return out;
    }
    /// Compares blocks, each of which occurs once at 10, 20, …; `events` come before the block with their number.
    std::string compared(const std::vector<flow::Block>& blocks, const std::vector<flow::Event>& events,
                         std::optional<std::vector<TruthRange>> executed, bool cut_off = false,
                         std::uint64_t gone = 0) {
        std::vector<flow::Range> ranges;
        for (std::uint32_t i = 0; i < blocks.size(); ++i) {
            flow::Range range;
            range.edge = 2 * i + 1;
            range.offset = 10 * (i + 1);
            ranges.push_back(range);
        }
        std::optional<RangeReader> reader;
        if (executed) reader = truth(*executed);
        Comparison comparison([](Offset at) { return at.value + 1000; }, std::move(reader), gone);
        std::vector<TruthRange> kept;
        comparison.keep(kept);
        comparison.consume({blocks, {100}, ranges, events});
        comparison.finish(cut_off);
        EXPECT_EQ(kept.size(), comparison.sums().ranges);
        return text(comparison);
    }
    static flow::Block block(std::uint64_t start, std::uint32_t bytes, flow::End end) {
        flow::Block out;
        out.start = start;
        out.bytes = bytes;
        out.instructions = bytes / 4;
        out.end = end;
        return out;
    }
    TemporaryFolder folder_;
};

TEST_F(Comparisons, PiecesAreJoinedUpToAWaypoint) {
    using flow::End;
    const std::vector<flow::Block> blocks{block(0x100, 8, End::not_a_waypoint), block(0x108, 4, End::direct),
                                          block(0x10c, 4, End::indirect), block(0x200, 4, End::not_a_waypoint),
                                          block(0x300, 4, End::direct)};
    EXPECT_EQ(compared(blocks, {}, {{{0x100, 0x10c, 3}, {0x10c, 0x110, 1}, {0x200, 0x204, 1}, {0x300, 0x304, 1}}}),
              "4 ranges 6 instructions");
    EXPECT_EQ(
        compared(blocks, {}, {{{0x100, 0x10c, 3}, {0x10c, 0x114, 2}, {0x200, 0x204, 1}}}),
        "4 ranges 6 instructions; #2 at 130 1130: executed 0x10c-0x114 2, decoded 0x10c-0x110 1, before 0x100-0x10c "
        "3");
    EXPECT_EQ(compared(blocks, {}, {{{0x100, 0x10c, 3}, {0x10c, 0x110, 1}}}),
              "4 ranges 6 instructions; #3 at 140 1140: executed none, decoded 0x200-0x204 1, before 0x10c-0x110 1");
    EXPECT_EQ(compared(blocks, {}, {}), "4 ranges 6 instructions") << "sums only";
}

TEST_F(Comparisons, WhatRanAfterTheTraceIsADifference) {
    const std::vector<flow::Block> blocks{block(0x100, 8, flow::End::direct)};
    const std::vector<TruthRange> executed{{0x100, 0x108, 2}, {0x200, 0x204, 1}};
    EXPECT_EQ(compared(blocks, {}, executed),
              "1 ranges 2 instructions; #2 at 110 1110: executed 0x200-0x204 1, decoded none, before 0x100-0x108 2");
    EXPECT_EQ(compared(blocks, {}, executed, true), "1 ranges 2 instructions");
    EXPECT_EQ(compared(blocks, {}, {{{0x50, 0x54, 1}, {0x60, 0x64, 1}, {0x100, 0x108, 2}}}, false, 2),
              "1 ranges 2 instructions")
        << "two ranges are gone";
    EXPECT_EQ(compared(blocks, {}, {{{0x50, 0x54, 1}}}, false, 5),
              "1 ranges 2 instructions; #1 at 110 1110: executed none, decoded 0x100-0x108 2, before none")
        << "more are gone than there are";
    EXPECT_EQ(compared(blocks, {}, {{{0x50, 0x54, 1, true}, {0x100, 0x108, 2}, {0x60, 0x64, 1, true}}}),
              "1 ranges 2 instructions")
        << "lost ranges are in no trace";
}

TEST_F(Comparisons, EventsEndARangeUnlessTheySayNothingAboutFlow) {
    using flow::End;
    const std::vector<flow::Block> blocks{block(0x100, 8, End::not_a_waypoint), block(0x108, 4, End::direct)};
    const std::vector<TruthRange> whole{{0x100, 0x10c, 3}};
    EXPECT_EQ(compared(blocks, {{1, {}, flow::Timestamp{}}, {1, {}, flow::Context{}}}, whole),
              "1 ranges 3 instructions");
    EXPECT_EQ(compared(blocks, {{1, {107}, flow::NoMemory{}}}, {{{0x100, 0x108, 2}, {0x108, 0x10c, 1}}}),
              "2 ranges 3 instructions");
}

TEST_F(Comparisons, TruthHasEachNewRangeOnce) {
    static_cast<void>(
        truth({{0x8000, 0x8008, 2}, {0x8000, 0x8008, 2}, {0x9000, 0x9004, 1, true}, {0x9000, 0x9004, 1}}));
    // 0: a new range of start, bytes and instructions, all LEB128; 1: the next one is lost; from 2 on: known ones.
    EXPECT_EQ(support::as_hex(support::contents(folder_.path() / "ranges")),
              "0000: 00 80 80 02 08 02 02 01 00 80 a0 02 04 01 03\n");
    std::vector<TruthRange> wide{{0, 0x7f, 0x7f}, {0x80, 0x100, 0x80}, {0xffffffffffffff00, 0xffffffffffffff04, 1}};
    RangeReader reader = truth(wide);
    for (const TruthRange& r : wide) EXPECT_EQ(reader.next(), r);
    EXPECT_EQ(reader.next(), std::nullopt);
}

TEST_F(Comparisons, DamagedTruthEndsWhereItIsDamaged) {
    const auto read = [&](std::string_view bytes) {
        folder_.write("damaged", bytes);
        auto reader = RangeReader::open(folder_.path() / "damaged");
        EXPECT_TRUE(reader);
        std::string out;
        while (const auto range = reader->next())
            out += fmt::format("{:x}-{:x}{} ", range->start, range->end, range->lost ? " lost" : "");
        return out;
    };
    using namespace std::string_view_literals;
    EXPECT_EQ(read("\x00\x10\x04\x01\x02\x01\x02"sv), "10-14 10-14 10-14 lost ");
    EXPECT_EQ(read("\x00\x10\x04\x01\x03"sv), "10-14 ") << "a number that is not known";
    EXPECT_EQ(read("\x02"sv), "");
    EXPECT_EQ(read("\x00\x10\x04"sv), "");
    EXPECT_EQ(read("\x01\x01\x00\x10\x04\x01"sv), "10-14 lost ");
    EXPECT_EQ(read("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"sv), "") << "a number of more than 64 bits";
    const auto gone = RangeReader::open(folder_.path() / "gone");
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Errc::not_found);
    EXPECT_EQ(gone.error().message,
              fmt::format("cannot open {}: No such file or directory", (folder_.path() / "gone").string()));
}

TEST(TruthTexts, EachFieldOfASource) {
    Truth truth;
    truth.sources.push_back({.source = "A",
                             .ranges = 1,
                             .instructions = 2,
                             .hash = 0xabc,
                             .lost_ranges = 3,
                             .lost_instructions = 4,
                             .unfinished_instructions = 5,
                             .file = "f",
                             .wrapped = true,
                             .stopped = true,
                             .filtered_ranges = 6,
                             .filtered_instructions = 7});
    truth.sources.push_back({.source = "B"});
    const std::string text = to_text(truth);
    EXPECT_EQ(text.substr(text.find("complete")),
              "complete 0\nsource A ranges 1 instructions 2 hash 0xabc lost_ranges 3 lost_instructions 4 "
              "unfinished_instructions 5 filtered_ranges 6 filtered_instructions 7 wrapped 1 stopped 1 file f\n"
              "source B ranges 0 instructions 0 hash 0x14650fb0739d0383 lost_ranges 0 lost_instructions 0 "
              "unfinished_instructions 0 file -\n");
    const auto again = truth_from_text(text, "t");
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, truth);
}

TEST(TruthTexts, RefusalsNameTheLine) {
    const auto refusal = [](const char* text) {
        const auto truth = truth_from_text(text, "t");
        return truth ? "read" : truth.error().message;
    };
    EXPECT_EQ(refusal(""), "t:0: the file is empty");
    EXPECT_EQ(refusal("x\n"), "t:1: expected 'waymark-truth 1', found 'x'; this is not the truth of a recording");
    EXPECT_EQ(refusal("waymark-truth 1\n\n# a\ncomplete\n"), "t:4: 'complete' has no value");
    EXPECT_EQ(refusal("waymark-truth 1\ncomplete x\n"), "t:2: 'x' of 'complete' is not a number");
    EXPECT_EQ(refusal("waymark-truth 1\ncomplete 1x\n"), "t:2: '1x' of 'complete' is not a number");
    EXPECT_EQ(refusal("waymark-truth 1\nranges 1\n"), "t:2: 'ranges' comes before any source");
    EXPECT_EQ(refusal("waymark-truth 1\nfile x\n"), "t:2: 'x' of 'file' is not a number");
    EXPECT_EQ(refusal("waymark-truth 1\ncomplete 1\nsource A later 5\n"), "read") << "of a later version";
    const auto gone = read_truth("/no/folder");
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, Errc::not_found);
    EXPECT_EQ(gone.error().message,
              "/no/folder/truth.txt: No such file or directory; only 'waymark record' writes this file, next to its "
              "captures");
}

TEST(ExecutionsOfATruth, OfComparableCode) {
    const TemporaryFolder folder;
    {
        auto writer = RangeWriter::create(folder.path() / "ranges");
        ASSERT_TRUE(writer);
        for (const TruthRange& r : {TruthRange{0x100, 0x108, 2, false}, TruthRange{0x100, 0x108, 2, true},
                                    TruthRange{0x900, 0x910, 4, false}, TruthRange{0x104, 0x108, 1, false}})
            (*writer)->add(r);
        ASSERT_TRUE((*writer)->flush());
    }
    auto reader = RangeReader::open(folder.path() / "ranges");
    ASSERT_TRUE(reader);
    std::uint64_t left_out = 10;
    const ThreadExecution found = execution_of(
        *reader, [](std::uint64_t at) { return at < 0x800; }, left_out);
    EXPECT_EQ(found.instructions, 3U);
    EXPECT_EQ(left_out, 14U);
    ExecutedAddresses expected;
    expected.add(0x100, 0x104, 1);
    expected.add(0x104, 0x108, 2);
    EXPECT_FALSE(found.addresses.difference(expected));
}

TEST(SetAssociatives, TheLeastRecentLeaves) {
    SetAssociative table(8, 2);  // four sets of two ways
    EXPECT_EQ(table.insert(1, 11).state, 0);
    EXPECT_EQ(table.insert(5, 15).state, 0) << "the other way of its set";
    EXPECT_EQ(table.insert(2, 12).state, 0);
    EXPECT_EQ(*table.peek(1), 11);
    EXPECT_EQ(*table.find(1), 11) << "now 5 is the least recent";
    SetAssociative::Evicted out = table.insert(9, 19);
    EXPECT_EQ(out.tag, 5U);
    EXPECT_EQ(out.state, 15);
    EXPECT_EQ(table.peek(5), nullptr);
    EXPECT_EQ(table.find(5), nullptr);
    EXPECT_EQ(*table.peek(1), 11);
    out = table.insert(13, 23);
    EXPECT_EQ(out.tag, 1U) << "peek does not make it recent";
    *table.find(9) = 0;
    out = table.insert(17, 27);
    EXPECT_EQ(out.state, 0) << "a free way comes first";
    EXPECT_EQ(*table.peek(13), 23);
    EXPECT_EQ(*table.peek(17), 27);
    EXPECT_EQ(*table.peek(2), 12);
}

}  // namespace
}  // namespace waymark::record
