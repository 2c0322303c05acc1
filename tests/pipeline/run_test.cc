/// Whole captures: frames and bare bytes, every byte accounted for, offsets that point into the buffer.
#include "waymark/pipeline/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/coresight/bypass.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/encoder.h"

namespace waymark::pipeline {
namespace {

using coresight::TraceId;

/// A stream of A-sync, I-sync and atoms on `b .` at 0x8000; `count` of them.
std::vector<std::uint8_t> trace(std::size_t count) {
    const pft::Config config;
    std::vector<std::uint8_t> atom, out;
    pft::encode(atom, pft::Atom{.outcome = {.atoms = {5, 0}, .cycles = 0}}, config);
    EXPECT_EQ(atom.size(), 1U);
    for (std::size_t i = 0; i < count; i += 1000) {
        pft::encode(out, pft::ASync{}, config);
        pft::ISync isync;
        isync.address_31_1 = 0x8000 >> 1;
        isync.reason = i == 0 ? pft::ISyncReason::trace_enabled : pft::ISyncReason::periodic;
        pft::encode(out, isync, config);
        out.insert(out.end(), std::min<std::size_t>(1000, count - i), atom.front());
    }
    return out;
}

class RunTest : public ::testing::Test {
protected:
    std::filesystem::path write(const std::string& name, const std::vector<std::uint8_t>& bytes) {
        const std::filesystem::path path = folder_.path() / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return path;
    }
    capture::Capture capture(const std::filesystem::path& file, capture::Buffer::Format format,
                             std::vector<std::uint8_t> ids) {
        capture::RawOptions raw;
        raw.format = format;
        raw.source_type = "PTM1.1";
        raw.registers = {{"ETMCR", 0}, {"ETMCCER", 0}, {"ETMIDR", 0x411cf312}, {"ETMTRACEIDR", ids.front()}};
        capture::Capture c = capture::raw_capture(file, raw);
        for (std::size_t i = 1; i < ids.size(); ++i) {
            capture::Source s = c.sources.front();
            s.name += std::to_string(i);
            s.registers.back().value = ids[i];
            c.buffers.front().sources.push_back(s.name);
            c.sources.push_back(s);
        }
        c.dumps.push_back({"", write("code.bin", {0xfe, 0xff, 0xff, 0xea}), {0x8000}, 0, {}, ""});
        return c;
    }
    struct Outcome {
        Report report;
        std::vector<flow::Totals> totals;
    };
    static Outcome decode(const Session& session, unsigned jobs = 1) {
        const auto selected = session.select({});
        std::vector<std::unique_ptr<flow::Summary>> sinks;
        Outcome out;
        out.report = run(session, *selected, [&](const StreamInfo& stream) {
            sinks.push_back(std::make_unique<flow::Summary>());
            return flow_consumer(stream, *sinks.back(), DecoderKind::fast, jobs);
        });
        for (const auto& sink : sinks) out.totals.push_back(sink->totals());
        return out;
    }

    TemporaryFolder folder_;
};

TEST_F(RunTest, BareBytesWithEndMark) {
    std::vector<std::uint8_t> bytes = trace(2500);
    const std::size_t size = bytes.size();
    coresight::append_bypass_padding(bytes, 8);
    const auto session = make_session(capture(write("t.bin", bytes), capture::Buffer::Format::source_data, {0x10}), {});
    ASSERT_TRUE(session.has_value());
    const Outcome got = decode(*session);
    ASSERT_EQ(got.totals.size(), 1U);
    EXPECT_EQ(got.totals[0].ranges, 12500U);
    EXPECT_FALSE(got.totals[0].has_gaps());
    EXPECT_EQ(got.report.streams[0].bytes, size);
    EXPECT_EQ(got.report.streams[0].padding, bytes.size() - size);
    EXPECT_EQ(got.report.buffers[0].bytes, bytes.size());
}

TEST_F(RunTest, FramesOfTwoSourcesLargerThanAPiece) {
    const std::vector<std::uint8_t> a = trace(3'600'000), b = trace(900'000);
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    const auto piece = [](Bytes bytes, std::size_t number, std::size_t size) {
        const std::size_t from = std::min(number * size, bytes.size());
        return bytes.subspan(from, std::min(size, bytes.size() - from));
    };
    for (std::size_t i = 0; !piece(a, i, 12).empty(); ++i) {
        formatter.add(TraceId{0x10}, piece(a, i, 12));
        formatter.add(TraceId{0x11}, piece(b, i, 3));
    }
    formatter.flush();
    const auto session =
        make_session(capture(write("t.bin", frames), capture::Buffer::Format::coresight, {0x10, 0x11}), {});
    ASSERT_TRUE(session.has_value());
    for (const unsigned jobs : {1U, 2U, 3U, 7U}) {
        if (sanitized && jobs != 1 && jobs != 3) continue;
        SCOPED_TRACE(std::to_string(jobs) + " jobs");
        const Outcome got = decode(*session, jobs);
        ASSERT_EQ(got.totals.size(), 2U);
        EXPECT_EQ(got.totals[0].ranges, 18'000'000U);
        EXPECT_EQ(got.totals[1].ranges, 4'500'000U);
        EXPECT_EQ(got.report.streams[0].bytes, a.size());
        EXPECT_EQ(got.report.streams[1].bytes, b.size());
        EXPECT_FALSE(got.totals[0].has_gaps() || got.totals[1].has_gaps());
        EXPECT_EQ(got.report.buffers[0].frames.accounted(), frames.size());
        // 3 600 000 atom packets, and an A-sync and an I-sync before each thousand.
        EXPECT_EQ(packets(*got.report.streams[0].consumer), 3'607'200U);
    }
}

/// Asks for counts alone.
class Edges final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        EXPECT_TRUE(batch.ranges.empty());
        events += batch.events.size();
    }
    [[nodiscard]] bool counts_suffice() const override { return true; }
    void take_counts(const flow::EdgeCounts& counts) override {
        ASSERT_FALSE(counts.blocks.empty());
        EXPECT_EQ(counts.blocks[0].start, 0x8000U);
        not_taken = counts.times[0];
        taken = counts.times[1];
    }
    std::uint64_t taken = 0, not_taken = 0, events = 0;
};

TEST_F(RunTest, CountsInsteadOfRanges) {
    const auto session =
        make_session(capture(write("t.bin", trace(100'000)), capture::Buffer::Format::source_data, {0x10}), {});
    ASSERT_TRUE(session.has_value());
    const auto selected = session->select({});
    for (const unsigned jobs : {1U, 2U, 3U, 7U}) {
        Edges sink;
        (void)run(*session, *selected,
                  [&](const StreamInfo& stream) { return flow_consumer(stream, sink, DecoderKind::fast, jobs); });
        EXPECT_EQ(sink.taken, 500'000U);
        EXPECT_EQ(sink.not_taken, 0U);
        EXPECT_EQ(sink.events, 2U);  // trace on, context
    }
}

/// Remembers where each gap began, in the buffer.
class GapPlaces final : public flow::Sink {
public:
    explicit GapPlaces(const OffsetMap& offsets) : offsets_(offsets) {}
    void consume(const flow::Batch& batch) override {
        for (const flow::Event& event : batch.events)
            if (const Gap* gap = std::get_if<Gap>(&event.what)) places.push_back(offsets_.capture(gap->first).value);
    }
    std::vector<std::uint64_t> places;

private:
    const OffsetMap& offsets_;
};

// A gap that begins in one piece of the buffer and ends two pieces later is still reported where it began.
TEST_F(RunTest, GapsOverManyPiecesKeepTheirPlace) {
    std::vector<std::uint8_t> bytes = trace(1000);
    const std::size_t bad = bytes.size();
    bytes.insert(bytes.end(), 10 << 20, 0x02);
    const std::vector<std::uint8_t> more = trace(1000);
    bytes.insert(bytes.end(), more.begin(), more.end());
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    formatter.add(TraceId{0x10}, bytes);
    formatter.flush();
    const auto session = make_session(capture(write("t.bin", frames), capture::Buffer::Format::coresight, {0x10}), {});
    ASSERT_TRUE(session.has_value());
    const auto selected = session->select({});
    const auto places = [&](unsigned jobs) {
        std::unique_ptr<GapPlaces> sink;
        const Report report = run(*session, *selected, [&](const StreamInfo& stream) {
            sink = std::make_unique<GapPlaces>(stream.offsets);
            return flow_consumer(stream, *sink, DecoderKind::fast, jobs);
        });
        return sink->places;
    };
    const std::vector<std::uint64_t> found = places(1);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(places(2), found);
    // Of which frame byte the bad byte is can be told by taking the frames apart once more.
    struct Find {
        std::size_t want, seen = 0;
        std::uint64_t place = 0;
        void data(TraceId, Bytes piece, Offset first) {
            if (want >= seen && want < seen + piece.size()) place = first.value + (want - seen);
            seen += piece.size();
        }
        void trigger(TraceId, Offset, std::uint8_t) {}
        void gap(const Gap&) {}
        void reset(Offset) {}
    } find{bad};
    coresight::Deformatter deformatter;
    deformatter.feed(frames, find);
    deformatter.finish(find);
    EXPECT_EQ(found[0], find.place);
}

TEST_F(RunTest, AMissingBufferIsReported) {
    const auto session =
        make_session(capture(folder_.path() / "none.bin", capture::Buffer::Format::coresight, {0x10}), {});
    ASSERT_TRUE(session.has_value());
    const Outcome got = decode(*session);
    ASSERT_TRUE(got.report.buffers[0].error.has_value());
    EXPECT_EQ(got.report.buffers[0].error->code, Errc::not_found);
    EXPECT_EQ(got.report.streams[0].bytes, 0U);
}

TEST_F(RunTest, ContradictionsInTheDescriptionAreProblems) {
    capture::Capture c = capture(write("t.bin", trace(1)), capture::Buffer::Format::coresight, {0x10, 0x10});
    c.sources[0].type = "PTM1.0";                                  // ETMIDR says v1.1
    c.sources[1].registers.erase(c.sources[1].registers.begin());  // no ETMCR
    c.sources[1].file = "two.ini";
    c.dumps.front().space = "Q";
    const auto session = make_session(std::move(c), {});
    ASSERT_TRUE(session.has_value());
    std::string all;
    for (const capture::Problem& p : session->problems) all += p.message + "\n";
    EXPECT_NE(all.find("says PFT v1.1"), std::string::npos) << all;
    EXPECT_NE(all.find("no register ETMCR"), std::string::npos) << all;
    EXPECT_NE(all.find("both have trace ID 0x10"), std::string::npos) << all;
    EXPECT_NE(all.find("memory space 'Q'"), std::string::npos) << all;
}

TEST_F(RunTest, SelectionByIdAndName) {
    const auto session =
        make_session(capture(write("t.bin", trace(1)), capture::Buffer::Format::coresight, {0x10, 0x11}), {});
    ASSERT_TRUE(session.has_value());
    EXPECT_EQ(session->select({})->size(), 2U);
    EXPECT_EQ(session->select({"0x11"}).value()[0]->trace_id->value, 0x11);
    EXPECT_EQ(session->select({"17", "0x11"})->size(), 1U);
    EXPECT_EQ(session->select({session->sources[0].name}).value()[0], &session->sources[0]);
    EXPECT_FALSE(session->select({"0x12"}).has_value());
}

}  // namespace
}  // namespace waymark::pipeline
