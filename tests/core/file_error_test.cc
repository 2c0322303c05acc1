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
    EXPECT_EQ(said(file + "/a/out", ENOTDIR), "cannot create " + file + "/a/out: " + file + " is no folder");
    EXPECT_EQ(said(file, ENOTDIR), "cannot create " + file + ": " + file + " is no folder");
    EXPECT_EQ(said(place, EISDIR), "cannot create " + place + ": it is a folder; name a file");
}

TEST(CannotCreate, OtherwiseTheSystemSaysIt) {
    EXPECT_EQ(cannot_create("out", ENOENT).message, "cannot create out: No such file or directory");
    EXPECT_EQ(cannot_create("/proc/out", EACCES).message, "cannot create /proc/out: Permission denied");
    EXPECT_EQ(cannot_create("nowhere/out", EISDIR).message, "cannot create nowhere/out: Is a directory");
    EXPECT_EQ(cannot_create("out", EACCES).code, Errc::unreadable);
}

}  // namespace
}  // namespace waymark
