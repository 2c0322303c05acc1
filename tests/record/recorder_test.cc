#include "waymark/record/recorder.h"

#include <gtest/gtest.h>

#include "support/block_definitions.h"
#include "support/temporary_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/unit.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::record {
namespace {

using support::Definitions;

constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e, mov_1 = 0xe3a00001;

/// A recorder for PTMs.
Result<std::unique_ptr<Recorder>> create(RecorderOptions options) {
    options.units = &pft::unit_factory();
    options.unit = options.units->defaults();
    return Recorder::create(std::move(options));
}

struct Source {
    std::string name;
    flow::Totals totals;
};

/// `part`: the capture states that the run went on.
std::vector<Source> decode(const std::filesystem::path& folder, bool part = false) {
    auto capture = capture::read_snapshot(folder);
    EXPECT_TRUE(capture.has_value());
    if (!capture) return {};
    EXPECT_EQ(capture->problems.size(), part ? 1U : 0U);
    for (const capture::Problem& problem : capture->problems)
        EXPECT_EQ(problem.kind, capture::Problem::Kind::part) << capture::to_string(problem);
    const auto session = pipeline::make_session(std::move(*capture), {});
    EXPECT_TRUE(session.has_value());
    std::vector<std::unique_ptr<flow::Summary>> sums;
    std::vector<Source> out;
    const auto selected = session->select({});
    static_cast<void>(pipeline::run(*session, *selected, [&](const pipeline::StreamInfo& stream) {
        out.push_back({stream.source.name, {}});
        sums.push_back(std::make_unique<flow::Summary>());
        return pipeline::flow_consumer(stream, *sums.back(), pipeline::DecoderKind::fast);
    }));
    for (std::size_t i = 0; i < out.size(); ++i) out[i].totals = sums[i]->totals();
    return out;
}

void expect_equal(const std::filesystem::path& folder, std::size_t sources, bool part = false) {
    const auto truth = read_truth(folder);
    ASSERT_TRUE(truth.has_value());
    EXPECT_TRUE(truth->complete);
    const auto decoded = decode(folder, part);
    ASSERT_EQ(decoded.size(), sources);
    ASSERT_EQ(truth->sources.size(), sources);
    for (std::size_t i = 0; i < sources; ++i) {
        EXPECT_EQ(truth->sources[i].source, decoded[i].name);
        EXPECT_EQ(truth->sources[i].ranges, decoded[i].totals.ranges);
        EXPECT_EQ(truth->sources[i].instructions, decoded[i].totals.instructions);
        EXPECT_EQ(truth->sources[i].hash, decoded[i].totals.hash);
        EXPECT_EQ(decoded[i].totals.no_memory, 0U);
    }
}

TEST(Recorder, ThreadsAreSourcesOfOneBuffer) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path() / "out", .description = "two; threads"});
    ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    d.block(2, 0x9000, {nop, svc});
    d.block(3, 0x9008, {nop, bx_lr});
    (*recorder)->definitions(d.words);
    for (int i = 0; i < 500; ++i) {
        (*recorder)->execution(1, std::vector<std::uint32_t>{1, 2, words::system_call, 3});
        (*recorder)->execution(2, std::vector<std::uint32_t>{1, 1, 1});
    }
    (*recorder)->execution(2, std::vector<std::uint32_t>{words::thread_end});
    ASSERT_TRUE((*recorder)->finish(true).has_value());
    EXPECT_EQ((*recorder)->recorded().threads, 2U);
    expect_equal(folder.path() / "out", 2);
}

TEST(Recorder, ChangedCodeBeginsANewBuffer) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path(), .truth_ranges = true});
    ASSERT_TRUE(recorder.has_value());
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    d.block(2, 0x8000, {mov_1, bx_lr});
    d.block(3, 0x8100, {nop, bx_lr});
    (*recorder)->definitions(d.words);
    (*recorder)->execution(1, std::vector<std::uint32_t>{1, 3, 1, 3, 2, 3, 2, 3, 1, 3});
    ASSERT_TRUE((*recorder)->finish(true).has_value());
    EXPECT_EQ((*recorder)->recorded().code_changes, 2U);
    expect_equal(folder.path(), 3);
}

TEST(Recorder, StopsWhereCodeChangesTooOften) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path(), .truth_ranges = true, .limit_changes = 3});
    ASSERT_TRUE(recorder.has_value());
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    d.block(2, 0x8000, {mov_1, bx_lr});
    (*recorder)->definitions(d.words);
    (*recorder)->execution(1, std::vector<std::uint32_t>{1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
    EXPECT_TRUE((*recorder)->stopped());
    ASSERT_TRUE((*recorder)->finish(true).has_value());
    EXPECT_TRUE((*recorder)->recorded().changed_too_often);
    EXPECT_EQ((*recorder)->recorded().code_changes, 3U);
    expect_equal(folder.path(), 4, true);
}

// A system's processor: a branch, an interrupt after it, the handler, and the return.
TEST(Recorder, InterruptsOfASystem) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path(), .truth_ranges = true, .system = true});
    ASSERT_TRUE(recorder.has_value());
    constexpr std::uint32_t subs_pc = 0xe25ef004;
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    d.block(2, 0x18, {nop, subs_pc});
    d.block(3, 0x8100, {nop, bx_lr});
    (*recorder)->definitions(d.words);
    const auto event = [](std::uint32_t number, std::uint32_t link, std::uint32_t vector) {
        return std::vector<std::uint32_t>{words::exception | number,  words::half | (link & 0xffff),
                                          words::half | link >> 16,   words::half | (vector & 0xffff),
                                          words::half | vector >> 16, words::half};
    };
    std::vector<std::uint32_t> chunk{words::state, 1};
    const auto add = [&](const std::vector<std::uint32_t>& more) {
        chunk.insert(chunk.end(), more.begin(), more.end());
    };
    add(event(5, 0x8100 + 4, 0x18));
    add({2, 3, 1});
    // The words of one event may come in two chunks.
    const auto second = event(5, 0x8100 + 4, 0x18);
    add({second.begin(), second.begin() + 3});
    (*recorder)->execution(1, chunk);
    chunk.assign(second.begin() + 3, second.end());
    add({2, 3, 1});
    (*recorder)->execution(1, chunk);
    ASSERT_TRUE((*recorder)->finish(true).has_value());
    expect_equal(folder.path(), 1);
    EXPECT_FALSE((*recorder)->recorded().unknown_vector);
    const auto sources = decode(folder.path());
    ASSERT_EQ(sources.size(), 1U);
    EXPECT_EQ(sources[0].totals.exceptions, 2U);
    EXPECT_EQ(sources[0].totals.instructions, 12U);
}

TEST(Recorder, MoreThreadsThanTraceIds) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path()});
    ASSERT_TRUE(recorder.has_value());
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    (*recorder)->definitions(d.words);
    for (std::uint32_t thread = 1; thread <= 200; ++thread)
        (*recorder)->execution(thread, std::vector<std::uint32_t>{1, 1, 1, words::thread_end});
    ASSERT_TRUE((*recorder)->finish(true).has_value());
    EXPECT_EQ((*recorder)->recorded().epochs, 3U);
    EXPECT_EQ((*recorder)->recorded().code_changes, 0U);
    expect_equal(folder.path(), 200);
}

TEST(Recorder, StartStopAndLimit) {
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    d.block(2, 0x9000, {nop, nop, bx_lr});
    const std::vector<std::uint32_t> run{1, 1, 2, 2, 1, 2};
    const auto record = [&](RecorderOptions options) {
        const TemporaryFolder folder;
        options.folder = folder.path();
        auto recorder = create(options);
        EXPECT_TRUE(recorder.has_value());
        (*recorder)->definitions(d.words);
        (*recorder)->execution(1, run);
        EXPECT_TRUE((*recorder)->finish(true).has_value());
        return (*recorder)->recorded();
    };
    EXPECT_EQ(record({}).ranges, 5U);
    const Recorded from = record({.start_at = Address{0x9004}});
    EXPECT_TRUE(from.began);
    EXPECT_EQ(from.instructions, 2U + 3 + 2);  // the last block entered is not known to have run
    const Recorded to = record({.stop_at = Address{0x9004}});
    EXPECT_TRUE(to.stopped);
    EXPECT_EQ(to.instructions, 2U + 2 + 1);
    EXPECT_FALSE(record({.start_at = Address{0x7000}}).began);
    EXPECT_EQ(record({.limit_instructions = 4}).instructions, 4U);
}

// The folder is read while it grows.
TEST(Recorder, ReadableAtAnyMoment) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path()});
    ASSERT_TRUE(recorder.has_value());
    for (std::uint32_t i = 0; i < 20; ++i) {
        Definitions d;
        d.block(i + 1, 0x8000 + 0x1000 * i, {nop, bx_lr});
        (*recorder)->definitions(d.words);
        std::vector<std::uint32_t> run;
        for (std::uint32_t k = 0; k < 200; ++k) run.push_back(k % (i + 1) + 1);
        (*recorder)->execution(1, run);
        ASSERT_TRUE((*recorder)->flush().has_value());
        const auto decoded = decode(folder.path(), true);
        ASSERT_EQ(decoded.size(), 1U);
        EXPECT_EQ(decoded[0].totals.no_memory, 0U);
    }
    EXPECT_FALSE(read_truth(folder.path())->complete);
}

TEST(Recorder, KeepsOffForeignFolders) {
    const TemporaryFolder folder;
    folder.write("letter.txt", "dear");
    const auto recorder = create({.folder = folder.path()});
    ASSERT_FALSE(recorder.has_value());
    EXPECT_EQ(recorder.error().code, Errc::usage);
}

TEST(Recorder, DamagedDefinitionsAreLeftOut) {
    const TemporaryFolder folder;
    auto recorder = create({.folder = folder.path()});
    ASSERT_TRUE(recorder.has_value());
    Definitions d;
    d.block(1, 0x8000, {nop, bx_lr});
    for (std::size_t n = 0; n < d.words.size(); ++n)
        (*recorder)->definitions(std::span<const std::uint32_t>(d.words).first(n));
    (*recorder)->execution(1, std::vector<std::uint32_t>{1, 7, 0x12345, words::cut | 99, words::kind_mask});
    EXPECT_TRUE((*recorder)->finish(true).has_value());
    EXPECT_EQ((*recorder)->recorded().instructions, 0U);
}

}  // namespace
}  // namespace waymark::record
