#include "waymark/coresight/bypass.h"

#include <gtest/gtest.h>

#include <random>

namespace waymark::coresight {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer stripped(const Buffer& capture, unsigned width = max_memory_width_bytes) {
    const auto trace = strip_bypass_padding(capture, width);
    return {trace.begin(), trace.end()};
}

TEST(Bypass, StripsTheMarkAndItsZeros) {
    EXPECT_EQ(stripped({0x84, 0x86, 0x01}), (Buffer{0x84, 0x86}));
    EXPECT_EQ(stripped({0x84, 0x86, 0x01, 0, 0, 0}), (Buffer{0x84, 0x86}));
    EXPECT_EQ(stripped({0x01, 0, 0, 0}), Buffer{});
}

TEST(Bypass, OnlyTheLastMarkIsPadding) {
    EXPECT_EQ(stripped({0x84, 0x01, 0, 0, 0x01, 0, 0, 0}), (Buffer{0x84, 0x01, 0, 0}));
    EXPECT_EQ(stripped({0x84, 0x00, 0x01, 0}), (Buffer{0x84, 0x00}));
}

TEST(Bypass, WithoutAMarkEverythingIsTrace) {
    EXPECT_EQ(stripped({}), Buffer{});
    EXPECT_EQ(stripped({0, 0, 0, 0}), (Buffer{0, 0, 0, 0}));
    EXPECT_EQ(stripped({0x84, 0, 0}), (Buffer{0x84, 0, 0}));
    EXPECT_EQ(stripped({0x01, 0x80}), (Buffer{0x01, 0x80}));
}

TEST(Bypass, MoreZerosThanTheWidthAllowsAreNoPadding) {
    Buffer capture{0x84, 0x01};
    capture.resize(2 + 15);
    EXPECT_EQ(stripped(capture), Buffer{0x84});
    capture.push_back(0);
    EXPECT_EQ(stripped(capture), capture);
    EXPECT_EQ(stripped({0x84, 0x01, 0, 0, 0}, 4), Buffer{0x84});
    EXPECT_EQ(stripped({0x84, 0x01, 0, 0, 0, 0}, 4), (Buffer{0x84, 0x01, 0, 0, 0, 0}));
}

TEST(Bypass, RoundTrip) {
    std::mt19937 random(1);
    for (unsigned round = 0; round < 2000; ++round) {
        Buffer trace(random() % 40);
        for (auto& byte : trace)
            byte = random() % 2 == 0 ? static_cast<std::uint8_t>(random() % 2) : static_cast<std::uint8_t>(random());
        const unsigned width = 1U << random() % 5;
        auto capture = trace;
        append_bypass_padding(capture, width);
        ASSERT_EQ(capture.size() % width, 0U);
        ASSERT_EQ(stripped(capture, width), trace);
        ASSERT_EQ(stripped(capture), trace);
    }
}

}  // namespace
}  // namespace waymark::coresight
