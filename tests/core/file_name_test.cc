#include "waymark/core/file_name.h"

#include <gtest/gtest.h>

namespace waymark {
namespace {

TEST(FileName, IsOneOfAFolder) {
    using namespace std::string_literals;
    EXPECT_EQ(file_name("libc.so.6"), "libc.so.6");
    EXPECT_EQ(file_name(""), "_");
    EXPECT_EQ(file_name("."), "_");
    EXPECT_EQ(file_name(".."), "_.");
    EXPECT_EQ(file_name("-rf"), "_rf");
    EXPECT_EQ(file_name("../../etc/passwd"), "_._.._etc_passwd");
    EXPECT_EQ(file_name("a\0b\n\x1b[31m\xff"s), "a_b__[31m_");
    EXPECT_EQ(file_name("\xc3\xa4"), "\xc3\xa4");
}

TEST(FileName, ALongNameIsCutAndStaysItsOwn) {
    const std::string a(5000, 'a'), b = a + "b";
    EXPECT_EQ(file_name(a).size(), 200U);
    EXPECT_NE(file_name(a), file_name(b));
    EXPECT_EQ(file_name(std::string(200, 'a')), std::string(200, 'a'));
    std::string wide;
    for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";
    EXPECT_LE(file_name(wide).size(), 200U);
    EXPECT_EQ(utf8(file_name(wide)), file_name(wide));
}

}  // namespace
}  // namespace waymark
