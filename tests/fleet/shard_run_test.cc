// A shard is done once, with any damage, change or crash.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "fleet/job.h"
#include "waymark/fleet/local.h"
#include "waymark/fleet/merge.h"
#include "waymark/fleet/receipt.h"
#include "waymark/fleet/status.h"

namespace waymark::fleet {
namespace {

namespace fs = std::filesystem;

ShardOutcome run(const JobFolder& job, std::uint32_t shard, const DecodeCapture& decode = made) {
    auto outcome = run_shard(job, shard, decode, tested_options());
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? std::move(*outcome) : ShardOutcome{};
}

/// Decodes like `made`, except for captures whose name ends with this text.
DecodeCapture but_at(const std::string& end, std::function<Result<answers::Answers>()> what) {
    return [=](const PlannedCapture& c) { return c.path.ends_with(end) ? what() : made(c); };
}

TEST(FleetShard, IsDecodedOnce) {
    const MadeJob job({3});
    EXPECT_FALSE(run(job.folder(), 0).was_done);
    const std::string bytes = contents_of(job.folder().of_shard(0, "answers"));
    const ShardOutcome again = run(job.folder(), 0, [](const PlannedCapture&) -> Result<answers::Answers> { abort(); });
    EXPECT_TRUE(again.was_done);
    EXPECT_EQ(again.receipt.captures, 3U);
    EXPECT_EQ(contents_of(job.folder().of_shard(0, "answers")), bytes);
    // No other files are left.
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(job.folder().path() / "shards")) {
        static_cast<void>(entry);
        ++files;
    }
    EXPECT_EQ(files, 2U);
}

TEST(FleetShard, IsDecodedAgainWhereItsAnswersAreDamaged) {
    const MadeJob job({2});
    run(job.folder(), 0);
    const fs::path answers = job.folder().of_shard(0, "answers");
    const std::string bytes = contents_of(answers);
    std::string damaged = bytes;
    damaged[damaged.size() / 2] ^= 1;
    std::ofstream(answers, std::ios::binary) << damaged;
    EXPECT_FALSE(run(job.folder(), 0).was_done);
    EXPECT_EQ(contents_of(answers), bytes);
    fs::resize_file(answers, 10);
    EXPECT_FALSE(run(job.folder(), 0).was_done);
    EXPECT_EQ(contents_of(answers), bytes);
    // Killed between the renames of answers and receipt.
    fs::remove(job.folder().of_shard(0, "json"));
    EXPECT_FALSE(run(job.folder(), 0).was_done);
    EXPECT_EQ(contents_of(answers), bytes);
}

TEST(FleetShard, GoesOnPastACrash) {
    for (const int signal : {SIGSEGV, SIGABRT, SIGILL}) {
        const MadeJob job({4});
        const ShardOutcome outcome = run(job.folder(), 0, but_at("capture2", [signal]() -> Result<answers::Answers> {
                                             ::signal(signal, SIG_DFL);
                                             ::raise(signal);
                                             return Error{Errc::usage, "not reached"};
                                         }));
        EXPECT_EQ(outcome.failure, "");
        EXPECT_EQ(outcome.receipt.captures, 3U);
        ASSERT_EQ(outcome.receipt.not_decoded.size(), 1U);
        EXPECT_TRUE(outcome.receipt.not_decoded[0].what.ends_with("capture2"));
        EXPECT_NE(outcome.receipt.not_decoded[0].why.find("crashed"), std::string::npos);
        EXPECT_FALSE(outcome.receipt.not_decoded[0].worth_retrying);
        // The answers equal the answers of a job without this capture.
        std::vector<answers::Answers> others;
        for (const char* n : {"0", "1", "3"})
            others.push_back(made_answers((job.temporary().path() / "capture").string() + n));
        for (std::size_t i = 0; i < 3; ++i) others[i].capture = job.shard(0).captures[i < 2 ? i : 3].path;
        std::vector<const answers::Answers*> all;
        for (const answers::Answers& a : others) all.push_back(&a);
        ByteCollector expected;
        answers::write_answers(answers::merged(all), expected);
        const std::string bytes = contents_of(job.folder().of_shard(0, "answers"));
        EXPECT_EQ(std::vector<std::uint8_t>(bytes.begin(), bytes.end()), expected.bytes());
    }
}

TEST(FleetShard, NamesWhatCannotBeDecoded) {
    const MadeJob job({5});
    fs::remove(job.temporary().path() / "capture0");
    job.temporary().write("capture1", "other bytes than planned");
    const ShardOutcome outcome = run(job.folder(), 0, [](const PlannedCapture& c) -> Result<answers::Answers> {
        if (c.path.ends_with("capture2")) return Error{Errc::bad_format, "no trace"};
        auto answers = made_answers(c.path);
        if (c.path.ends_with("capture4")) answers.unit = "OTHER";
        return answers;
    });
    EXPECT_EQ(outcome.receipt.captures, 1U);
    const std::vector<NotDecoded>& names = outcome.receipt.not_decoded;
    ASSERT_EQ(names.size(), 4U);
    EXPECT_NE(names[0].why.find("cannot read"), std::string::npos);
    EXPECT_NE(names[1].why.find("changed since"), std::string::npos);
    EXPECT_EQ(names[2].why, "no trace");
    EXPECT_NE(names[3].why.find("unit OTHER"), std::string::npos);
    // The missing file may come back: the shard is run again, others are not.
    EXPECT_TRUE(names[0].worth_retrying);
    EXPECT_EQ(shards_to_run(job.folder(), true)->size(), 1U);
    EXPECT_EQ(shards_to_run(job.folder(), false)->size(), 0U);
    job.temporary().write("capture0", "bytes of capture0");
    EXPECT_EQ(run(job.folder(), 0).receipt.not_decoded.size(), 1U);
    EXPECT_EQ(shards_to_run(job.folder(), true)->size(), 0U);
}

TEST(FleetShard, RunsAgainWhereACaptureIsAsPlannedAgain) {
    const MadeJob job({2});
    const std::string planned = contents_of(job.temporary().path() / "capture1");
    job.temporary().write("capture1", planned + "more");
    EXPECT_EQ(run(job.folder(), 0).receipt.captures, 1U);
    EXPECT_EQ(shards_to_run(job.folder(), true)->size(), 0U) << "it is still another file";
    const auto why = [&] { return read_status(job.folder())->not_decoded.at(0).why; };
    EXPECT_EQ(why().find("as planned again"), std::string::npos) << why();
    job.temporary().write("capture1", planned);
    EXPECT_NE(why().find("as planned again"), std::string::npos) << why();
    EXPECT_EQ(shards_to_run(job.folder(), true)->size(), 1U);
    EXPECT_EQ(run(job.folder(), 0).receipt.captures, 2U);
    EXPECT_EQ(shards_to_run(job.folder(), true)->size(), 0U);
}

TEST(FleetShard, DamagedAnswersAreMadeAnew) {
    const MadeJob job({1});
    run(job.folder(), 0);
    const fs::path answers = job.folder().of_shard(0, "answers");
    const std::string good = contents_of(answers);
    std::string bad = good;
    bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
    EXPECT_TRUE(read_status(job.folder())->complete());
    std::ofstream(answers, std::ios::binary) << bad;
    // The size has not changed.
    const auto status = read_status(job.folder());
    EXPECT_EQ(status->done, 0U);
    EXPECT_EQ(status->captures_done, 0U);
    ASSERT_EQ(status->failures.size(), 1U);
    EXPECT_NE(status->failures[0].why.find("its hash differs"), std::string::npos) << status->failures[0].why;
    EXPECT_EQ(shards_to_run(job.folder(), false)->size(), 1U);
    run(job.folder(), 0);
    EXPECT_EQ(contents_of(answers), good);
    EXPECT_TRUE(read_status(job.folder())->complete());
    EXPECT_EQ(shards_to_run(job.folder(), false)->size(), 0U);
}

TEST(FleetShard, ACutCaptureIsNamed) {
    const MadeJob job({3});
    const ShardOutcome outcome = run(job.folder(), 0, [](const PlannedCapture& c) -> Result<answers::Answers> {
        auto answers = made_answers(c.path);
        if (!c.path.ends_with("capture1")) return answers;
        answers.cut = true;
        answers.health.insert(answers.health.begin(), {answers::Finding::Severity::bad, "80 bytes are missing"});
        return answers;
    });
    EXPECT_EQ(outcome.receipt.captures, 3U);
    const auto merged = merge_job(job.folder(), {});
    ASSERT_TRUE(merged);
    EXPECT_FALSE(merged->complete());
    ASSERT_EQ(merged->cut.size(), 1U);
    EXPECT_TRUE(merged->cut[0].what.ends_with("capture1"));
    EXPECT_EQ(merged->cut[0].why, "80 bytes are missing");
    const auto status = read_status(job.folder());
    ASSERT_TRUE(status);
    EXPECT_FALSE(status->complete());
}

TEST(FleetShard, WithoutAnyAnswersIsDone) {
    const MadeJob job({1, 1});
    const auto nothing = [](const PlannedCapture&) -> Result<answers::Answers> {
        return Error{Errc::bad_format, "empty"};
    };
    EXPECT_EQ(run(job.folder(), 0, nothing).failure, "");
    EXPECT_TRUE(run(job.folder(), 0, nothing).was_done);
    run(job.folder(), 1);
    const auto merged = merge_job(job.folder(), {});
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->merged, 2U);
    EXPECT_EQ(merged->captures, 1U);
    EXPECT_EQ(merged->not_decoded.size(), 1U);
}

TEST(FleetShard, FailsWhereItWasKilledOrCannotWrite) {
    const MadeJob job({2});
    const ShardOutcome killed = run(job.folder(), 0, but_at("capture1", []() -> Result<answers::Answers> {
                                        ::raise(SIGKILL);
                                        return Error{Errc::usage, "not reached"};
                                    }));
    EXPECT_NE(killed.failure.find("signal 9"), std::string::npos);
    EXPECT_NE(killed.failure.find("capture1"), std::string::npos);
    const std::string why = why_missing(job.folder(), job.shard(0));
    EXPECT_NE(why.find("signal 9"), std::string::npos) << why;
    // A folder stands at the place of the answers.
    fs::create_directory(job.folder().of_shard(0, "answers"));
    const ShardOutcome unwritten = run(job.folder(), 0);
    EXPECT_NE(unwritten.failure.find("it is a folder"), std::string::npos) << unwritten.failure;
    EXPECT_EQ(read_last_words(job.folder(), 0)->attempts, 2U);
    fs::remove(job.folder().of_shard(0, "answers"));
    EXPECT_EQ(run(job.folder(), 0).failure, "");
    EXPECT_FALSE(read_last_words(job.folder(), 0));
}

TEST(FleetShard, OfAnotherVersionIsRefused) {
    const MadeJob job({1});
    EXPECT_EQ(run_shard(job.folder(), 0, made, {"2.0.0", 0}).error().code, Errc::usage);
    EXPECT_EQ(run_shard(job.folder(), 1, made, tested_options()).error().code, Errc::usage);
}

TEST(FleetShard, ByManyProcessesAtOnce) {
    const MadeJob job({3}), alone({3});
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto outcome = run_shard(job.folder(), 0, made, tested_options());
            ::_exit(outcome && outcome->failure.empty() ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ::waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
    }
    EXPECT_TRUE(finished_shard(job.folder(), job.shard(0), true));
}

TEST(FleetLocal, RunsEverythingAndOnlyWhatIsMissing) {
    const MadeJob job({2, 1, 3, 1});
    LocalOptions options;
    options.workers = 3;
    options.shard = tested_options();
    run(job.folder(), 2);
    const auto outcome = run_locally(job.folder(), made, options);
    ASSERT_TRUE(outcome) << outcome.error().message;
    EXPECT_EQ(outcome->were_done, 1U);
    EXPECT_EQ(outcome->ran, 3U);
    const auto status = read_status(job.folder());
    EXPECT_TRUE(status->complete());
    EXPECT_EQ(status->captures_done, 7U);
    EXPECT_EQ(run_locally(job.folder(), made, options)->were_done, 4U);
}

TEST(FleetLocal, TriesAgainAndNamesWhatFails) {
    const MadeJob job({1, 1, 1});
    LocalOptions options;
    options.workers = 2;
    options.shard = tested_options();
    // capture0 is killed once, capture1 always.
    const fs::path mark = job.temporary().path() / "mark";
    const auto outcome = run_locally(
        job.folder(),
        [&](const PlannedCapture& c) -> Result<answers::Answers> {
            if (c.path.ends_with("capture1") || (c.path.ends_with("capture0") && !fs::exists(mark))) {
                std::ofstream(mark) << "once";
                ::raise(SIGKILL);
            }
            return made(c);
        },
        options);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->failed, std::vector<std::uint32_t>{1});
    const auto merged = merge_job(job.folder(), {});
    ASSERT_TRUE(merged);
    EXPECT_FALSE(merged->complete());
    ASSERT_EQ(merged->missing.size(), 1U);
    EXPECT_EQ(merged->missing[0].number, 1U);
    EXPECT_NE(merged->missing[0].why.find("signal 9"), std::string::npos);
    const auto status = read_status(job.folder());
    EXPECT_EQ(status->failed, 1U);
    EXPECT_EQ(status->done, 2U);
}

}  // namespace
}  // namespace waymark::fleet
