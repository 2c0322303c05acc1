#include "waymark/core/file_error.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace waymark {
namespace {

TEST(CannotCreate, SaysWhatStandsInTheWay) {
    const TemporaryFolder folder;
    const std::string file = folder.write("file", "x").string(), place = folder.path().string();
    const auto said = [](const std::string& path, int error) { return cannot_create(path, error).message; };
    EXPECT_EQ(said(place + "/a/b/out", ENOENT),
              "cannot create " + place + "/a/b/out: there is no folder " + place + "/a/b; make it first");
    EXPECT_EQ(said(file + "/a/out", ENOTDIR), "cannot create " + file + "/a/out: " + file + " is not a folder");
    EXPECT_EQ(said(file, ENOTDIR), "cannot create " + file + ": " + file + " is not a folder");
    EXPECT_EQ(said(place, EISDIR), "cannot create " + place + ": it is a folder; name a file");
}

TEST(MakeFolder, MakesOneFolderAndNoneAroundIt) {
    const TemporaryFolder folder;
    const std::string place = folder.path().string();
    EXPECT_TRUE(make_folder(place + "/new").has_value());
    EXPECT_TRUE(make_folder(place + "/new/").has_value()) << "it is there";
    EXPECT_TRUE(make_folder(place + "/other/").has_value());
    EXPECT_TRUE(std::filesystem::is_directory(place + "/other"));
    const auto missing = make_folder(place + "/a/b/");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().message,
              "cannot create " + place + "/a/b: there is no folder " + place + "/a; make it first");
    EXPECT_FALSE(std::filesystem::exists(place + "/a"));
    const auto file = make_folder(folder.write("file", "x").string());
    EXPECT_FALSE(file.has_value());
}

TEST(CannotCreate, OtherwiseTheSystemSaysIt) {
    EXPECT_EQ(cannot_create("out", ENOENT).message, "cannot create out: No such file or directory");
    EXPECT_EQ(cannot_create("/proc/out", EACCES).message, "cannot create /proc/out: Permission denied");
    EXPECT_EQ(cannot_create("nowhere/out", EISDIR).message, "cannot create nowhere/out: Is a directory");
    EXPECT_EQ(cannot_create("out", EACCES).code, Errc::unreadable);
}

}  // namespace
}  // namespace waymark
