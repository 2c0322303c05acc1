// Differences between captures, and copies of files by build ID.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/capture/module_map.h"
#include "waymark/fleet/image_cache.h"
#include "waymark/fleet/spread.h"
#include "waymark/image/debug_info.h"

namespace waymark::fleet {
namespace {

namespace fs = std::filesystem;

/// Answers with this many instructions in each of these functions.
answers::Answers answers_with(const std::vector<std::pair<std::string, std::uint64_t>>& costs) {
    answers::Answers a;
    a.metrics.push_back({"instructions", "instructions"});
    a.calls.push_back({answers::none, answers::none, answers::CallNode::Kind::root, 0, {0}});
    for (const auto& [name, cost] : costs) {
        a.functions.push_back({name, name});
        a.calls.push_back(
            {0, static_cast<answers::Index>(a.functions.size() - 1), answers::CallNode::Kind::call, 1, {cost}});
    }
    return a;
}

CaptureProfile profile(const std::string& name, const std::vector<std::pair<std::string, std::uint64_t>>& costs,
                       const std::string& program = "p") {
    PlannedCapture capture;
    capture.path = name;
    capture.ran = {{program, "1234"}};
    return profile_of(answers_with(costs), capture);
}

TEST(FleetSpread, FindsTheCaptureThatDiffers) {
    std::vector<CaptureProfile> profiles;
    for (unsigned n = 0; n < 20; ++n)
        profiles.push_back(profile("same" + std::to_string(n), {{"parse", 600 + n}, {"sort", 400 - n}}));
    profiles.push_back(profile("odd", {{"parse", 100}, {"sort", 100}, {"wait", 800}}));
    // Captures of another program are not compared with this one.
    profiles.push_back(profile("other", {{"main", 5}}, "q"));
    const std::vector<ProgramSpread> spread = spread_of(profiles);
    ASSERT_EQ(spread.size(), 2U);
    EXPECT_EQ(spread[0].program, "p");
    EXPECT_EQ(spread[0].captures, 21U);
    EXPECT_EQ(spread[0].median, 1000U);
    ASSERT_EQ(spread[0].outliers.size(), 1U);
    EXPECT_EQ(spread[0].outliers[0].capture, "odd");
    // 0.61 - 0.1 in parse and 0.39 - 0.1 in sort moved to wait.
    EXPECT_NEAR(spread[0].outliers[0].distance, 0.8, 0.001);
    EXPECT_LT(spread[0].median_distance, 0.1);
    EXPECT_TRUE(spread[1].outliers.empty());
    // A capture that costs a thousand times as much has the same profile.
    EXPECT_TRUE(
        spread_of({profile("a", {{"f", 1}, {"g", 1}}), profile("b", {{"f", 1000}, {"g", 1000}})})[0].outliers.empty());
    EXPECT_EQ(spread_of({profile("a", {{"f", 1}}), profile("b", {{"g", 1}})})[0].outliers.size(), 2U);
    EXPECT_TRUE(spread_of({}).empty());
    EXPECT_TRUE(spread_of({profile("a", {}), profile("b", {{"f", 1}})})[0].outliers.empty());
}

TEST(FleetSpread, IsInTheReport) {
    answers::Answers sum = answers_with({{"parse", 10}});
    add_spread(sum, spread_of({profile("a", {{"f", 1}}), profile("b", {{"g", 1}}), profile("c", {{"f", 5}}, "q")}));
    ASSERT_EQ(sum.tables.size(), 2U);
    EXPECT_EQ(sum.tables[0].rows.size(), 2U);
    ASSERT_EQ(sum.tables[1].rows.size(), 2U);
    EXPECT_EQ(sum.tables[1].rows[0][1].field(), "a");
    ASSERT_EQ(sum.charts.size(), 1U);
    EXPECT_EQ(sum.charts[0].bars.front().value, 1U);
    EXPECT_EQ(sum.charts[0].bars.back().value, 2U);
    // Without captures there is nothing to show.
    answers::Answers empty;
    add_spread(empty, {});
    EXPECT_TRUE(empty.tables.empty() && empty.charts.empty());
}

class FleetImageCache : public testing::Test {
protected:
    void SetUp() override {
        const auto info = image::DebugInfo::open(program);
        if (!info || info->build_id().empty()) GTEST_SKIP() << program << " has no build ID";
        id = capture::hex_text(info->build_id());
        place = fs::path(".build-id") / id.substr(0, 2) / (id.substr(2) + ".debug");
        fs::create_directories((source / place).parent_path());
        fs::copy_file(program, source / place);
    }
    void fetch(std::uint64_t most = 1 << 30) const { ImageCache(cache, most).fetch({{"/bin/true", id}}, {source}); }
    [[nodiscard]] bool has_it() const {
        return fs::exists(cache / place) && fs::file_size(cache / place) == fs::file_size(program);
    }
    const fs::path program = "/bin/true";
    TemporaryFolder folder;
    const fs::path source = folder.path() / "source", cache = folder.path() / "cache";
    std::string id;
    fs::path place;
};

TEST_F(FleetImageCache, CopiesWhatIsNeeded) {
    ImageCache(cache, 1 << 30).fetch({{"/bin/other", "0123456789"}, {"/bin/nameless", ""}}, {source});
    EXPECT_FALSE(has_it());
    fetch();
    EXPECT_TRUE(has_it());
    // It is no longer needed at its source.
    fs::remove(source / place);
    fetch();
    EXPECT_TRUE(has_it());
}

TEST_F(FleetImageCache, ReplacesAStaleCopy) {
    fetch();
    std::ofstream(cache / place) << "something else";
    fetch();
    EXPECT_TRUE(has_it());
    // Cut behind its build ID.
    fs::resize_file(cache / place, fs::file_size(program) / 2);
    fetch();
    EXPECT_TRUE(has_it());
}

TEST_F(FleetImageCache, RemovesWhatWasNotUsedForLongest) {
    const fs::path old = cache / ".build-id/aa/old", older = cache / ".build-id/aa/older";
    fs::create_directories(old.parent_path());
    for (const fs::path& file : {old, older}) std::ofstream(file) << std::string(1000, 'x');
    fs::last_write_time(older, fs::last_write_time(old) - std::chrono::hours(2));
    fs::last_write_time(old, fs::last_write_time(old) - std::chrono::hours(1));
    fetch(fs::file_size(program) + 1500);
    EXPECT_TRUE(has_it());
    EXPECT_TRUE(fs::exists(old));
    EXPECT_FALSE(fs::exists(older));
    fetch(10);  // nothing is copied, so nothing is removed
    EXPECT_TRUE(has_it());
    ImageCache(cache, 10).trim();
    EXPECT_FALSE(has_it());
    // A cache that cannot be written is no error.
    ImageCache("/proc/none", 10).fetch({{"/bin/true", id}}, {source});
}

}  // namespace
}  // namespace waymark::fleet
