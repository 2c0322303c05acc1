// Which source files, named by debug information, a report includes.
#include "waymark/analysis/source_text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace waymark::analysis {
namespace {

namespace fs = std::filesystem;

class SourceTexts : public testing::Test {
protected:
    /// The reason why the file is refused; empty: it was read, or does not exist.
    std::string refused(const fs::path& file, std::vector<fs::path> roots = {}) {
        answers::Answers a;
        a.sources.push_back({file.string(), {}});
        const ReadSources read = read_sources(a, {std::move(roots), {}});
        lines_ = a.sources[0].lines;
        findings_.clear();
        for (const answers::Finding& f : a.health) findings_ += f.what + " " + f.todo + "\n";
        EXPECT_EQ(read.files, lines_.empty() ? 0U : 1U);
        return read.refused.empty() ? "" : read.refused[0].why;
    }
    const TemporaryFolder folder_;
    std::vector<std::string> lines_;
    std::string findings_;
};

TEST_F(SourceTexts, AreBelowTheFoldersThatAreGiven) {
    fs::create_directories(folder_.path() / "in" / "deep");
    const fs::path file = folder_.write("in/deep/a.c", "int a;\nint b;\n");
    EXPECT_EQ(refused(file, {folder_.path() / "in"}), "");
    EXPECT_EQ(lines_, (std::vector<std::string>{"int a;", "int b;"}));
    EXPECT_NE(findings_.find("The text of 1 source file is included"), std::string::npos) << findings_;
    // Compiled elsewhere: its whole name below the folder, or the end of the name.
    EXPECT_EQ(refused("/elsewhere/deep/a.c", {folder_.path() / "in"}), "");
    EXPECT_EQ(lines_.size(), 2U);
    EXPECT_EQ(refused("/elsewhere/none.c", {folder_.path() / "in"}), "");
    EXPECT_TRUE(lines_.empty());
    EXPECT_NE(refused(file).find("not below a folder"), std::string::npos);
    EXPECT_TRUE(lines_.empty());
    EXPECT_NE(findings_.find(file.string()), std::string::npos) << findings_;
    EXPECT_NE(findings_.find("--source-root"), std::string::npos) << findings_;
}

TEST_F(SourceTexts, AreSources) {
    const std::vector<fs::path> root{folder_.path()};
    EXPECT_NE(refused("/etc/passwd").find("its name"), std::string::npos);
    EXPECT_TRUE(lines_.empty());
    EXPECT_NE(refused("/etc/passwd", {"/etc"}).find("its name"), std::string::npos);
    EXPECT_NE(refused(folder_.write("notes.txt", "text"), root).find("its name"), std::string::npos);
    EXPECT_NE(refused(folder_.write("nul.c", std::string("a\0b\n", 4)), root).find("NUL"), std::string::npos);
    EXPECT_TRUE(lines_.empty());
    fs::create_directory(folder_.path() / "folder.c");
    EXPECT_NE(refused(folder_.path() / "folder.c", root).find("no regular file"), std::string::npos);
    // Links count as the files to which they lead.
    fs::create_symlink("/etc/passwd", folder_.path() / "link.c");
    EXPECT_NE(refused(folder_.path() / "link.c", root).find("its name"), std::string::npos);
    const TemporaryFolder other;
    fs::create_symlink(other.write("b.c", "int b;"), folder_.path() / "away.c");
    EXPECT_NE(refused(folder_.path() / "away.c", root).find("not below"), std::string::npos);
    EXPECT_TRUE(lines_.empty());
}

}  // namespace
}  // namespace waymark::analysis
