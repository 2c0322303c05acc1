#include "waymark/capture/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../../src/capture/text.h"
#include "support/temporary_folder.h"

namespace waymark::capture {
namespace {

TEST(Text, OnePairOfQuotesIsRemoved) {
    EXPECT_EQ(text::unquote("\"a b\""), "a b");
    EXPECT_EQ(text::unquote("' a '"), "a");
    EXPECT_EQ(text::unquote("\"\""), "");
    EXPECT_EQ(text::unquote("\"'a'\""), "'a'");
    for (const char* const as_it_is : {"", "\"", "'", "a", "\"a", "a\"", "\"a'"})
        EXPECT_EQ(text::unquote(as_it_is), as_it_is);
}

TEST(Text, SeparatorsInParenthesesSeparateNothing) {
    using Parts = std::vector<std::string_view>;
    EXPECT_EQ(text::split("a, b(c,d) ,e", ','), (Parts{"a", "b(c,d)", "e"}));
    EXPECT_EQ(text::split("f((a,b),c),d", ','), (Parts{"f((a,b),c)", "d"}));
    EXPECT_EQ(text::split(",", ','), (Parts{"", ""}));
}

TEST(TextFile, IsReadWhole) {
    TemporaryFolder folder;
    const std::string text(200'000, 'x');
    const auto path = folder.write("a.txt", text);
    ASSERT_TRUE(read_text_file(path, text.size()).has_value());
    EXPECT_EQ(*read_text_file(path, text.size()), text);
    EXPECT_EQ(*read_text_file(folder.write("empty", ""), 10), "");
    const auto more = read_text_file(path, text.size() - 1);
    ASSERT_FALSE(more.has_value());
    EXPECT_EQ(more.error().code, Errc::unsupported);
}

TEST(TextFile, WhatIsNoFileIsRefused) {
    TemporaryFolder folder;
    for (const std::filesystem::path& path :
         {folder.path(), std::filesystem::path("/dev/zero"), folder.path() / "absent"}) {
        const auto read = read_text_file(path, 10);
        ASSERT_FALSE(read.has_value()) << path;
        EXPECT_EQ(read.error().code, Errc::unreadable) << path;
    }
}

TEST(TextFile, APipeIsReadToItsEnd) {
    TemporaryFolder folder;
    const auto pipe = folder.path() / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    // Nobody writes: no waiting.
    ASSERT_FALSE(read_text_file(pipe, 10).has_value());
    // In pieces, with pauses. A second reader, which reads nothing, lets the writer begin first.
    const int second = ::open(pipe.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ASSERT_GE(second, 0);
    const int to = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_GE(to, 0);
    std::thread writer([&] {
        for (int i = 0; i < 5; ++i) {
            ::usleep(20'000);
            EXPECT_EQ(::write(to, "some ", 5), 5);
        }
        ::close(to);
    });
    const auto read = read_text_file(pipe, 1000);
    writer.join();
    ::close(second);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(*read, "some some some some some ");
}

}  // namespace
}  // namespace waymark::capture
