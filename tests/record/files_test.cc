/// The folder of a recording: which files are a recording's, how they wait while the next one is made, and the lock.
#include "waymark/record/files.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "record/run_parts.h"
#include "support/temporary_folder.h"

namespace waymark::record {
namespace {

class RecordingFolders : public testing::Test {
protected:
    void write(const std::vector<const char*>& names, std::string_view text = "x") {
        for (const char* name : names) folder_.write(name, text);
    }
    /// All files and folders, by name, with their contents.
    [[nodiscard]] std::string there() const {
        std::vector<std::string> out;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
            if (!entry.is_directory())
                out.push_back(std::filesystem::relative(entry.path(), folder_.path()).string() + "=" +
                              support::contents(entry.path()));
        std::sort(out.begin(), out.end());
        return fmt::format("{}", fmt::join(out, " "));
    }
    [[nodiscard]] Result<bool> aside() const { return set_recordings_aside(folder_.path()); }
    std::string lock(bool holds, bool force) {
        auto lock = lock_folder(
            folder_.path(), [&] { return holds; }, "a recording", force);
        return lock ? "locked" : lock.error().message;
    }
    TemporaryFolder folder_;
};

TEST_F(RecordingFolders, FilesOfARecording) {
    const std::vector<const char*> own{"truth.txt",     "snapshot.ini", "trace.ini",        "memory.ini", "core_0.ini",
                                       "source_12.ini", "sink_0.ini",   "link_0.ini",       "trace.bin",  "code.bin",
                                       "trace_2.bin",   "code_1.bin",   "truth_P.bin",      "perf.map",   "jit.dump",
                                       "maps.txt",      "before.txt",   "not_permitted.txt"},
        others{"trace_2.txt", "core.ini", "xcore_0.ini", "trace.bin.old", "mycode.bin", "snapshot.txt", "sources.ini"};
    write(own);
    write(others, "mine");
    const auto moved = aside();
    ASSERT_TRUE(moved);
    EXPECT_TRUE(*moved);
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
        if (!entry.is_directory()) left.push_back(entry.path().filename().string());
    std::sort(left.begin(), left.end());
    EXPECT_EQ(left, (std::vector<std::string>{"core.ini", "mycode.bin", "snapshot.txt", "sources.ini", "trace.bin.old",
                                              "trace_2.txt", "xcore_0.ini"}));
    write({"truth.txt", "trace.bin"}, "new");
    take_recordings_back(folder_.path());
    for (const char* name : own) EXPECT_EQ(support::contents(folder_.path() / name), "x") << name;
    for (const char* name : others) EXPECT_EQ(support::contents(folder_.path() / name), "mine") << name;
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / ".before"));
    EXPECT_FALSE(std::filesystem::exists(folder_.path() / ".moving"));
}

TEST_F(RecordingFolders, FilesOfADpu) {
    write({"dpu.ini", "vtb.bin", "nexus.bin", "image0.elf", "image1.elf", "image3.elf", "other.elf"});
    ASSERT_TRUE(*aside());
    EXPECT_EQ(there(),
              ".before/dpu.ini=x .before/image0.elf=x .before/image1.elf=x .before/nexus.bin=x .before/vtb.bin=x "
              "image3.elf=x other.elf=x");
    forget_recordings_aside(folder_.path());
    EXPECT_EQ(there(), "image3.elf=x other.elf=x");
}

TEST_F(RecordingFolders, WithoutATruthNothingIsARecording) {
    write({"snapshot.ini", "trace.bin"});
    EXPECT_FALSE(*aside());
    EXPECT_EQ(there(), "snapshot.ini=x trace.bin=x");
    std::filesystem::create_directory(folder_.path() / ".before");
    write({".before/truth.txt"});
    EXPECT_FALSE(*aside()) << "what was aside before is outdated";
    EXPECT_EQ(there(), "snapshot.ini=x trace.bin=x");
}

TEST_F(RecordingFolders, WhatCannotBeMovedStays) {
    write({"truth.txt", "trace.bin", ".moving"});
    const auto moved = aside();
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().message,
              fmt::format("cannot create {}: File exists", (folder_.path() / ".moving").string()));
    EXPECT_EQ(there(), ".moving=x trace.bin=x truth.txt=x");
}

TEST_F(RecordingFolders, AKilledRecordingWithTraceStays) {
    std::filesystem::create_directory(folder_.path() / ".before");
    write({".before/truth.txt", ".before/trace.bin"}, "old");
    write({"truth.txt", "snapshot.ini", "trace.bin"}, "new");
    EXPECT_EQ(lock(true, false), "locked");
    EXPECT_EQ(there(), "snapshot.ini=new trace.bin=new truth.txt=new");
}

TEST_F(RecordingFolders, AKilledRecordingWithoutTraceGivesWay) {
    for (int part = 0; part < 4; ++part) {
        std::filesystem::create_directory(folder_.path() / ".before");
        write({".before/truth.txt", ".before/trace.bin"}, "old");
        if (part != 0) write({"truth.txt"}, "new");
        if (part != 1) write({"snapshot.ini"}, "new");
        write({"trace.bin"}, part == 2 ? "" : "new");
        if (part == 3) std::filesystem::rename(folder_.path() / "trace.bin", folder_.path() / "trace.txt");
        EXPECT_EQ(lock(true, false), "locked");
        EXPECT_EQ(there(), std::string("trace.bin=old ") + (part == 3 ? "trace.txt=new " : "") + "truth.txt=old")
            << part;
        std::filesystem::remove(folder_.path() / "trace.txt");
    }
}

TEST_F(RecordingFolders, AKilledMoveIsCompleted) {
    std::filesystem::create_directory(folder_.path() / ".moving");
    write({".moving/truth.txt", ".moving/trace.bin"}, "old");
    EXPECT_EQ(lock(true, false), "locked");
    EXPECT_EQ(there(), "trace.bin=old truth.txt=old");
}

TEST_F(RecordingFolders, ADpuThatWasKilledStaysIfItHasTrace) {
    for (const char* name : {"vtb.bin", "nexus.bin"}) {
        std::filesystem::create_directory(folder_.path() / ".before");
        write({".before/truth.txt"}, "old");
        write({"dpu.ini", name}, "new");
        EXPECT_EQ(lock(true, false), "locked");
        EXPECT_EQ(there(), std::string("dpu.ini=new ") + name + "=new");
        std::filesystem::remove(folder_.path() / name);
    }
}

TEST_F(RecordingFolders, OtherFoldersAreRefused) {
    EXPECT_EQ(lock(false, false), "locked") << "it is empty";
    write({"letter"});
    EXPECT_EQ(
        lock(false, false),
        fmt::format("{} exists and is not a recording; give a folder that is new or empty, or one that this command "
                    "made before. With --force a recording of another unit in it is replaced, and other files stay",
                    folder_.path().string()));
    EXPECT_EQ(lock(true, false), "locked");
    EXPECT_EQ(lock(false, true), "locked");
    const auto file = folder_.path() / "letter";
    const auto refused = lock_folder(
        file, [] { return true; }, "a recording", true);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message, file.string() + " is not a folder; name one that is new or empty");
    EXPECT_TRUE(lock_folder(
        folder_.path() / "new", [] { return false; }, "a recording", false));
    EXPECT_TRUE(std::filesystem::is_directory(folder_.path() / "new"));
}

TEST_F(RecordingFolders, OneRecordingAtATime) {
    const auto first = lock_folder(
        folder_.path(), [] { return true; }, "a recording", false);
    ASSERT_TRUE(first);
    EXPECT_EQ(lock(true, true),
              folder_.path().string() +
                  ": another 'waymark record' is writing there; wait until it has ended, or name another place");
}

TEST(FileErrors, NameTheReason) {
    errno = ENOSPC;
    const Error error = cannot("write", "out/file");
    EXPECT_EQ(error.message, "cannot write out/file: No space left on device");
    EXPECT_EQ(error.code, Errc::unreadable);
}

TEST(FileErrors, WrittenAsFarAsPossible) {
    const TemporaryFolder folder;
    const std::vector<std::uint8_t> bytes(100'000, 7);
    const int file = open((folder.path() / "f").c_str(), O_CREAT | O_WRONLY, 0666);
    EXPECT_EQ(write_some(file, bytes), bytes.size());
    EXPECT_EQ(write_some(file, {}), 0U);
    close(file);
    EXPECT_EQ(std::filesystem::file_size(folder.path() / "f"), bytes.size());
    const int full = open("/dev/full", O_WRONLY);
    EXPECT_EQ(write_some(full, bytes), 0U);
    close(full);
}

TEST(IniTexts, HaveNothingThatAnIniFileReads) {
    EXPECT_EQ(ini_text("a;b#c'd\"e\nf\tg"), "a b c d e f g");
    EXPECT_EQ(ini_text("  a b  "), "a b");
    EXPECT_EQ(ini_text(";#\n"), "");
    EXPECT_EQ(ini_text(""), "");
    EXPECT_EQ(ini_text("caf\xc3\xa9 !~"), "caf\xc3\xa9 !~");
}

}  // namespace
}  // namespace waymark::record
