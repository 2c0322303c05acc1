/// Files and folders that are moved into place: either the old one or the new one is there, complete, and nothing else.
#include "waymark/capture/placed_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> out;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder))
        out.push_back(entry.path().filename().string());
    std::sort(out.begin(), out.end());
    return out;
}

std::size_t open_files() {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

/// Writes a file into place; gives the value of commit().
int placed(const fs::path& path, const std::string& text, bool synced = false) {
    auto file = PlacedFile::open(path.string(), {}, {.synced = synced});
    if (!file) {
        ADD_FAILURE() << file.error().message;
        return -1;
    }
    EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), (*file)->file()), text.size());
    return (*file)->commit(0);
}

TEST(PlacedFile, ReplacesTheFileAtTheEnd) {
    const TemporaryFolder folder;
    const fs::path place = folder.write("out", "old");
    fs::permissions(place, fs::perms(0640));
    {
        auto file = PlacedFile::open(place.string(), {});
        ASSERT_TRUE(file) << file.error().message;
        std::fputs("new", (*file)->file());
        std::fflush((*file)->file());
        EXPECT_EQ(contents(place), "old");
        EXPECT_EQ((*file)->commit(0), 0);
        EXPECT_EQ(contents(place), "new");
    }
    EXPECT_EQ(fs::status(place).permissions(), fs::perms(0640));
    for (const bool synced : {false, true}) {
        EXPECT_EQ(placed(folder.path() / "other", "first", synced), 0);
        EXPECT_EQ(contents(folder.path() / "other"), "first");
    }
    EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"other", "out"}));
}

TEST(PlacedFile, WithoutCommitNothingChanges) {
    const TemporaryFolder folder;
    const fs::path place = folder.write("out", "old");
    const std::size_t before = open_files();
    for (const bool there : {true, false}) {
        auto file = PlacedFile::open((there ? place : folder.path() / "none").string(), {});
        ASSERT_TRUE(file) << file.error().message;
        std::fputs("new", (*file)->file());
    }
    EXPECT_EQ(open_files(), before);
    {
        // An error of the writer.
        auto file = PlacedFile::open(place.string(), {});
        ASSERT_TRUE(file);
        EXPECT_EQ((*file)->commit(ENOSPC), ENOSPC);
    }
    EXPECT_EQ(open_files(), before);
    EXPECT_EQ(contents(place), "old");
    EXPECT_EQ(names(folder.path()), std::vector<std::string>{"out"});
}

TEST(PlacedFile, ALinkKeepsItsPlace) {
    const TemporaryFolder folder;
    folder.write("target", "old");
    fs::create_symlink("target", folder.path() / "link");
    EXPECT_EQ(placed(folder.path() / "link", "new"), 0);
    EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
    EXPECT_EQ(contents(folder.path() / "target"), "new");
}

TEST(PlacedFile, RefusesInputsAndWhatIsNoFile) {
    const TemporaryFolder folder;
    const std::string input = folder.write("capture/trace.bin", "x").string();
    const std::string ini = folder.write("capture/snapshot.ini", "x").string();
    folder.write("capture/report.html", "x");
    fs::create_symlink(input, folder.path() / "link");
    const auto code = [&](const std::string& path, const std::vector<std::string>& inputs) {
        auto file = PlacedFile::open(path, inputs);
        return file ? std::nullopt : std::optional(file.error().code);
    };
    const std::string capture = (folder.path() / "capture").string(), other = (folder.path() / "other").string();
    for (const std::vector<std::string>& inputs :
         {std::vector<std::string>{capture}, std::vector<std::string>{ini}, std::vector<std::string>{other, input}}) {
        EXPECT_EQ(code(input, inputs), Errc::usage);
        EXPECT_EQ(code((folder.path() / "link").string(), inputs), Errc::usage);
    }
    EXPECT_EQ(code(ini, {capture}), Errc::usage);
    // Another file in the folder, such as an earlier report.
    EXPECT_EQ(code(capture + "/report.html", {capture}), std::nullopt);
    EXPECT_EQ(code(other, {capture}), std::nullopt);
    EXPECT_EQ(code(capture, {}), Errc::unreadable);
    EXPECT_EQ(code(other + "/none", {}), Errc::unreadable);
    EXPECT_EQ(code(std::string("a\0b", 3), {}), Errc::unreadable);
}

TEST(TemporaryName, RemovesWhatKilledProcessesLeft) {
    const TemporaryFolder folder;
    const fs::path place = folder.path() / "out";
    // No process has this number; process 1 exists.
    for (const char* name : {"out.999999999-0.part", "out.999999999-17.part", "out.1-0.part", "out.999999999.part",
                             "out.-1.part", "out.999999999-.part", "out.9999999990-0.part", "out.x9-0.part",
                             "out.99-9-9.part", "out.999999999-0", "other.999999999-0.part"})
        folder.write(name, "x");
    folder.write("out.999999999-1.part/file", "x");
    folder.write("out.999999999-2.part/folder/file", "x");
    const TemporaryName name(place);
    EXPECT_EQ(name.path().string(), place.string() + "." + std::to_string(::getpid()) + "-0.part");
    EXPECT_EQ(names(folder.path()),
              (std::vector<std::string>{"other.999999999-0.part", "out.-1.part", "out.1-0.part", "out.99-9-9.part",
                                        "out.999999999-.part", "out.999999999-0", "out.999999999-2.part",
                                        "out.999999999.part", "out.9999999990-0.part", "out.x9-0.part"}));
    folder.write(name.path().filename().string(), "x");
    const TemporaryName second(place, TemporaryName::Leftovers::leave);
    EXPECT_EQ(second.path().string(), place.string() + "." + std::to_string(::getpid()) + "-1.part");
}

TEST(PlacedFolder, IsMovedWhole) {
    const TemporaryFolder folder;
    const std::string place = (folder.path() / "job").string();
    const auto made = [&](const std::string& text) {
        auto out = PlacedFolder::open(place + "/");
        EXPECT_TRUE(out) << out.error().message;
        std::ofstream((*out)->folder() / "file") << text;
        std::ofstream((*out)->folder() / "last") << text;
        return std::move(*out);
    };
    {
        // Without commit nothing is left.
        const auto out = made("none");
        EXPECT_EQ(out->as_placed({Errc::unreadable, "no " + out->folder().string() + "/x"}).message,
                  "no " + place + "//x");
    }
    EXPECT_TRUE(names(folder.path()).empty());
    EXPECT_TRUE(made("one")->commit_new());
    EXPECT_EQ(contents(folder.path() / "job/file"), "one");
    const Status refused = made("two")->commit_new();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::usage);
    EXPECT_EQ(contents(folder.path() / "job/file"), "one");
    // Files that the caller knows from an earlier run go; other files stay.
    folder.write("job/earlier", "x");
    EXPECT_TRUE(made("three")->commit("last", [](const fs::path&) { return true; }));
    EXPECT_EQ(names(folder.path() / "job"), (std::vector<std::string>{"file", "last"}));
    EXPECT_EQ(contents(folder.path() / "job/last"), "three");
    folder.write("job/of others", "x");
    folder.write("job/earlier", "x");
    EXPECT_TRUE(made("four")->commit("last", [](const fs::path& name) { return name != "of others"; }));
    EXPECT_EQ(names(folder.path() / "job"), (std::vector<std::string>{"file", "last", "of others"}));
    EXPECT_EQ(contents(folder.path() / "job/file"), "four");
    EXPECT_EQ(contents(folder.path() / "job/last"), "four");
    EXPECT_EQ(names(folder.path()), std::vector<std::string>{"job"});
    folder.write("file", "x");
    const auto file = PlacedFolder::open((folder.path() / "file").string());
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, Errc::usage);
}

}  // namespace
}  // namespace waymark::capture
