/// Whole captures: frames and bare bytes, every byte accounted for, offsets that point into the buffer.
#include "waymark/pipeline/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/capture/byte_file.h"
#include "waymark/coresight/bypass.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/encoder.h"
#include "waymark/pipeline/damage.h"

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
        out.report = run(session, *selected, [&](const StreamInfo& stream) -> std::unique_ptr<Consumer> {
            if (!stream.source.has_flow()) return nullptr;
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
        if (sanitized && jobs != 3) continue;
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

/// What is in frames, from a part of a buffer on that begins `base` bytes into it.
coresight::Totals added(coresight::Totals to, const coresight::Totals& from, std::uint64_t base) {
    using T = coresight::Totals;
    for (std::uint64_t T::*const each :
         {&T::bytes_read, &T::id_bytes, &T::aux_bytes, &T::fsyncs, &T::hsyncs, &T::footer_bytes, &T::unassociated,
          &T::frames, &T::barriers, &T::damaged_frames, &T::sync_losses})
        to.*each += from.*each;
    for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += from.data[i];
    for (std::size_t i = 0; i < to.lost.size(); ++i) to.lost[i] += from.lost[i];
    for (std::optional<Offset> T::*const each : {&T::first_forbidden, &T::first_id, &T::first_fsync})
        if (!(to.*each) && from.*each) to.*each = *(from.*each) + base;
    return to;
}

TEST_F(RunTest, FramesOfPartsAddUp) {
    const std::vector<std::uint8_t> bytes = trace(3000);
    const auto frames = [&](bool with_barrier) {
        std::vector<std::uint8_t> out;
        // Without a barrier the first bytes have no ID.
        coresight::Formatter formatter(out, {.initial_id = with_barrier ? std::nullopt : std::optional(TraceId{0x10})});
        formatter.add(TraceId{0x10}, bytes);
        if (with_barrier) formatter.barrier();
        formatter.add(TraceId{0x10}, bytes);
        formatter.flush();
        return out;
    };
    const std::vector<std::uint8_t> first = frames(false);
    std::vector<std::uint8_t> second = frames(true);
    second[second.size() / 64 * 16] = 0xff;  // the forbidden ID
    const auto counted = [&](const std::vector<std::uint8_t>& file, std::vector<capture::BufferPart> parts) {
        capture::Capture c = capture(write("t.bin", file), capture::Buffer::Format::coresight, {0x10});
        c.buffers.front().container = capture::byte_file_from_memory(file);
        c.buffers.front().parts = std::move(parts);
        const auto session = make_session(std::move(c), {});
        EXPECT_TRUE(session.has_value());
        return decode(*session).report.buffers[0].frames;
    };
    const std::uint64_t size = second.size();
    const coresight::Totals one = counted(first, {{0, first.size()}}), other = counted(second, {{0, size}});
    EXPECT_EQ(one.accounted(), first.size());
    EXPECT_EQ(other.accounted(), size);
    EXPECT_NE(one.unassociated, 0U);
    EXPECT_EQ(other.barriers, 1U);
    EXPECT_EQ(other.fsyncs, 4U);
    EXPECT_EQ(other.damaged_frames, 1U);
    EXPECT_EQ(other.first_forbidden, Offset{size / 64 * 16});
    EXPECT_EQ(other.first_id, Offset{0});
    std::vector<std::uint8_t> file = first;
    for (unsigned i = 0; i < 2; ++i) file.insert(file.end(), second.begin(), second.end());
    EXPECT_EQ(counted(file, {{0, first.size()}, {first.size(), size}, {first.size() + size, size}}),
              added(added(one, other, first.size()), other, first.size() + size));
}

/// Requests only counts.
class Edges final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        for (const flow::Range& range : batch.ranges) EXPECT_EQ(range.times, 0U);
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

// A gap that begins in one piece of the buffer and ends two pieces later is reported where it began.
TEST_F(RunTest, GapsOverManyPiecesKeepTheirPlace) {
    std::vector<std::uint8_t> bytes = trace(1000);
    const std::size_t bad = bytes.size();
    bytes.insert(bytes.end(), sized(10U, 5U) << 20, 0x02);
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
    // The frame byte that contains the bad byte; it is found by a second walk through the frames.
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

/// Frames of two sources in turn, with the place of every ID byte.
struct TwoSources {
    std::vector<std::uint8_t> frames;
    std::vector<std::size_t> id_bytes;
    TwoSources() {
        const std::vector<std::uint8_t> a = trace(40'000), b = trace(10'000);
        coresight::Formatter formatter(frames);
        for (std::size_t i = 0; 3 * i < b.size(); ++i) {
            formatter.add(TraceId{0x10}, Bytes(a).subspan(12 * i, std::min<std::size_t>(12, a.size() - 12 * i)));
            formatter.add(TraceId{0x11}, Bytes(b).subspan(3 * i, std::min<std::size_t>(3, b.size() - 3 * i)));
        }
        formatter.flush();
        for (std::size_t at = 0; at < frames.size(); at += 2)
            if (at % 16 != 15 && (frames[at] & 1) != 0) id_bytes.push_back(at);
    }
};

// Bytes to which damage gives an unknown ID are missing from a source: every stream has a gap at their place.
TEST_F(RunTest, BytesUnderStrangeIdsAreReported) {
    const TwoSources two;
    const std::size_t at = two.id_bytes[two.id_bytes.size() / 2];
    for (const unsigned id : {0x33U, 0x70U, 0x7cU, 0x00U, 0x7dU, 0x7bU}) {
        SCOPED_TRACE(id);
        std::vector<std::uint8_t> frames = two.frames;
        frames[at] = static_cast<std::uint8_t>(id << 1 | 1);
        const auto session =
            make_session(capture(write("t.bin", frames), capture::Buffer::Format::coresight, {0x10, 0x11}), {});
        ASSERT_TRUE(session.has_value());
        const Outcome got = decode(*session);
        const BufferReport& buffer = got.report.buffers[0];
        ASSERT_EQ(buffer.strays.size(), 1U);
        EXPECT_EQ(buffer.strays[0].id.value, id);
        EXPECT_EQ(buffer.strays[0].stretches, 1U);
        EXPECT_TRUE(buffer.strays[0].damage);
        EXPECT_GT(buffer.strays[0].bytes, 0U);
        EXPECT_GT(buffer.strays[0].first.value, at);
        EXPECT_LE(buffer.strays[0].first.value, at + 16);
        for (const flow::Totals& totals : got.totals)
            EXPECT_EQ(totals.gaps[static_cast<unsigned>(GapReason::framing)].times +
                          totals.gaps[static_cast<unsigned>(GapReason::unsynchronised)].times,
                      coresight::is_source({static_cast<std::uint8_t>(id)}) ? 0U : 2U);
    }
}

TEST_F(RunTest, WhatIsNoDamageIsNotReported) {
    const TwoSources two;
    // A source without a description announces itself again and again: it is reported, and does not affect the others.
    const auto described = [&](std::vector<std::uint8_t> ids, bool with_others = false) {
        capture::Capture c = capture(write("t.bin", two.frames), capture::Buffer::Format::coresight, std::move(ids));
        c.buffers.front().other_sources = with_others;
        const auto session = make_session(std::move(c), {});
        EXPECT_TRUE(session.has_value());
        return decode(*session);
    };
    const Outcome one = described({0x10});
    ASSERT_EQ(one.report.buffers[0].strays.size(), 1U);
    EXPECT_FALSE(one.report.buffers[0].strays[0].damage);
    EXPECT_EQ(one.totals[0].ranges, 200'000U);
    EXPECT_FALSE(one.totals[0].has_gaps());
    EXPECT_TRUE(described({0x10}, true).report.buffers[0].strays.empty());
    EXPECT_TRUE(described({0x10, 0x11}).report.buffers[0].strays.empty());
    // A source that is described but not decoded does not count as unknown, and neither do triggers.
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    const std::vector<std::uint8_t> bytes = trace(5000);
    formatter.add(TraceId{0x10}, Bytes(bytes).first(2000));
    formatter.add(coresight::trigger_id, std::vector<std::uint8_t>{0x10});
    formatter.add(TraceId{0x10}, Bytes(bytes).subspan(2000, 1000));
    formatter.add(coresight::trigger_id, std::vector<std::uint8_t>{0x00});
    formatter.add(TraceId{0x12}, std::vector<std::uint8_t>(100, 0xaa));
    formatter.add(TraceId{0x10}, Bytes(bytes).subspan(3000));
    formatter.flush();
    capture::Capture c = capture(write("u.bin", frames), capture::Buffer::Format::coresight, {0x10, 0x12});
    c.sources[1].type = "ITM";
    c.sources[1].registers = {{"ITMTCR", 0x00120000}};
    const auto session = make_session(std::move(c), {});
    ASSERT_TRUE(session.has_value());
    EXPECT_TRUE(decode(*session).report.buffers[0].strays.empty());
}

TEST_F(RunTest, ASourceThatFallsSilentInsideAPacketIsReported) {
    std::vector<std::uint8_t> a = trace(1000), b = trace(5000);
    a.push_back(0x08);  // an I-sync that is cut
    const auto silent = [&](std::size_t rest) {
        std::vector<std::uint8_t> frames;
        coresight::Formatter formatter(frames);
        formatter.add(TraceId{0x11}, Bytes(b).first(b.size() - rest));
        formatter.add(TraceId{0x10}, a);
        formatter.add(TraceId{0x11}, Bytes(b).last(rest));
        formatter.flush();
        const auto session =
            make_session(capture(write("t.bin", frames), capture::Buffer::Format::coresight, {0x10, 0x11}), {});
        EXPECT_TRUE(session.has_value());
        Outcome got = decode(*session);
        EXPECT_FALSE(got.report.streams[1].silent_from.has_value());
        return got.report.streams[0].silent_from.has_value() ? got.report.streams[0].bytes_of_others : 0;
    };
    EXPECT_EQ(silent(2000), 2000U);
    EXPECT_EQ(silent(20), 0U);  // at the end of the recording, that is normal
}

// 0x01 at the end of bare bytes is an end mark unless the packet before it needs it.
TEST_F(RunTest, TheLastPacketKeepsABytePutForAnEndMark) {
    struct Case {
        std::vector<std::uint8_t> end;
        std::uint64_t etmcr, padding;
    };
    const Case cases[] = {
        {{0x3c, 0x01}, 1U << 30, 0},                                // VMID 1
        {{0x3c, 0x01, 0x01, 0x00}, 1U << 30, 2},                    // and an end mark
        {{0x6e, 0x01}, 1U << 14, 0},                                // Context ID 1
        {{0x6e, 0x01, 0x00, 0x00, 0x00}, 3U << 14, 0},              // of four bytes
        {{0x6e, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00}, 3U << 14, 2},  // and an end mark
        {{0xc0, 0x01}, 1U << 12, 0},                                // an atom with 16 cycles
        {{0xc0, 0x01, 0x01}, 1U << 12, 1},
        {{0x84, 0x01, 0x00}, 0, 2},
    };
    for (const Case& c : cases) {
        // The cycle-accurate stream needs no other bytes: all I-syncs have a count.
        std::vector<std::uint8_t> bytes{0, 0, 0, 0, 0, 0x80, 0x08, 0x00, 0x80, 0x00, 0x00, 0x01};
        if (c.etmcr == 1U << 14) bytes.push_back(0x07);
        if (c.etmcr == 3U << 14) bytes.insert(bytes.end(), 4, 0x07);
        bytes.insert(bytes.end(), c.end.begin(), c.end.end());
        SCOPED_TRACE(c.end.size());
        for (const DecoderKind kind : {DecoderKind::fast, DecoderKind::reference})
            for (const unsigned jobs : {1U, 3U}) {
                capture::Capture described =
                    capture(write("t.bin", bytes), capture::Buffer::Format::source_data, {0x10});
                described.sources.front().registers.front().value = c.etmcr;
                const auto session = make_session(std::move(described), {});
                ASSERT_TRUE(session.has_value());
                flow::Summary sink;
                const Report report = run(*session, *session->select({}), [&](const StreamInfo& stream) {
                    return flow_consumer(stream, sink, kind, jobs);
                });
                EXPECT_EQ(report.streams[0].padding, c.padding);
                EXPECT_EQ(report.streams[0].bytes, bytes.size() - c.padding);
                EXPECT_EQ(sink.totals().gaps[static_cast<unsigned>(GapReason::incomplete_packet)].times, 0U);
                EXPECT_EQ(sink.totals().contexts, c.etmcr == 1U << 12 || c.etmcr == 0 ? 1U : 2U);
            }
    }
}

TEST_F(RunTest, BlocksOfADstreamAreDecodedWithoutTheirFooters) {
    const std::vector<std::uint8_t> bytes = trace(30'000);
    std::vector<std::uint8_t> port, blocks;
    coresight::Formatter formatter(port, {.full_sync_frames = 5});
    formatter.add(TraceId{0x10}, bytes);
    formatter.flush();
    for (const std::uint8_t byte : port) {
        blocks.push_back(byte);
        if (blocks.size() % 512 == 504)
            for (unsigned i = 0; i < 8; ++i) blocks.push_back(static_cast<std::uint8_t>(blocks.size() * 37 >> i));
    }
    for (const auto* file : {&port, &blocks}) {
        const auto session =
            make_session(capture(write("t.bin", *file), capture::Buffer::Format::dstream_coresight, {0x10}), {});
        ASSERT_TRUE(session.has_value());
        const Outcome got = decode(*session);
        EXPECT_EQ(got.totals[0].ranges, 150'000U);
        EXPECT_FALSE(got.totals[0].has_gaps());
        EXPECT_EQ(got.report.streams[0].bytes, bytes.size());
        EXPECT_EQ(got.report.buffers[0].layout.footers, file == &blocks);
        EXPECT_EQ(got.report.buffers[0].frames.footer_bytes, file->size() - port.size());
        EXPECT_EQ(got.report.buffers[0].frames.accounted(), file->size());
    }
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

TEST_F(RunTest, ADumpThatSeveralCoresListIsInMemoryOnce) {
    capture::Capture c = capture(write("t.bin", trace(1)), capture::Buffer::Format::source_data, {0x10});
    c.sources.front().core.clear();
    const capture::MemoryDump first = c.dumps.front();
    const auto add = [&](auto change) { change(c.dumps.emplace_back(first)); };
    add([](capture::MemoryDump& d) { d.core = "core_1"; });
    add([](capture::MemoryDump& d) { d.address = Address{0x9000}; });
    add([&](capture::MemoryDump& d) { d.file = write("other.bin", {1, 2, 3, 4}), d.address = Address{0xa000}; });
    add([](capture::MemoryDump& d) { d.offset = 2, d.address = Address{0xb000}; });
    add([](capture::MemoryDump& d) { d.core = "core_2"; });
    const auto session = make_session(std::move(c), {});
    ASSERT_TRUE(session);
    std::vector<std::uint64_t> addresses;
    for (const image::Region& region : session->sources.front().memory->regions())
        addresses.push_back(region.address.value);
    EXPECT_EQ(addresses, (std::vector<std::uint64_t>{0x8000, 0x9000, 0xa000, 0xb000}));
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

// The name of one source may end with the name of another.
TEST(NotDecoded, CountsEachSourceOnce) {
    Session session;
    for (const char* const name : {"AA", "A"}) {
        Source& source = session.sources.emplace_back();
        source.name = name;
        source.type = "HTM";
    }
    std::vector<capture::Buffer> buffers;
    for (const char* const name : {"AA", "A", "A"}) {
        buffers.push_back({.name = name, .format = capture::Buffer::Format::source_data});
        buffers.back().sources = {name};
    }
    Report report;
    for (const capture::Buffer& buffer : buffers) {
        BufferReport& one = report.buffers.emplace_back();
        one.buffer = &buffer;
        one.bytes = 4;
    }
    const auto damage = not_decoded(session, {&session.sources[0], &session.sources[1]}, report);
    ASSERT_EQ(damage.size(), 1U);
    EXPECT_EQ(damage.front().times, 2U);
    EXPECT_EQ(damage.front().of, "AA (HTM), A (HTM)");
    EXPECT_EQ(damage.front().bytes, 12U);
}

}  // namespace
}  // namespace waymark::pipeline
