#include "waymark/core/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace waymark {
namespace {

TEST(Utf8, WhatIsUtf8StaysAndTheRestIsReplaced) {
    EXPECT_EQ(utf8(""), "");
    EXPECT_EQ(utf8("plain \t text"), "plain \t text");
    for (const char* text : {"\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
        EXPECT_EQ(utf8(text), text);
    const std::string r(replacement_character);
    EXPECT_EQ(utf8("a\xff"
                   "b"),
              "a" + r + "b");
    EXPECT_EQ(utf8("\xc3"), r);          // cut
    EXPECT_EQ(utf8("\xe2\x82"), r + r);  // cut: each byte by itself
    EXPECT_EQ(utf8("\xc0\x80"), r + r);  // longer than need be
    EXPECT_EQ(utf8("\xe0\x9f\xbf"), r + r + r);
    EXPECT_EQ(utf8("\xed\xa0\x80"), r + r + r);          // a surrogate
    EXPECT_EQ(utf8("\xf4\x90\x80\x80"), r + r + r + r);  // beyond U+10FFFF
    EXPECT_EQ(utf8("\x80x"), r + "x");
}

TEST(Utf8, OneLineHasNoControlCharacters) {
    const std::string r(replacement_character);
    EXPECT_EQ(one_line("a\tb\nc\rd"), "a\\tb\\nc\\rd");
    EXPECT_EQ(one_line("a\x1b[1m\x7f\xff\xc2\x9b"
                       "b"),
              "a" + r + "[1m" + r + r + r + "b");
    EXPECT_EQ(one_line("\xc3\xa4 \\t"), "\xc3\xa4 \\t");
}

}  // namespace
}  // namespace waymark
