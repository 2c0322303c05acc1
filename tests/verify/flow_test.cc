// Recordings compared with truths that agree, and with truths that do not.
#include "waymark/verify/flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "support/block_definitions.h"
#include "support/temporary_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/pft/unit.h"
#include "waymark/record/recorder.h"

namespace waymark::verify {
namespace {

class VerifyFlow : public testing::Test {
protected:
    /// Two threads; the second enters the same function again and again.
    void record(bool ranges, std::uint64_t buffer_bytes = 0) {
        record::RecorderOptions options{.folder = folder_.path(), .truth_ranges = ranges};
        options.units = &pft::unit_factory();
        options.unit = options.units->defaults();
        options.buffer_bytes = buffer_bytes;
        const auto recorder = record::Recorder::create(std::move(options));
        ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
        constexpr std::uint32_t nop = 0xe320f000, bx_lr = 0xe12fff1e;
        support::Definitions d;
        d.block(1, 0x8000, {nop, bx_lr});
        d.block(2, 0x9000, {nop, nop, bx_lr});
        (*recorder)->definitions(d.words);
        for (int i = 0; i < 500; ++i) {
            (*recorder)->execution(1, std::vector<std::uint32_t>{1, 2, 1});
            (*recorder)->execution(2, std::vector<std::uint32_t>{2, 2, 2});
        }
        ASSERT_TRUE((*recorder)->finish(true).has_value());
        auto truth = record::read_truth(folder_.path());
        ASSERT_TRUE(truth.has_value());
        truth_ = std::move(*truth);
        ASSERT_EQ(truth_.sources.size(), 2U);
    }
    VerifiedFlow verified() {
        auto capture = capture::read_snapshot(folder_.path());
        EXPECT_TRUE(capture.has_value());
        auto session = pipeline::make_session(std::move(*capture), {});
        EXPECT_TRUE(session.has_value());
        session_ = std::make_unique<pipeline::Session>(std::move(*session));
        return verify_flow(*session_, *session_->select({}), truth_, folder_.path(), nullptr);
    }
    const TemporaryFolder folder_;
    record::Truth truth_;
    std::unique_ptr<pipeline::Session> session_;
};

TEST_F(VerifyFlow, WhatExecutedIsDecoded) {
    record(true);
    const VerifiedFlow all = verified();
    ASSERT_EQ(all.sources.size(), 2U);
    EXPECT_EQ(all.verdict(), Verdict::equal);
    EXPECT_EQ(all.instructions, truth_.sources[0].instructions + truth_.sources[1].instructions);
    for (const VerifiedSource& s : all.sources) {
        EXPECT_EQ(s.executed.hash, s.decoded.hash);
        EXPECT_TRUE(s.has_ranges);
        EXPECT_FALSE(s.difference.has_value());
        EXPECT_TRUE(s.around.empty());
    }
}

TEST_F(VerifyFlow, ADifferenceHasItsPlaceAndThePacketsAroundIt) {
    record(true);
    // Compares the first source with the execution of the second.
    std::swap(truth_.sources[0].file, truth_.sources[1].file);
    truth_.sources[0].hash ^= 1;
    const VerifiedFlow all = verified();
    EXPECT_EQ(all.verdict(), Verdict::different);
    const VerifiedSource& s = all.sources.front();
    ASSERT_EQ(s.verdict, Verdict::different);
    ASSERT_TRUE(s.difference.has_value());
    EXPECT_EQ(s.difference->number, 1U);
    ASSERT_TRUE(s.difference->executed && s.difference->decoded);
    EXPECT_EQ(s.difference->executed->start, 0x9000U);
    EXPECT_EQ(s.difference->decoded->start, 0x8000U);
    EXPECT_EQ(std::count_if(s.around.begin(), s.around.end(), [](const PacketNear& p) { return p.here; }), 1);
}

TEST_F(VerifyFlow, WithoutRangesSumsDecide) {
    record(false);
    EXPECT_EQ(verified().verdict(), Verdict::equal);
    ++truth_.sources[1].ranges;
    const VerifiedFlow all = verified();
    EXPECT_EQ(all.sources[0].verdict, Verdict::equal);
    EXPECT_EQ(all.sources[1].verdict, Verdict::different);
    EXPECT_FALSE(all.sources[1].has_ranges);
    EXPECT_TRUE(all.sources[1].around.empty());
}

TEST_F(VerifyFlow, LossesAreToBeDeclaredByTheTrace) {
    record(false);
    truth_.sources[0].lost_ranges = 3;
    EXPECT_EQ(verified().sources[0].verdict, Verdict::different);
}

TEST_F(VerifyFlow, WhatTheTruthDoesNotCoverIsNotCompared) {
    record(false);
    truth_.sources[0].source = "another";
    VerifiedFlow all = verified();
    EXPECT_FALSE(all.sources[0].named);
    EXPECT_EQ(all.verdict(), Verdict::not_compared);
    // For a recording that was cut off, only ranges can be compared.
    truth_.complete = false;
    all = verified();
    EXPECT_EQ(all.sources[1].verdict, Verdict::not_compared);
}

TEST_F(VerifyFlow, OfABufferThatWrappedTheEndIsCompared) {
    record(true, 256);
    ASSERT_TRUE(truth_.sources[0].wrapped);
    const VerifiedFlow all = verified();
    EXPECT_TRUE(all.wrapped);
    EXPECT_EQ(all.verdict(), Verdict::equal);
    EXPECT_LT(all.sources[0].decoded.ranges, truth_.sources[0].ranges);
    truth_.sources[0].file.clear();
    EXPECT_EQ(verified().sources[0].verdict, Verdict::not_compared);
}

TEST_F(VerifyFlow, AFileOfTheTruthThatIsMissingIsAWarning) {
    record(true);
    truth_.sources[0].file = "gone";
    const VerifiedFlow all = verified();
    EXPECT_EQ(all.warnings.size(), 1U);
    EXPECT_EQ(all.verdict(), Verdict::equal);
}

}  // namespace
}  // namespace waymark::verify
