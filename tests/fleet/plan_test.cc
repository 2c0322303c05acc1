// What inputs mean, how captures become shards, and the contents of a plan's files.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "fleet/job.h"
#include "support/random.h"
#include "waymark/fleet/inputs.h"

namespace waymark::fleet {
namespace {

namespace fs = std::filesystem;
const fs::path examples = fs::path(WAYMARK_SOURCE_DIR) / "examples/sort";

/// Names without their folder.
std::vector<std::string> names(const std::vector<std::string>& paths) {
    std::vector<std::string> out;
    for (const std::string& path : paths) out.push_back(fs::path(path).filename().string());
    return out;
}

TEST(FleetInputs, AreFilesFoldersPatternsAndLists) {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "a/b");
    for (const char* name : {"a/1", "a/b/2", "3"})
        fs::copy(examples / "capture", folder.path() / name, fs::copy_options::recursive);
    folder.write("a/notes.txt", "no capture");
    folder.write("bare.bin", "bytes");
    const std::string in = folder.path().string() + "/";
    // A folder is searched; a capture folder in it is one capture, and is not searched further.
    EXPECT_EQ(names(find_captures({in + "a"})->paths), (std::vector<std::string>{"1", "2"}));
    EXPECT_EQ(names(find_captures({in + "*"})->paths), (std::vector<std::string>{"3", "1", "2", "bare.bin"}));
    const fs::path list = folder.write("list", "# comment\n\n" + in + "a/1\r\n" + in + "?\n" + in + "3\n");
    const auto found = find_captures({"@" + list.string(), in + "a/1"});
    ASSERT_TRUE(found) << found.error().message;
    // `?` is the folder a, with 1 and 2, and 3.
    EXPECT_EQ(names(found->paths), (std::vector<std::string>{"3", "1", "2"}));
    EXPECT_EQ(found->repeated, 3U);
    fs::create_directory_symlink(folder.path() / "3", folder.path() / "link");
    EXPECT_EQ(find_captures({in + "3", in + "link"})->paths.size(), 1U);
    fs::create_directory(folder.path() / "empty");
    EXPECT_EQ(find_captures({in + "empty"})->barren.size(), 1U);
}

TEST(FleetInputs, SeveralAreNamedWithCommas) {
    const TemporaryFolder folder;
    const std::string in = folder.path().string() + "/";
    for (const char* name : {"a/snapshot.ini", "b/snapshot.ini", "c,d/snapshot.ini"}) folder.write(name, std::string());
    const auto found = find_captures({in + "a," + in + "b", in + "c,d", in + "a," + in + "[b]"});
    ASSERT_TRUE(found.has_value()) << found.error().message;
    EXPECT_EQ(found->paths.size(), 3U);
    EXPECT_EQ(found->repeated, 2U);
    EXPECT_NE(find_captures({in + "a," + in + "none"}).error().message.find(in + "none: no such file"),
              std::string::npos);
}

TEST(FleetInputs, SayWhatIsWrong) {
    const TemporaryFolder folder;
    const std::string in = folder.path().string() + "/";
    EXPECT_NE(find_captures({in + "none"}).error().message.find("no such file"), std::string::npos);
    EXPECT_NE(find_captures({in + "none*"}).error().message.find("no file fits"), std::string::npos);
    EXPECT_NE(find_captures({"@" + in + "none"}).error().message.find("cannot read the list"), std::string::npos);
    const fs::path list = folder.write("list", "\n" + in + "none\n");
    EXPECT_NE(find_captures({"@" + list.string()}).error().message.find("line 2"), std::string::npos);
    EXPECT_EQ(find_captures({folder.write("x\xff", "").string()}).error().code, Errc::usage);
}

PlannedCapture capture_of(unsigned number, std::uint64_t bytes, std::vector<RanFile> ran) {
    PlannedCapture out;
    out.path = "/c" + std::to_string(number);
    out.trace_bytes = bytes;
    out.ran = std::move(ran);
    return out;
}

TEST(FleetShards, HaveEachCaptureOnceAndKeepFilesTogether) {
    synthetic::Random random(7);
    std::vector<PlannedCapture> captures;
    for (unsigned n = 0; n < 500; ++n)
        captures.push_back(capture_of(n, random.below(1000), {{"/bin/p", std::to_string(random.below(4))}}));
    const auto seconds = [](const PlannedCapture& c) { return static_cast<double>(c.trace_bytes) / 100; };
    const std::vector<Shard> shards = make_shards(captures, 50, seconds);
    std::set<std::string> seen;
    std::size_t mixed = 0;
    double before = 1e9;
    for (const Shard& s : shards) {
        EXPECT_LE(s.seconds, 50 + 5);
        EXPECT_LE(s.seconds, before);
        before = s.seconds;
        std::set<RanFile> ran;
        for (const PlannedCapture& c : s.captures) {
            EXPECT_TRUE(seen.insert(c.path).second);
            ran.insert(c.ran.begin(), c.ran.end());
        }
        mixed += ran.size() > 1;
    }
    EXPECT_EQ(seen.size(), captures.size());
    EXPECT_GE(shards.size(), 2500U / 55);
    EXPECT_LE(mixed, 3U);  // where one build's captures end and the next one's begin
    // The order in which captures are named does not matter.
    std::reverse(captures.begin(), captures.end());
    const std::vector<Shard> again = make_shards(captures, 50, seconds);
    ASSERT_EQ(again.size(), shards.size());
    for (std::size_t i = 0; i < shards.size(); ++i)
        EXPECT_EQ(again[i].captures.front().path, shards[i].captures.front().path);
}

TEST(FleetShards, OfALargeCaptureAreItsOwn) {
    std::vector<PlannedCapture> captures;
    for (unsigned n = 0; n < 10; ++n) captures.push_back(capture_of(n, n == 5 ? 100000 : 10, {}));
    const std::vector<Shard> shards =
        make_shards(captures, 1, [](const PlannedCapture& c) { return static_cast<double>(c.trace_bytes) / 100; });
    ASSERT_EQ(shards.size(), 2U);
    EXPECT_EQ(shards[0].captures.size(), 1U);
    EXPECT_EQ(shards[0].captures[0].path, "/c5");
}

PlanRequest request_of(std::vector<std::string> inputs) {
    PlanRequest out;
    out.inputs = std::move(inputs);
    out.version = tested_version;
    out.options = {"--contents=ranges"};
    return out;
}

class FleetPlan : public testing::Test {
protected:
    /// A copy of the example's capture.
    std::string copy(const std::string& name) const {
        fs::copy(examples / "capture", folder.path() / "in" / name, fs::copy_options::recursive);
        return (folder.path() / "in" / name).string();
    }
    FleetPlan() { fs::create_directories(folder.path() / "in"); }
    [[nodiscard]] std::vector<Shard> shards() const {
        std::vector<Shard> out;
        const Status read = read_shards(job, *read_manifest(job), [&](Shard&& s) { out.push_back(std::move(s)); });
        EXPECT_TRUE(read) << read.error().message;
        return out;
    }
    TemporaryFolder folder;
    JobFolder job{folder.path() / "job"};
};

TEST_F(FleetPlan, IsReadAsItWasMade) {
    for (const char* name : {"x", "y", "z"}) copy(name);
    PlanRequest request = request_of({(folder.path() / "in").string()});
    request.shard_seconds = 0.001;
    const auto summary = plan_job(job, request);
    ASSERT_TRUE(summary) << summary.error().message;
    EXPECT_EQ(summary->captures, 3U);
    EXPECT_EQ(summary->shards, 3U);
    const std::uint64_t trace = fs::file_size(examples / "capture/trace.bin");
    EXPECT_EQ(summary->trace_bytes, 3 * trace);
    const auto manifest = read_manifest(job);
    ASSERT_TRUE(manifest) << manifest.error().message;
    EXPECT_EQ(manifest->options, request.options);
    EXPECT_EQ(manifest->version, tested_version);
    const std::vector<Shard> all = shards();
    ASSERT_EQ(all.size(), 3U);
    for (const Shard& s : all) {
        EXPECT_EQ(s.captures[0].unit, "PTM");
        EXPECT_EQ(s.captures[0].trace_bytes, trace);
        EXPECT_EQ(s.identity, identity_of(s, *manifest));
    }
    EXPECT_EQ(plan_job(job, request).error().code, Errc::usage);  // it has a plan
}

TEST_F(FleetPlan, AddsOnlyWhatIsNew) {
    copy("x");
    ASSERT_TRUE(plan_job(job, request_of({(folder.path() / "in").string()})));
    const std::string before = shards()[0].identity;
    copy("y");
    const auto added = add_to_job(job, request_of({(folder.path() / "in").string()}));
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(added->captures, 1U);
    EXPECT_EQ(added->known, 1U);
    const std::vector<Shard> all = shards();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].identity, before);
    EXPECT_TRUE(all[1].captures[0].path.ends_with("/y"));
    EXPECT_EQ(read_manifest(job)->captures, 2U);
    // A changed capture counts as another one.
    std::ofstream(folder.path() / "in/x/trace.bin", std::ios::app) << "more";
    const auto changed = add_to_job(job, request_of({(folder.path() / "in").string()}));
    ASSERT_FALSE(changed);
    EXPECT_NE(changed.error().message.find("changed since"), std::string::npos);
}

TEST_F(FleetPlan, NamesWhatCannotBeRead) {
    copy("x");
    folder.write("in/text", "this is a text and no capture");
    const auto summary =
        plan_job(job, request_of({(folder.path() / "in/x").string(), (folder.path() / "in/text").string()}));
    ASSERT_TRUE(summary);
    ASSERT_EQ(summary->unreadable.size(), 1U);
    EXPECT_NE(summary->unreadable[0].why.find("text"), std::string::npos);
    EXPECT_EQ(read_manifest(job)->unreadable.size(), 1U);
    const auto none = plan_job(JobFolder(folder.path() / "none"), request_of({(folder.path() / "in/text").string()}));
    EXPECT_EQ(none.error().code, Errc::unreadable);
}

TEST_F(FleetPlan, RefusesSeveralUnits) {
    const auto both =
        plan_job(job, request_of({(examples / "capture").string(), (examples / "capture-aarch64").string()}));
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error().code, Errc::usage);
    EXPECT_NE(both.error().message.find("unit PTM"), std::string::npos) << both.error().message;
}

/// Their answers would have two units, which cannot be added up: the error comes when planning, not after decoding.
TEST_F(FleetPlan, RefusesTwoUnitsOfOneProtocol) {
    const fs::path ete = examples / "capture-aarch64", etm = folder.path() / "in" / "etm";
    fs::copy(ete, etm, fs::copy_options::recursive);
    std::string source = contents_of(etm / "source_0.ini");
    ASSERT_NE(source.find("type=ETE"), std::string::npos);
    source.replace(source.find("type=ETE"), 8, "type=ETM4.5");
    folder.write("in/etm/source_0.ini", source);
    const auto both = plan_job(job, request_of({ete.string(), etm.string()}));
    ASSERT_FALSE(both);
    EXPECT_EQ(both.error().code, Errc::usage);
    EXPECT_NE(both.error().message.find("unit ETE"), std::string::npos) << both.error().message;
}

TEST_F(FleetPlan, IsOfOneWriter) {
    copy("x");
    const PlanRequest request = request_of({(folder.path() / "in").string()});
    // A folder with other things is no job, and stays as it is.
    fs::create_directories(job.path() / "others");
    EXPECT_EQ(plan_job(job, request).error().code, Errc::usage);
    EXPECT_FALSE(fs::exists(job.manifest()));
    fs::remove(job.path() / "others");
    ASSERT_TRUE(plan_job(job, request));
    const auto refused = plan_job(job, request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::usage);
    EXPECT_NE(refused.error().message.find("has a plan already"), std::string::npos) << refused.error().message;
    copy("y");
    // Locks the file as another process would.
    const int other = ::open(job.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_EQ(::flock(other, LOCK_EX), 0);
    EXPECT_EQ(add_to_job(job, request).error().code, Errc::usage);
    ::close(other);
    ASSERT_TRUE(add_to_job(job, request));
    EXPECT_EQ(shards().size(), 2U);
}

TEST_F(FleetPlan, DamageIsSaid) {
    copy("x");
    ASSERT_TRUE(plan_job(job, request_of({(folder.path() / "in").string()})));
    const std::string head = contents_of(job.manifest()), lines = contents_of(job.shards());
    const auto write = [](const fs::path& path, const std::string& text) {
        std::ofstream(path, std::ios::binary) << text;
    };
    write(job.shards(), lines.substr(0, lines.size() / 2));
    const auto status = read_shards(job, *read_manifest(job), [](Shard&&) {});
    ASSERT_FALSE(status);
    EXPECT_NE(status.error().message.find("line 1"), std::string::npos);
    write(job.shards(), "");
    EXPECT_FALSE(read_shards(job, *read_manifest(job), [](Shard&&) {}));
    write(job.manifest(), head.substr(0, head.size() / 2));
    EXPECT_EQ(read_manifest(job).error().code, Errc::bad_format);
    std::string later = head;
    later.replace(later.find("\"format_version\": 1"), 19, "\"format_version\": 2");
    write(job.manifest(), later);
    EXPECT_EQ(read_manifest(job).error().code, Errc::unsupported);
    fs::remove(job.manifest());
    EXPECT_EQ(read_manifest(job).error().code, Errc::not_found);
}

TEST_F(FleetPlan, NumbersThatAreNoneOfItsNumbersAreDamage) {
    copy("x");
    ASSERT_TRUE(plan_job(job, request_of({(folder.path() / "in").string()})));
    const std::string head = contents_of(job.manifest()), lines = contents_of(job.shards());
    // A number of shards, and the number of a shard, which has 32 bits.
    for (const char* number : {"184467440737095516150", "-1", "1.5", "1e99", "true"}) {
        std::ofstream(job.manifest(), std::ios::binary)
            << std::regex_replace(head, std::regex("\"shards\": 1"), fmt::format("\"shards\": {}", number));
        EXPECT_EQ(read_manifest(job).error().code, Errc::bad_format) << number;
    }
    std::ofstream(job.manifest(), std::ios::binary) << head;
    for (const char* number : {"4294967296", "18446744073709551616", "-4294967296", "0.0"}) {
        std::ofstream(job.shards(), std::ios::binary)
            << std::regex_replace(lines, std::regex("\"shard\": ?0"), fmt::format("\"shard\": {}", number));
        EXPECT_FALSE(read_shards(job, *read_manifest(job), [](Shard&&) {})) << number;
    }
}

/// Lines after the head were being added when a process was killed.
TEST_F(FleetPlan, IsWholeAfterAnAdditionThatWasKilled) {
    copy("x");
    ASSERT_TRUE(plan_job(job, request_of({(folder.path() / "in").string()})));
    std::ofstream(job.shards(), std::ios::app) << "{\"shard\": 1, \"ide";
    EXPECT_EQ(shards().size(), 1U);
    copy("y");
    ASSERT_TRUE(add_to_job(job, request_of({(folder.path() / "in").string()})));
    EXPECT_EQ(shards().size(), 2U);
}

/// A process was killed while it appended lines after the head.
TEST_F(FleetPlan, ChoosesTimelines) {
    const auto chosen = [&] {
        std::vector<std::string> out;
        for (const Shard& s : shards())
            for (const PlannedCapture& c : s.captures)
                if (c.timeline) out.push_back(c.path);
        return out;
    };
    std::vector<std::pair<std::uint64_t, std::string>> orders;
    for (unsigned n = 0; n < 12; ++n) {
        copy("c" + std::to_string(n));
        const std::string path = (folder.path() / "in" / ("c" + std::to_string(n))).string();
        orders.emplace_back(answers::sample_order(path), path);
        if (n != 9) continue;
        ASSERT_TRUE(plan_job(job, request_of({(folder.path() / "in").string()})));
        EXPECT_EQ(chosen().size(), answers::most_samples);
    }
    ASSERT_TRUE(add_to_job(job, request_of({(folder.path() / "in").string()})));
    std::sort(orders.begin(), orders.end());
    const std::vector<std::string> paths = chosen();
    for (std::size_t n = 0; n < answers::most_samples; ++n)
        EXPECT_EQ(std::count(paths.begin(), paths.end(), orders[n].second), 1) << orders[n].second;
}

TEST(FleetSurvey, NoticesEveryKindOfChange) {
    const TemporaryFolder folder;
    const fs::path file = folder.write("c/a", std::string(100000, 'x'));
    folder.write("c/b", "y");
    const std::string capture = (folder.path() / "c").string();
    const auto before = file_state(capture);
    ASSERT_TRUE(before);
    EXPECT_EQ(before->bytes, 100001U);
    std::set<std::string> samples{before->sample};
    const auto changed = [&] { return samples.insert(file_state(capture)->sample).second; };
    for (const std::size_t at : {std::size_t{0}, std::size_t{99999}, std::size_t{100000 / 3 + 10}}) {
        std::string bytes(100000, 'x');
        bytes[at] = 'z';
        folder.write("c/a", bytes);
        EXPECT_TRUE(changed()) << at;
    }
    folder.write("c/a", std::string(100000, 'x'));
    EXPECT_EQ(file_state(capture)->sample, before->sample);
    folder.write("c/new", "");
    EXPECT_TRUE(changed());
    fs::remove(folder.path() / "c/new");
    fs::rename(folder.path() / "c/b", folder.path() / "c/c");
    EXPECT_TRUE(changed());
    // The timelines that a sum keeps are made, whether captures were planned together or added later.
    const std::string whole = *whole_hash(capture);
    std::string bytes(100000, 'x');
    bytes[50000] = 'z';
    folder.write("c/a", bytes);
    EXPECT_NE(*whole_hash(capture), whole);
}

}  // namespace
}  // namespace waymark::fleet
