#include "waymark/coresight/guess.h"

#include <gtest/gtest.h>

#include "coresight/random_streams.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/formatter.h"

namespace waymark::coresight {
namespace {

using Buffer = std::vector<std::uint8_t>;

Buffer random_bytes(unsigned seed, std::size_t size) {
    std::mt19937 random(seed);
    Buffer bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    return bytes;
}

Buffer formatted(unsigned seed, unsigned pieces, FormatterOptions options) {
    std::mt19937 random(seed);
    return format(random, testing::random_pieces(random, pieces, 60), options);
}

TEST(GuessFraming, FramesOfMemory) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        EXPECT_EQ(guess_framing(formatted(seed, 80, {})),
                  (FramingGuess{BufferKind::aligned, Confidence::high, FramingEvidence::steady_ids}));
    }
}

TEST(GuessFraming, ShortFramesOfMemory) {
    Buffer out;
    Formatter formatter(out);
    formatter.add({0x10}, random_bytes(1, 100));
    formatter.flush();
    EXPECT_EQ(guess_framing(out), (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids}));
}

// Barriers are full syncs too, but do not make a trace port's stream.
TEST(GuessFraming, FramesWithBarriers) {
    Buffer out;
    Formatter formatter(out);
    for (unsigned i = 0; i < 5; ++i) {
        formatter.add({0x10}, random_bytes(i, 400));
        formatter.add({0x11}, random_bytes(i, 400));
        formatter.barrier();
    }
    EXPECT_EQ(guess_framing(out).kind, BufferKind::aligned);
}

TEST(GuessFraming, AFewDamagedFrames) {
    auto capture = formatted(1, 400, {});
    capture[capture.size() / 32 * 16] = 0xFF;
    EXPECT_EQ(guess_framing(capture),
              (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::few_damaged}));
}

/// Frames of one source, an ID in the first and in each after `repeat` frames more; 0: in no other.
Buffer one_source(unsigned frames, unsigned repeat) {
    Buffer out;
    Formatter formatter(out, {.repeat_frames = repeat});
    Buffer bytes(std::size_t{frames} * 15, 0x2A);
    for (std::size_t at = 0; at < bytes.size() && out.size() < std::size_t{frames} * frame_bytes; ++at)
        formatter.add({0x10}, Bytes(bytes).subspan(at, 1));
    return out;
}

// Sixteen announcements of a source are enough to be sure of frames, however many frames there are.
TEST(GuessFraming, SureFromSixteenIdBytesOn) {
    EXPECT_EQ(guess_framing(one_source(15, 1)),
              (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids}));
    EXPECT_EQ(guess_framing(one_source(16, 1)),
              (FramingGuess{BufferKind::aligned, Confidence::high, FramingEvidence::steady_ids}));
    EXPECT_EQ(guess_framing(one_source(40, 8)),
              (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids}));
}

// Sources that are announced too seldom, with an impossible frame, are not frames.
TEST(GuessFraming, FewIdsAndADamagedFrame) {
    Buffer capture = one_source(100, 0);
    EXPECT_EQ(guess_framing(capture),
              (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids}));
    capture[50 * frame_bytes] = 0xFF;
    EXPECT_EQ(guess_framing(capture), (FramingGuess{BufferKind::raw, Confidence::low, FramingEvidence::scattered_ids}));
}

TEST(GuessFraming, UpToEightSourcesArePlausible) {
    for (const unsigned sources : {1U, 8U, 9U}) {
        Buffer out;
        Formatter formatter(out);
        for (unsigned i = 0; i < sources; ++i)
            formatter.add({static_cast<std::uint8_t>(0x10 + i)}, random_bytes(i, 14));
        EXPECT_EQ(guess_framing(out),
                  sources == 9 ? (FramingGuess{BufferKind::raw, Confidence::low, FramingEvidence::scattered_ids})
                               : (FramingGuess{BufferKind::aligned, Confidence::low, FramingEvidence::plausible_ids}));
    }
}

// A port that is idle for several frames at a time, between groups of frames that each begin with an ID. As barriers of
// memory, the syncs would end what a source sends, again and again.
TEST(GuessFraming, FramesOfAPortThatIsIdleInBursts) {
    for (const unsigned burst : {1U, 2U, 40U}) {
        Buffer out;
        Formatter formatter(out);
        for (unsigned i = 0; i < 12; ++i) {
            formatter.add({0x10}, random_bytes(i, 14));
            for (unsigned k = 0; k < burst; ++k) formatter.barrier();
        }
        EXPECT_EQ(guess_framing(out).kind, burst == 1 ? BufferKind::aligned : BufferKind::tpiu) << burst;
    }
}

TEST(GuessFraming, TheIdleTimeBeforeTheTraceIsNoHead) {
    Buffer out;
    for (unsigned i = 0; i < 1000; ++i) out.insert(out.end(), full_sync.begin(), full_sync.end());
    EXPECT_EQ(idle_bytes(out), 3584U) << "one sync stays, and the place in a block of 512 bytes";
    out.insert(out.end(), {1, 2, 3, 4});
    EXPECT_EQ(idle_bytes(out), 3584U);
    EXPECT_EQ(idle_bytes(Bytes(out).subspan(2)), 3584U) << "the dump begins inside a sync";
    EXPECT_EQ(idle_bytes(Bytes(out).subspan(out.size() - 8)), 0U);
    EXPECT_EQ(idle_bytes(Bytes(out).first(2)), 0U);
    EXPECT_EQ(idle_bytes({}), 0U);
}

// IDs that barriers follow name no source. Where an idle port sent the syncs between frames, data follows the IDs.
TEST(GuessFraming, IdsBeforeSyncs) {
    Buffer out;
    for (unsigned i = 0; i < 20; ++i) {
        Buffer frame(frame_bytes, 0);
        frame[14] = 0x21;
        out.insert(out.end(), frame.begin(), frame.end());
        out.insert(out.end(), barrier_frame.begin(), barrier_frame.end());
    }
    EXPECT_EQ(guess_framing(out), (FramingGuess{BufferKind::tpiu, Confidence::high, FramingEvidence::full_syncs}));
    EXPECT_EQ(guess_framing(Bytes(out).first(8 * frame_bytes)),
              (FramingGuess{BufferKind::tpiu, Confidence::high, FramingEvidence::full_syncs}));
}

TEST(GuessFraming, TracePort) {
    for (const unsigned every : {1U, 4U, 8U}) {
        auto capture = formatted(every, 80, {.full_sync_frames = every});
        capture.erase(capture.begin(), capture.begin() + 9);
        EXPECT_EQ(guess_framing(capture),
                  (FramingGuess{BufferKind::tpiu, Confidence::high, FramingEvidence::full_syncs}));
    }
}

TEST(GuessFraming, RawBytes) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        EXPECT_EQ(guess_framing(random_bytes(seed, 64)).kind, BufferKind::raw) << seed;
        const auto guess = guess_framing(random_bytes(seed, 4096));
        EXPECT_EQ(guess.kind, BufferKind::raw) << seed;
        EXPECT_EQ(guess.confidence, Confidence::high) << seed;
    }
    EXPECT_EQ(guess_framing(random_bytes(1, 65536)),
              (FramingGuess{BufferKind::raw, Confidence::high, FramingEvidence::forbidden_ids}));
    EXPECT_EQ(guess_framing({}), (FramingGuess{BufferKind::raw, Confidence::low, FramingEvidence::too_short}));
    EXPECT_EQ(guess_framing(Buffer(4096)), (FramingGuess{BufferKind::raw, Confidence::low, FramingEvidence::no_ids}));
    // No forbidden value, but sources without number.
    auto scattered = random_bytes(1, 4096);
    for (auto& byte : scattered) byte &= 0x7F;
    EXPECT_EQ(guess_framing(scattered),
              (FramingGuess{BufferKind::raw, Confidence::high, FramingEvidence::scattered_ids}));
}

}  // namespace
}  // namespace waymark::coresight
