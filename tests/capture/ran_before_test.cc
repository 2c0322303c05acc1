#include "waymark/capture/ran_before.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"

namespace waymark::capture {
namespace {

RanBefore some_code() {
    return {{16, 0xe758d7fe},
            98'213,
            {{{0x8000}, 12}, {{0x9000}, 2}, {{0xffff'ffff'ffff'0000}, 0x1000}},
            {{{0x8008}, false}, {{0x9000}, true}}};
}

TEST(RanBefore, ReadsBackWhatWasWritten) {
    std::vector<Problem> problems;
    EXPECT_EQ(read_ran_before(to_text(some_code()), "before.txt", problems), some_code());
    const RanBefore nothing{.trace = {RanBefore::Trace::most_bytes, 0xffffffff}};
    EXPECT_EQ(read_ran_before(to_text(nothing), "before.txt", problems), nothing);
    EXPECT_TRUE(problems.empty());
}

TEST(RanBefore, KnowsWhichCode) {
    const RanBefore ran = some_code();
    for (const std::uint64_t at : {0x8000, 0x800b, 0x9001}) EXPECT_TRUE(ran.holds({at})) << at;
    for (const std::uint64_t at : {0x0, 0x7fff, 0x800c, 0x8fff, 0x9002}) EXPECT_FALSE(ran.holds({at})) << at;
    EXPECT_TRUE(ran.holds({0xffff'ffff'ffff'0fff}));
    EXPECT_FALSE(ran.holds({0xffff'ffff'ffff'1000}));
    ASSERT_NE(ran.passed({0x9000}), nullptr);
    EXPECT_TRUE(ran.passed({0x9000})->taken);
    EXPECT_FALSE(ran.passed({0x8008})->taken);
    EXPECT_EQ(ran.passed({0x8004}), nullptr);
}

TEST(RanBefore, ASnapshotHoldsIt) {
    TemporaryFolder folder;
    Capture capture;
    capture.cores.push_back({.name = "core", .type = "Cortex-A9"});
    capture.buffers.push_back({"ETB", Buffer::Format::coresight, "coresight", {folder.path() / "trace.bin"}, {}});
    std::ofstream(folder.path() / "trace.bin") << "sixteen bytes...";
    const auto read = [&](std::string begins, const std::string& text) {
        capture.buffers[0].begins = std::move(begins);
        EXPECT_TRUE(write_snapshot(capture, folder.path()));
        std::ofstream(folder.path() / ran_before_file) << text;
        return read_snapshot(folder.path());
    };
    const std::string begins = "where execution first reached main (--start-at)";
    const auto back = read(begins, to_text(some_code()));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(ran_before(*back), some_code());
    const auto wrong_in_it = [&](const Capture& c) {
        return std::count_if(c.problems.begin(), c.problems.end(),
                             [&](const Problem& p) { return p.file == folder.path() / ran_before_file; });
    };
    EXPECT_EQ(wrong_in_it(*back), 0);
    // A recorder that was killed wrote more trace after the file.
    std::ofstream(folder.path() / "trace.bin", std::ios::app) << "and one more byte";
    const auto killed = read(begins, to_text(some_code()));
    EXPECT_EQ(ran_before(*killed), some_code());
    EXPECT_EQ(wrong_in_it(*killed), 0);
    // A capture that begins where the run does has nothing before.
    EXPECT_EQ(ran_before(*read("", to_text(some_code()))), std::nullopt);
    // Other bytes, or another number of bytes, belong to another recording.
    RanBefore other = some_code();
    for (const RanBefore::Trace& trace : {RanBefore::Trace{16, 1}, {15, other.trace.sum}}) {
        other.trace = trace;
        const auto of_another = read(begins, to_text(other));
        EXPECT_EQ(ran_before(*of_another), std::nullopt);
        EXPECT_EQ(wrong_in_it(*of_another), 1);
    }
    const auto damaged = read(begins, "waymark-before 2\n");
    EXPECT_EQ(ran_before(*damaged), std::nullopt);
    EXPECT_EQ(wrong_in_it(*damaged), 1);
    // A file that exists and cannot be read is not a missing file.
    for (const bool is_folder : {true, false}) {
        std::filesystem::remove(folder.path() / ran_before_file);
        if (is_folder)
            std::filesystem::create_directory(folder.path() / ran_before_file);
        else
            ASSERT_EQ(::mkfifo((folder.path() / ran_before_file).c_str(), 0600), 0);
        const auto odd = read_snapshot(folder.path());
        EXPECT_EQ(wrong_in_it(*odd), 1) << is_folder;
        EXPECT_EQ(ran_before(*odd), std::nullopt);
    }
}

// Without one line, executed code would be called not executed.
TEST(RanBefore, WithOneWrongLineNothingIsKnown) {
    const std::string head = "waymark-before 2\ntrace 4 0x1\ninstructions 7\n", tail = "end\n";
    for (const std::string& text : {std::string(),
                                    std::string("# nothing\n"),
                                    std::string("waymark-before 3\ntrace 4 0x1\ninstructions 7\ncode 1 4\nend\n"),
                                    std::string("waymark-before 2\nend\n"),
                                    std::string("waymark-before 2\ninstructions 7\ncode 1 4\nend\n"),
                                    std::string("waymark-before 2\ntrace 4 0x1\ncode 1 4\nend\n"),
                                    head,
                                    head + "trace 4 0x1\ncode 0x10 4\n" + tail,
                                    head + "instructions 8\n" + tail,
                                    head + "code 0x10\n" + tail,
                                    head + "code 0x10 0\n" + tail,
                                    head + "code 0x10 4 4\n" + tail,
                                    head + "code 0x10 x\n" + tail,
                                    head + "code 0xfffffffffffffff0 0x20\n" + tail,
                                    head + "code 0x10 4\ncode 0x14 4\n" + tail,
                                    head + "code 0x10 4\ncode 0x8 4\n" + tail,
                                    head + "branch 0x10 taken\n" + tail,
                                    head + "branch 0x10 both\nbranch 0x10 both\n" + tail,
                                    head + "path 0x10\n" + tail,
                                    head + tail + "code 1 1\n"}) {
        std::vector<Problem> problems;
        EXPECT_EQ(read_ran_before(text, "before.txt", problems), std::nullopt) << text;
        ASSERT_EQ(problems.size(), 1U) << text;
        EXPECT_NE(problems[0].message.find("The code that ran before the recording began is not known"),
                  std::string::npos);
    }
    std::vector<Problem> problems;
    EXPECT_EQ(read_ran_before(head + "\n# of another kind\npath 0x10\n" + tail, "before.txt", problems), std::nullopt);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_EQ(problems[0].line, 6U);
    problems.clear();
    EXPECT_EQ(read_ran_before("waymark-before 1\ninstructions 7\ncode 1 4\nend\n", "before.txt", problems),
              std::nullopt);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_NE(problems[0].message.find("version 1"), std::string::npos);
    EXPECT_EQ(problems[0].message.find("copy the file"), std::string::npos);
    problems.clear();
    EXPECT_TRUE(read_ran_before(head + "# a comment\r\ncode 0x10 4\r\n" + tail, "before.txt", problems));
    EXPECT_TRUE(problems.empty());
}

}  // namespace
}  // namespace waymark::capture
