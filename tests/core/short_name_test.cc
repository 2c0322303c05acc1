#include "waymark/core/short_name.h"

#include <gtest/gtest.h>

namespace waymark {
namespace {

TEST(ShortName, WhatFitsStaysAsItIs) {
    EXPECT_EQ(shortened("", 10), "");
    EXPECT_EQ(shortened("sort(int*)", 10), "sort(int*)");
    EXPECT_EQ(shortened("ééééé", 5), "ééééé");
}
TEST(ShortName, ArgumentsGoFirst) {
    EXPECT_EQ(shortened("std::sort<int*, std::less<int> >(int*, int*)", 20), "std::sort<…>(…)");
    EXPECT_EQ(shortened("std::map<int, int>::find(int const&)+0x10  ldr r0, [r1]", 44),
              "std::map<…>::find(…)+0x10  ldr r0, [r1]");
    // What follows a space is no argument.
    EXPECT_EQ(shortened("reader (thread 1) of (a) queue(int)", 34), "reader (thread 1) of (a) queue(…)");
}
TEST(ShortName, ThenTheMiddle) {
    EXPECT_EQ(shortened("abcdefghij", 9), "abcd…ghij");
    EXPECT_EQ(shortened("abcdefghij", 4), "ab…j");
    EXPECT_EQ(shortened("ééééééé", 5), "éé…éé");
}
TEST(ShortName, BracketsThatAreNoArguments) {
    EXPECT_EQ(shortened("operator<(int, int)", 9), "oper…int)");
    EXPECT_EQ(shortened("(no symbol) in libc.so", 11), "(no s…bc.so");
    EXPECT_EQ(shortened("left<open, and more", 9), "left…more");
}

}  // namespace
}  // namespace waymark
