#include "waymark/record/thread_comparison.h"

#include <gtest/gtest.h>

namespace waymark::record {
namespace {

TEST(ExecutedAddresses, PiecesOfARangeAreTheRange) {
    ExecutedAddresses whole, pieces;
    whole.add(0x1000, 0x1010, 3);
    pieces.add(0x1000, 0x1008, 3);
    pieces.add(0x1008, 0x1010, 2);
    auto found = whole.difference(pieces);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->address, 0x1008U);
    EXPECT_EQ(found->more, 1);
    EXPECT_TRUE(whole.excess(pieces).has_value());
    EXPECT_FALSE(pieces.excess(whole).has_value()) << "a part of it is no more than all";
    pieces.add(0x1008, 0x1010, 1);
    EXPECT_FALSE(whole.difference(pieces).has_value());
    pieces.add(0x2000, 0x2004, 1);
    found = whole.difference(pieces);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->address, 0x2000U);
    EXPECT_EQ(found->more, -1);
}

TEST(ThreadExecutionSink, CountsByThread) {
    const std::vector<flow::Block> blocks{{.start = 0x100, .bytes = 8, .instructions = 2},
                                          {.start = 0x200, .bytes = 4, .instructions = 1}};
    const std::vector<flow::Range> ranges{{.edge = 1}, {.edge = 2}, {.edge = 1, .times = 2}};
    const std::vector<flow::Event> events{{1, {}, flow::Context{.context_id = 7}}, {3, {}, flow::NoMemory{}}};
    ThreadExecutionSink sink([](const flow::Context& context) { return context.context_id; });
    sink.consume({blocks, {}, ranges, events});
    ThreadExecutions all;
    sink.add_to(all);
    sink.add_to(all);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[std::nullopt].instructions, 4U);
    EXPECT_EQ(all[7].instructions, 10U);
    EXPECT_EQ(sink.no_memory(), 1U);
    ExecutedAddresses expected;
    expected.add(0x100, 0x108, 4);
    expected.add(0x200, 0x204, 2);
    EXPECT_FALSE(all[7].addresses.difference(expected).has_value());
}

TEST(ThreadOfTruth, IsBehindTheProcess) {
    EXPECT_EQ(thread_of_truth({.source = "10/12"}), 12U);
    for (const char* other : {"PTM_0", "10/", "10/x", "10/12x", ""})
        EXPECT_FALSE(thread_of_truth({.source = other}).has_value()) << other;
}

}  // namespace
}  // namespace waymark::record
