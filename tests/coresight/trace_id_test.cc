#include "waymark/coresight/trace_id.h"

#include <gtest/gtest.h>

#include <map>

namespace waymark::coresight {
namespace {

// docs/spec/pft.md, 6.1: the ranges, and that there is nothing between them.
TEST(TraceId, EveryValueHasItsClass) {
    std::map<TraceIdClass, int> count;
    for (int value = 0; value < 256; ++value) ++count[classify({static_cast<std::uint8_t>(value)})];
    EXPECT_EQ(count[TraceIdClass::source], 0x6F);
    EXPECT_EQ(count[TraceIdClass::null], 1);
    EXPECT_EQ(count[TraceIdClass::flush], 1);
    EXPECT_EQ(count[TraceIdClass::trigger], 1);
    EXPECT_EQ(count[TraceIdClass::forbidden], 1);
    EXPECT_EQ(count[TraceIdClass::reserved], 13 + 128);

    EXPECT_EQ(classify({0x00}), TraceIdClass::null);
    EXPECT_EQ(classify({0x01}), TraceIdClass::source);
    EXPECT_EQ(classify({0x6F}), TraceIdClass::source);
    EXPECT_EQ(classify({0x70}), TraceIdClass::reserved);
    EXPECT_EQ(classify({0x7A}), TraceIdClass::reserved);
    EXPECT_EQ(classify({0x7B}), TraceIdClass::flush);
    EXPECT_EQ(classify({0x7C}), TraceIdClass::reserved);
    EXPECT_EQ(classify({0x7D}), TraceIdClass::trigger);
    EXPECT_EQ(classify({0x7E}), TraceIdClass::reserved);
    EXPECT_EQ(classify({0x7F}), TraceIdClass::forbidden);
    EXPECT_EQ(classify({0x80}), TraceIdClass::reserved);
}

TEST(TraceId, ClassesHaveNames) {
    EXPECT_EQ(name(TraceIdClass::source), "source");
    EXPECT_EQ(name(TraceIdClass::forbidden), "forbidden");
}

}  // namespace
}  // namespace waymark::coresight
