// not_permitted.txt: written and read, and what is no such file.

#include "waymark/capture/not_permitted.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot_sinks.h"

namespace waymark::capture {
namespace {

TEST(NotPermitted, IsReadAsItWasWritten) {
    using Reasons = std::vector<NotPermitted>;
    for (const Reasons& reasons : {Reasons{},
                                   {{"NIDEN=0", 1200, 31}},
                                   {{"SPNIDEN=0 and no power"}, {"no power", 1, 1}, {"OS Lock (it was set)", 0, 0}}})
        EXPECT_EQ(read_not_permitted(not_permitted_text(reasons)), reasons);
    EXPECT_EQ(not_permitted_text({{"NIDEN=0", 1200, 31}}),
              "waymark-not-permitted 2\nNIDEN=0 (instructions=1200, ranges=31)\n");
}

TEST(NotPermitted, OtherTextsSayNothing) {
    using namespace std::string_literals;
    for (const std::string& text :
         {""s, "NIDEN=0\n"s, "waymark-not-permitted 3\nNIDEN=0\n"s, "waymark-not-permitted 1\nNID\0EN=0\n"s,
          "waymark-not-permitted 1\n\x1b[2J\n"s, "\nwaymark-not-permitted 1\nNIDEN=0\n"s})
        EXPECT_TRUE(read_not_permitted(text).empty()) << text;
    // A line without its end is still a line.
    EXPECT_EQ(read_not_permitted("waymark-not-permitted 1\n\nNIDEN=0"), std::vector<NotPermitted>{{"NIDEN=0"}});
    // Text that is not a size belongs to the reason.
    for (const std::string line : {"NIDEN=0 (instructions=1)", "NIDEN=0 (instructions=, ranges=1)",
                                   "NIDEN=0 (instructions=1, ranges=-1)", " (instructions=1, ranges=1)"})
        EXPECT_EQ(read_not_permitted("waymark-not-permitted 2\n" + line), std::vector<NotPermitted>{{line}});
}

TEST(NotPermitted, BelongsToTheSnapshotOfItsFolder) {
    const TemporaryFolder folder;
    Capture capture;
    capture.path = folder.path() / "snapshot.ini";
    EXPECT_TRUE(not_permitted(capture).empty());
    folder.write("snapshot.ini", "[snapshot]\nversion=1.0\n");
    folder.write(std::string(not_permitted_file), not_permitted_text({{"NIDEN=0"}}));
    EXPECT_EQ(not_permitted(capture), std::vector<NotPermitted>{{"NIDEN=0"}});
    folder.write(std::string(not_permitted_file), not_permitted_text({{"NIDEN=0"}}) + std::string(5000, 'x'));
    EXPECT_TRUE(not_permitted(capture).empty());
    capture.path = folder.path() / "other.bin";
    EXPECT_TRUE(not_permitted(capture).empty());
}

// Trace buffers among the devices, with their registers.
TEST(SnapshotSinks, AreReadAsTheyWereWritten) {
    const TemporaryFolder folder;
    Capture capture;
    capture.cores.push_back({.name = "core", .type = "Cortex-A15"});
    const std::vector<SinkDevice> sinks{{"ETB", "ETB", {{"RSZ", 0x400, {}, 32}, {"STS", 3, {}, 32}}},
                                        {"TMC-ETR_2", "TMC-ETR", {{"DBALO", 0x80000000, {}, 32}}}};
    ASSERT_TRUE(write_snapshot(capture, sinks, folder.path()));
    const auto read = read_snapshot_sinks(folder.path());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, sinks);
    const auto twice = write_snapshot(capture, {sinks[0], sinks[0]}, folder.path() / "twice");
    ASSERT_FALSE(twice);
    EXPECT_EQ(twice.error().code, Errc::usage);
}

}  // namespace
}  // namespace waymark::capture
