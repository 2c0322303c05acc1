// The blocks of a DSTREAM: docs/spec/pft.md, 6.5.
#include "waymark/coresight/dstream.h"

#include <gtest/gtest.h>

#include <random>

#include "coresight/reference_deformatter.h"
#include "support/corpus.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/guess.h"

namespace waymark::coresight {
namespace {

using testing::Heard;
using Buffer = std::vector<std::uint8_t>;
using Random = std::mt19937_64;

/// Whether the bytes of footers are all equal, count up, or are anything.
enum class Footers : std::uint8_t { zeros, counter, random };

Buffer in_blocks(const Buffer& frames, Footers kind, Random& random) {
    Buffer out;
    for (std::size_t i = 0; i < frames.size(); ++i) {
        out.push_back(frames[i]);
        if (out.size() % dstream_block_bytes != dstream_frame_bytes) continue;
        for (unsigned k = 0; k < dstream_footer_bytes; ++k)
            out.push_back(kind == Footers::zeros     ? std::uint8_t{0}
                          : kind == Footers::counter ? static_cast<std::uint8_t>(out.size() >> 9 >> 8 * k)
                                                     : static_cast<std::uint8_t>(random()));
    }
    return out;
}

/// Data of three sources with A-syncs now and then, as frames.
Buffer some_frames(Random& random, FormatterOptions options, unsigned turns = 600) {
    Buffer out;
    Formatter formatter(out, options);
    for (unsigned i = 0; i < turns; ++i) {
        Buffer bytes(1 + random() % 60);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
        formatter.add(TraceId{static_cast<std::uint8_t>(0x10 + random() % 3)}, bytes);
        if (options.full_sync_frames != 0 && random() % 4 == 0) formatter.idle();
    }
    formatter.flush();
    return out;
}

/// The heard items without their places.
std::vector<std::pair<Heard::Kind, unsigned>> story(const std::vector<Heard>& heard) {
    std::vector<std::pair<Heard::Kind, unsigned>> out;
    for (const Heard& h : heard) out.emplace_back(h.kind, h.what);
    return out;
}

struct Result {
    testing::Recorder recorder;
    Totals totals;
};
Result deformat(DstreamLayout layout, Bytes bytes, std::size_t piece, Offset first = {}) {
    Result out;
    DstreamDeformatter deformatter(layout, first);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        deformatter.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)), out.recorder);
    deformatter.finish(out.recorder);
    out.totals = deformatter.totals();
    return out;
}

/// A capture gives the same with and without blocks; every byte has its offset in the file.
void expect_same(const Buffer& frames, Framing framing, Random& random) {
    const Result plain = deformat({framing, false}, frames, frames.size());
    for (const Footers kind : {Footers::zeros, Footers::counter, Footers::random}) {
        const Buffer blocks = in_blocks(frames, kind, random);
        EXPECT_EQ(without_dstream_footers(blocks), frames);
        const DstreamLayout layout = dstream_layout(blocks);
        EXPECT_EQ(layout, (DstreamLayout{framing, true}))
            << static_cast<int>(layout.framing) << layout.footers << static_cast<int>(kind);
        for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{508}, blocks.size()}) {
            const Result got = deformat(layout, blocks, piece);
            EXPECT_TRUE(story(got.recorder.heard) == story(plain.recorder.heard));
            EXPECT_EQ(got.totals.accounted(), blocks.size());
            EXPECT_EQ(got.totals.bytes_read, blocks.size());
            EXPECT_EQ(got.totals.footer_bytes, blocks.size() - frames.size());
            EXPECT_EQ(got.totals.data, plain.totals.data);
            EXPECT_EQ(got.totals.lost, plain.totals.lost);
            ASSERT_EQ(got.recorder.heard.size(), plain.recorder.heard.size());
            for (std::size_t i = 0; i < got.recorder.heard.size(); ++i) {
                const std::uint64_t at = plain.recorder.heard[i].at;
                if (got.recorder.heard[i].kind == Heard::Kind::data) {
                    ASSERT_EQ(got.recorder.heard[i].at, at / 504 * 512 + at % 504);
                }
            }
        }
    }
}

TEST(Dstream, FootersAreNoTrace) {
    Random random(1);
    for (const unsigned syncs : {1U, 3U, 64U})
        expect_same(some_frames(random, {.full_sync_frames = syncs}), Framing::tpiu, random);
    expect_same(some_frames(random, {}), Framing::aligned, random);
}

TEST(Dstream, WithoutFootersNothingIsTakenAway) {
    Random random(2);
    for (unsigned i = 0; i < 20; ++i) {
        const Buffer frames = some_frames(random, {.full_sync_frames = 1 + static_cast<unsigned>(random() % 40)});
        EXPECT_EQ(dstream_layout(frames), (DstreamLayout{Framing::tpiu, false}));
        EXPECT_FALSE(guess_framing(frames).footers);
        EXPECT_FALSE(guess_framing(some_frames(random, {})).footers);
        // Neither are bytes that are no frames at all.
        Buffer noise(20000);
        for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
        EXPECT_EQ(dstream_layout(noise), (DstreamLayout{Framing::tpiu, false}));
        EXPECT_EQ(guess_framing(noise).kind, BufferKind::raw);
    }
}

TEST(Dstream, GapsAndPlacesBeginInsideABlock) {
    Random random(3);
    Buffer frames = some_frames(random, {.full_sync_frames = 1});
    const Buffer blocks = in_blocks(frames, Footers::random, random);
    const std::size_t from = 700;
    const Result whole = deformat({Framing::tpiu, true}, blocks, blocks.size());
    const Result part = deformat({Framing::tpiu, true}, Bytes(blocks).subspan(from), 100, {from});
    EXPECT_EQ(part.totals.accounted(), blocks.size() - from);
    EXPECT_EQ(part.totals.lost[static_cast<unsigned>(GapReason::framing)], 0U);
    // Once both know a source, they hear the same at the same places.
    const auto& heard = part.recorder.heard;
    ASSERT_GT(heard.size(), 1000U);
    for (std::size_t i = 0; i < 500; ++i) {
        const Heard& mine = heard[heard.size() - 1 - i];
        const Heard& theirs = whole.recorder.heard[whole.recorder.heard.size() - 1 - i];
        ASSERT_EQ(mine.what, theirs.what);
        ASSERT_EQ(mine.at + from, theirs.at);
    }
}

TEST(Dstream, GuessTellsTheBlocks) {
    Random random(4);
    const FramingGuess port =
        guess_framing(in_blocks(some_frames(random, {.full_sync_frames = 2}), Footers::zeros, random));
    EXPECT_EQ(port.kind, BufferKind::tpiu);
    EXPECT_TRUE(port.footers);
    const FramingGuess memory = guess_framing(in_blocks(some_frames(random, {}), Footers::counter, random));
    EXPECT_EQ(memory.kind, BufferKind::aligned);
    EXPECT_TRUE(memory.footers);
}

/// The frames of a real buffer as a trace port would have sent them to a DSTREAM.
TEST(Dstream, ARealCaptureInBlocksGivesTheSame) {
    for (const char* board : {"tc2", "snowball"}) {
        const std::string name = std::string("ptm/") + board + "/cstrace.bin";
        WM_NEEDS_CORPUS(name);
        const Buffer capture = waymark::support::read_file(waymark::support::corpus_path(name));
        Buffer port;
        for (std::size_t i = 0; i < capture.size(); ++i) {
            if (i % frame_bytes == 0) port.insert(port.end(), full_sync.begin(), full_sync.end());
            port.push_back(capture[i]);
        }
        Random random(5);
        expect_same(port, Framing::tpiu, random);
        expect_same(capture, Framing::aligned, random);
        const Result before = deformat({Framing::aligned, false}, capture, capture.size());
        const Result after = deformat({Framing::tpiu, true}, in_blocks(port, Footers::random, random), 4096);
        EXPECT_EQ(before.totals.data, after.totals.data);
        EXPECT_TRUE(story(before.recorder.heard) == story(after.recorder.heard));
    }
}

}  // namespace
}  // namespace waymark::coresight
