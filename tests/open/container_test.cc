// The captures that a user may name, and how each kind is recognised.
#include "waymark/open/container.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/perf_file.h"
#include "support/temporary_folder.h"

namespace waymark::open {
namespace {

namespace fs = std::filesystem;

class Containers : public testing::Test {
protected:
    std::string write(const std::string& name, std::string_view text) const {
        return folder_.write(name, std::vector<std::uint8_t>(text.begin(), text.end())).string();
    }
    std::string folder_with(const char* name, const char* file) const {
        fs::create_directory(folder_.path() / name);
        if (*file != '\0') write(std::string(name) + "/" + file, "[a]\n");
        return (folder_.path() / name).string();
    }
    const TemporaryFolder folder_;
};

TEST(ContainerTable, EveryKindHasOneRow) {
    std::set<Kind> seen;
    for (const KindInfo& row : kinds()) {
        EXPECT_TRUE(seen.insert(row.kind).second) << row.title;
        EXPECT_EQ(info(row.kind).title, row.title);
        EXPECT_FALSE(row.title.empty());
    }
    EXPECT_EQ(seen.size(), static_cast<std::size_t>(Kind::missing) + 1);
}

TEST_F(Containers, AreRecognisedByNameAndFirstBytes) {
    using namespace std::string_view_literals;
    EXPECT_EQ(identify(folder_with("dpu", "dpu.ini")).kind, Kind::counters);
    EXPECT_EQ(identify((folder_.path() / "dpu" / "dpu.ini").string()).kind, Kind::counters);
    EXPECT_EQ(identify(folder_with("snapshot", "snapshot.ini")).kind, Kind::snapshot);
    EXPECT_EQ(identify((folder_.path() / "snapshot" / "snapshot.ini").string()).kind, Kind::snapshot);
    EXPECT_EQ(identify(folder_with("other", "")).kind, Kind::folder);
    EXPECT_EQ(identify(write("program", "\177ELF\2\1\1\0"sv)).kind, Kind::program);
    EXPECT_EQ(identify(write("words", "twelve words")).kind, Kind::text);
    EXPECT_EQ(identify(write("umlauts", "zw\xc3\xb6lf W\xc3\xb6rter \xe2\x80\xa6")).kind, Kind::text);
    EXPECT_EQ(identify(write("cut", "twelve words and a part of \xe2\x80")).kind, Kind::text);
    EXPECT_EQ(identify(write("latin", "f\xfcnf W\xf6rter")).kind, Kind::bytes);
    EXPECT_EQ(identify(write("lists", "simpleperf:EtmBranchList\1")).kind, Kind::branch_lists);
    EXPECT_EQ(identify(write("few", "few")).kind, Kind::bytes);
    EXPECT_EQ(identify(write("bytes", "\1\2\3\4\5\6\7\x8"sv)).kind, Kind::bytes);
    EXPECT_EQ(identify((folder_.path() / "none").string()).kind, Kind::missing);
    const Container empty = identify(write("empty", ""));
    EXPECT_EQ(empty.kind, Kind::bytes);
    EXPECT_TRUE(empty.unreadable.has_value());
}

TEST_F(Containers, PerfDataIsOpenAfterwards) {
    using capture::perf::PerfWriter;
    support::PerfBytes made = support::small_perf_file(PerfWriter::Form::file);
    for (const auto& [unit, kind] :
         {std::pair{std::uint8_t{3}, Kind::coresight_perf}, {std::uint8_t{4}, Kind::samples_perf}}) {
        made.bytes[made.records.front() + 8] = unit;
        const Container file = identify(folder_.write("perf.data", made.bytes).string());
        EXPECT_EQ(file.kind, kind);
        ASSERT_NE(file.file.file, nullptr);
        EXPECT_EQ(file.file.file->size(), made.bytes.size());
        fs::create_directory(folder_.path() / "perf.dir");
        folder_.write("perf.dir/data", made.bytes);
        const Container folder = identify((folder_.path() / "perf.dir").string());
        EXPECT_EQ(folder.kind, kind);
        EXPECT_TRUE(folder.is_folder);
    }
}

// Opening it would wait for a writer.
TEST_F(Containers, ANamedPipeIsNotOpened) {
    const std::string pipe = (folder_.path() / "pipe").string();
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    EXPECT_EQ(identify(pipe).kind, Kind::special_file);
}

TEST_F(Containers, CopiesOfALookupShareTheContainer) {
    const Lookup lookup;
    const std::string path = write("words", "twelve words");
    const Container& first = lookup.of(path);
    const Lookup copy = lookup;
    EXPECT_EQ(&copy.of(path), &first);
    EXPECT_EQ(copy.of(write("bytes", "\1\2\3")).kind, Kind::bytes);
    EXPECT_EQ(lookup.of(path).kind, Kind::text);
}

}  // namespace
}  // namespace waymark::open
