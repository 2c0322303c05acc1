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
                  (FramingGuess{BufferKind::aligned, Confidence::high, Evidence::steady_ids}));
    }
}

TEST(GuessFraming, ShortFramesOfMemory) {
    Buffer out;
    Formatter formatter(out);
    formatter.add({0x10}, random_bytes(1, 100));
    formatter.flush();
    EXPECT_EQ(guess_framing(out), (FramingGuess{BufferKind::aligned, Confidence::low, Evidence::plausible_ids}));
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
    EXPECT_EQ(guess_framing(capture), (FramingGuess{BufferKind::aligned, Confidence::low, Evidence::few_damaged}));
}

TEST(GuessFraming, TracePort) {
    for (const unsigned every : {1U, 4U, 8U}) {
        auto capture = formatted(every, 80, {.full_sync_frames = every});
        capture.erase(capture.begin(), capture.begin() + 9);
        EXPECT_EQ(guess_framing(capture), (FramingGuess{BufferKind::tpiu, Confidence::high, Evidence::full_syncs}));
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
              (FramingGuess{BufferKind::raw, Confidence::high, Evidence::forbidden_ids}));
    EXPECT_EQ(guess_framing({}), (FramingGuess{BufferKind::raw, Confidence::low, Evidence::too_short}));
    EXPECT_EQ(guess_framing(Buffer(4096)), (FramingGuess{BufferKind::raw, Confidence::low, Evidence::no_ids}));
    // No forbidden value, but sources without number.
    auto scattered = random_bytes(1, 4096);
    for (auto& byte : scattered) byte &= 0x7F;
    EXPECT_EQ(guess_framing(scattered), (FramingGuess{BufferKind::raw, Confidence::high, Evidence::scattered_ids}));
}

}  // namespace
}  // namespace waymark::coresight
