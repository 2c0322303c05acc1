#include "waymark/core/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

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

TEST(Utf8, MarksOfDirectionAreNoText) {
    const std::string r(replacement_character);
    for (const char* mark :
         {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069"}) {
        const std::string name = std::string("a") + mark + "b\t";
        EXPECT_EQ(one_line(name), "a" + r + "b\\t");
        EXPECT_EQ(without_direction_marks(name), "a" + r + "b\t");
    }
    // Their neighbours, and letters that are written from right to left.
    for (const char* text :
         {"\u061b", "\u061d", "\u200d", "\u2010", "\u2027", "\u202f", "\u2065", "\u206a", "\u05d0", "\u0080x"}) {
        EXPECT_EQ(without_direction_marks(text), text);
        EXPECT_EQ(one_line(text) == text, !std::string_view(text).ends_with('x')) << text;
    }
    EXPECT_EQ(without_direction_marks("\xe2\x80"), "\xe2\x80");
}

}  // namespace
}  // namespace waymark
