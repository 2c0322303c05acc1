// One result, byte for byte, from any way of merging; and refused merges.
//
// WAYMARK_ANSWERS names a folder of answers files, of which files of one unit are merged by random trees too
// (tests/fleet/trees_test.py records some); WAYMARK_PROPERTY_ROUNDS is the number of trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fleet/job.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/answers/sum.h"
#include "waymark/fleet/merge.h"
#include "waymark/fleet/receipt.h"
#include "waymark/pipeline/answers_file.h"

namespace waymark::fleet {
namespace {

namespace fs = std::filesystem;
using File = std::vector<std::uint8_t>;

File written(const answers::Answers& a) {
    ByteCollector out;
    answers::write_answers(a, out);
    return out.take();
}
answers::Answers reread(const File& file) {
    auto out = answers::read_answers(file, "tree");
    WM_CHECK(out);
    return std::move(*out);
}

template <class T>
void shuffle(std::vector<T>& items, synthetic::Random& random) {
    for (std::size_t left = items.size(); left > 1; --left)
        std::swap(items[left - 1], items[random.below(static_cast<std::uint32_t>(left))]);
}

/// Merges files by a random tree: groups of any size in any order, some with a single file, until one file is left.
File by_random_tree(std::vector<File> files, synthetic::Random& random) {
    for (bool merged = false; files.size() > 1 || !merged; merged = true) {
        shuffle(files, random);
        std::vector<File> next;
        for (std::size_t at = 0; at < files.size();) {
            const std::size_t count = std::min<std::size_t>(1 + random.below(6), files.size() - at);
            answers::AnswersSum sum;
            for (std::size_t i = at; i < at + count; ++i) sum.add(reread(files[i]));
            next.push_back(written(sum.take()));
            at += count;
        }
        files = std::move(next);
    }
    return files.front();
}

unsigned rounds(unsigned otherwise) {
    const char* const given = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    return given == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

TEST(MergeTrees, OfAnyAnswersGiveTheSameBytes) {
    for (unsigned round = 0; round < rounds(sized(100U, 6U)); ++round) {
        synthetic::Random random(round);
        std::vector<File> files;
        for (std::uint32_t i = 1 + random.below(12); i != 0; --i)
            files.push_back(written(support::any_answers(random())));
        const File one = by_random_tree(files, random);
        ASSERT_EQ(by_random_tree(files, random), one) << "round " << round;
    }
}

TEST(MergeTrees, OfRealAnswersGiveTheSameBytes) {
    const char* const folder = std::getenv("WAYMARK_ANSWERS");
    if (folder == nullptr)
        GTEST_SKIP() << "no WAYMARK_ANSWERS: the test fleet.trees records answers and runs this with them";
    std::map<std::string, std::vector<File>> units;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const auto read = pipeline::read_answers_file(entry.path().string());
        ASSERT_TRUE(read) << read.error().message;
        const std::string bytes = contents_of(entry.path());
        units[read->unit].emplace_back(bytes.begin(), bytes.end());
    }
    for (const auto& [unit, files] : units) {
        RecordProperty(unit, static_cast<int>(files.size()));
        ASSERT_GE(files.size(), 3U) << unit;
        synthetic::Random random(5);
        const File one = by_random_tree(files, random);
        for (unsigned round = 0; round < rounds(4); ++round)
            ASSERT_EQ(by_random_tree(files, random), one) << unit << ", round " << round;
    }
    EXPECT_GE(units.size(), 4U) << "answers of four units are expected";
}

void run_all(const MadeJob& job) {
    for (std::uint32_t n = 0; n < job.manifest().shards; ++n) {
        const auto outcome = run_shard(job.folder(), n, made, tested_options());
        WM_CHECK(outcome && outcome->failure.empty());
    }
}

TEST(FleetMerge, AnyDivisionIntoShardsGivesTheSameBytes) {
    // One folder of captures, so that their names are the same.
    const MadeJob job({1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    std::vector<PlannedCapture> captures;
    for (std::uint32_t n = 0; n < 10; ++n) captures.push_back(job.shard(n).captures[0]);
    run_all(job);
    const auto first = merge_job(job.folder(), {});
    ASSERT_TRUE(first) << first.error().message;
    // Random answers may come from captures that were cut.
    EXPECT_TRUE(first->missing.empty() && first->not_decoded.empty());
    const std::string expected = contents_of(job.folder().result());
    for (unsigned round = 0; round < sized(20U, 2U); ++round) {
        synthetic::Random random(round);
        shuffle(captures, random);
        const JobFolder other(job.temporary().path() / ("other" + std::to_string(round)));
        for (const char* folder : {"shards", "merged", "logs"}) fs::create_directories(other.path() / folder);
        Manifest manifest = job.manifest();
        std::vector<Shard> shards;
        for (const PlannedCapture& c : captures) {
            if (shards.empty() || random.below(3) == 0) shards.emplace_back();
            shards.back().captures.push_back(c);
        }
        manifest.shards = shards.size();
        for (std::uint32_t n = 0; n < shards.size(); ++n) {
            shards[n].number = n;
            shards[n].identity = identity_of(shards[n], manifest);
        }
        ASSERT_TRUE(write_plan(other, manifest, 0, shards));
        for (std::uint32_t n = 0; n < shards.size(); ++n) ASSERT_TRUE(run_shard(other, n, made, tested_options()));
        ASSERT_TRUE(merge_job(other, {}));
        ASSERT_EQ(contents_of(other.result()), expected) << "round " << round;
    }
}

TEST(FleetMerge, IntermediateSumsChangeNothing) {
    // Two levels: 48 * 48 < 2400.
    EXPECT_EQ(merge_levels(48), 0U);
    EXPECT_EQ(merge_levels(49), 1U);
    EXPECT_EQ(merge_levels(2304), 1U);
    EXPECT_EQ(merge_levels(2305), 2U);
    EXPECT_EQ(nodes_of_level(2305, 1), 49U);
    EXPECT_EQ(nodes_of_level(2305, 2), 2U);
    const MadeJob job(std::vector<std::size_t>(100, 1));
    // All captures but one have the answers of the first capture, which saves a hundred processes.
    ASSERT_TRUE(run_shard(job.folder(), 0, made, tested_options()));
    Receipt receipt = *read_receipt(job.folder(), 0);
    for (std::uint32_t n = 1; n < 100; ++n) {
        if (n == 77) continue;
        fs::copy_file(job.folder().of_shard(0, "answers"), job.folder().of_shard(n, "answers"));
        receipt.identity = job.shard(n).identity;
        ASSERT_TRUE(write_receipt(job.folder(), n, receipt));
    }
    ASSERT_TRUE(merge_job(job.folder(), {}));
    const std::string without = contents_of(job.folder().result());
    ASSERT_TRUE(merge_node(job.folder(), 1, 0));
    ASSERT_TRUE(merge_node(job.folder(), 1, 1));
    EXPECT_EQ(merge_node(job.folder(), 1, 3).error().code, Errc::usage);
    EXPECT_EQ(merge_node(job.folder(), 2, 0).error().code, Errc::usage);
    auto merged = merge_job(job.folder(), {});
    EXPECT_EQ(merged->intermediate_files, 2U);
    EXPECT_EQ(merged->merged, 99U);
    EXPECT_EQ(contents_of(job.folder().result()), without);
    // A later shard: the sum without this shard is out of date now.
    ASSERT_TRUE(run_shard(job.folder(), 77, made, tested_options()));
    merged = merge_job(job.folder(), {});
    EXPECT_EQ(merged->intermediate_files, 1U);
    EXPECT_EQ(merged->ignored.size(), 1U);
    EXPECT_EQ(merged->merged, 100U);
    const std::string whole = contents_of(job.folder().result());
    EXPECT_NE(whole, without);
    ASSERT_TRUE(merge_node(job.folder(), 1, 1));
    std::ofstream(job.folder().of_node(1, 0, "answers"), std::ios::app) << "damage";
    merged = merge_job(job.folder(), {});
    EXPECT_EQ(merged->intermediate_files, 1U);
    EXPECT_EQ(contents_of(job.folder().result()), whole);
}

TEST(FleetMerge, SaysWhatIsMissing) {
    const MadeJob job({2, 3, 1});
    ASSERT_TRUE(run_shard(job.folder(), 0, made, tested_options()));
    ASSERT_TRUE(run_shard(job.folder(), 2, made, tested_options()));
    const auto merged = merge_job(job.folder(), {});
    ASSERT_TRUE(merged);
    EXPECT_FALSE(merged->complete());
    ASSERT_EQ(merged->missing.size(), 1U);
    EXPECT_EQ(merged->missing[0].why, "it has not run");
    const auto result = pipeline::read_answers_file(job.folder().result().string());
    EXPECT_TRUE(std::any_of(result->health.begin(), result->health.end(), [](const answers::Finding& f) {
        return f.what.find("3 of 6 captures") != std::string::npos && f.severity == answers::Finding::Severity::warning;
    }));
    // With this shard, there is no message.
    ASSERT_TRUE(run_shard(job.folder(), 1, made, tested_options()));
    EXPECT_TRUE(merge_job(job.folder(), {})->complete());
}

TEST(FleetMerge, DoesNotAddWhatIsOfAnotherPlan) {
    const MadeJob job({1, 1}), other({1, 1}, "other");
    run_all(job);
    run_all(other);
    for (const char* kind : {"answers", "json"})
        fs::copy_file(other.folder().of_shard(1, kind), job.folder().of_shard(1, kind),
                      fs::copy_options::overwrite_existing);
    auto merged = merge_job(job.folder(), {});
    EXPECT_EQ(merged->merged, 1U);
    ASSERT_EQ(merged->missing.size(), 1U);
    EXPECT_NE(merged->missing[0].why.find("another plan"), std::string::npos);
    // Other answers than the receipt states.
    run_all(job);
    fs::copy_file(job.folder().of_shard(0, "answers"), job.folder().of_shard(1, "answers"),
                  fs::copy_options::overwrite_existing);
    merged = merge_job(job.folder(), {});
    ASSERT_TRUE(merged);
    ASSERT_EQ(merged->missing.size(), 1U);
    EXPECT_NE(merged->missing[0].why.find("not what its task wrote"), std::string::npos);
}

TEST(FleetMerge, SaysHowMuchTimeWasRecorded) {
    MergeOutcome outcome;
    outcome.captures = 3;
    EXPECT_EQ(recorded_text(outcome), "");
    outcome.recorded_ns = 1'234'000'000;
    outcome.timed_captures = 3;
    EXPECT_EQ(recorded_text(outcome), "1.2 s");
    outcome.recorded_ns = 9 * 3'600'000'000'000;
    outcome.timed_captures = 2;
    EXPECT_EQ(recorded_text(outcome), "9.0 hours (2 captures of them; of the others it is not known)");
}

/// Changes a receipt.
void edit(const fs::path& path, const std::function<void(nlohmann::json&)>& change) {
    nlohmann::json value = nlohmann::json::parse(contents_of(path));
    change(value);
    std::ofstream(path) << value.dump();
}

TEST(FleetMerge, RefusesMixtures) {
    const MadeJob job({1, 1});
    run_all(job);
    edit(job.folder().of_shard(0, "json"), [](auto& r) { r["nameless"] = {{"firmware.elf", "aa"}}; });
    edit(job.folder().of_shard(1, "json"), [](auto& r) { r["nameless"] = {{"firmware.elf", "bb"}}; });
    auto merged = merge_job(job.folder(), {});
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().code, Errc::usage);
    EXPECT_NE(merged.error().message.find("firmware.elf"), std::string::npos);
    edit(job.folder().of_shard(1, "json"), [](auto& r) { r["nameless"] = {{"firmware.elf", "aa"}}; });
    EXPECT_TRUE(merge_job(job.folder(), {}));
    edit(job.folder().of_shard(1, "json"), [](auto& r) { r["unit"] = "OTHER"; });
    merged = merge_job(job.folder(), {});
    ASSERT_FALSE(merged);
    EXPECT_NE(merged.error().message.find("unit OTHER"), std::string::npos);
}

TEST(FleetMerge, OfAJobThatMoved) {
    const MadeJob job({2, 2});
    run_all(job);
    ASSERT_TRUE(merge_job(job.folder(), {}));
    const std::string before = contents_of(job.folder().result());
    const JobFolder moved(job.temporary().path() / "elsewhere");
    fs::rename(job.folder().path(), moved.path());
    fs::remove(moved.result());
    ASSERT_TRUE(merge_job(moved, {}));
    EXPECT_EQ(contents_of(moved.result()), before);
}

}  // namespace
}  // namespace waymark::fleet
