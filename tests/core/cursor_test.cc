#include "waymark/core/cursor.h"

#include <gtest/gtest.h>

#include <array>

namespace waymark {
namespace {

TEST(Cursor, ReadsForward) {
    const std::array<std::uint8_t, 6> bytes{1, 0x78, 0x56, 0x34, 0x12, 9};
    Cursor c(bytes);
    EXPECT_EQ(c.u8(), 1);
    EXPECT_EQ(c.le(4), 0x12345678U);
    EXPECT_EQ(c.consumed(), 5U);
    EXPECT_EQ(c.u8(), 9);
    EXPECT_TRUE(c.at_end());
    EXPECT_EQ(c.step(), Step::ok);
}

TEST(Cursor, TheFirstFailureSticks) {
    const std::array<std::uint8_t, 2> bytes{1, 2};
    Cursor c(bytes);
    EXPECT_EQ(c.le(4), 0U);
    EXPECT_EQ(c.step(), Step::need_more);
    EXPECT_EQ(c.u8(), 0);
    EXPECT_EQ(c.consumed(), 0U);
    c.bad();
    EXPECT_EQ(c.step(), Step::need_more);

    Cursor d(bytes);
    EXPECT_EQ(d.u8(), 1);
    d.bad();
    EXPECT_EQ(d.u8(), 0);
    EXPECT_EQ(d.le(0), 0U);
    EXPECT_EQ(d.step(), Step::bad);
    EXPECT_EQ(d.consumed(), 1U);
}

TEST(Cursor, EightBytes) {
    const std::array<std::uint8_t, 8> bytes{1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_EQ(Cursor(bytes).le(8), 0x0807060504030201U);
}

}  // namespace
}  // namespace waymark
