// Properties over random streams: both directions undo each other, pieces do not matter, damage is contained, and the
// deformatter agrees with the reference on any input. A failure prints the seed.
#include <gtest/gtest.h>

#include <algorithm>

#include "coresight/random_streams.h"
#include "coresight/reference_deformatter.h"
#include "support/sanitized.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/formatter.h"

namespace waymark::coresight {
namespace {

using testing::below;
using testing::deformat;
using testing::Heard;
using testing::random_pieces;
using testing::Reference;
using testing::ReferenceDeformatter;
using testing::Streams;
using Buffer = std::vector<std::uint8_t>;

constexpr unsigned rounds = sized(400U, 100U);

FormatterOptions random_options(std::mt19937& random, Framing framing) {
    FormatterOptions options;
    constexpr std::array<unsigned, 4> repeats{8, 0, 1, 3}, syncs{1, 4, 7, 1000}, widths{0, 4, 32, 64};
    options.repeat_frames = repeats[below(random, 4)];
    if (framing == Framing::tpiu) {
        options.full_sync_frames = syncs[below(random, 4)];
    } else {
        options.memory_width_bytes = widths[below(random, 4)];
    }
    return options;
}

Streams streams_of(const std::vector<Heard>& heard) {
    Streams streams;
    for (const auto& each : heard) {
        EXPECT_TRUE(each.kind == Heard::Kind::data || each.kind == Heard::Kind::trigger) << each;
        streams[each.what >> 8].push_back(static_cast<std::uint8_t>(each.what));
    }
    return streams;
}

/// In pieces of random lengths, in one, and by the reference: all the same, and every byte accounted for.
Reference deformat_all_ways(std::mt19937& random, const Buffer& capture, DeformatterOptions options) {
    auto whole = deformat(capture, options);
    const auto longest = 1 + below(random, 40);
    const auto pieces = deformat(capture, options, [&] { return below(random, longest + 1); });
    const auto reference = ReferenceDeformatter::run(capture, options);
    EXPECT_TRUE(pieces.heard == whole.heard);
    EXPECT_TRUE(pieces.totals == whole.totals);
    EXPECT_TRUE(reference.heard == whole.heard);
    EXPECT_TRUE(reference.totals == whole.totals);
    EXPECT_EQ(whole.totals.bytes_read, capture.size());
    EXPECT_EQ(whole.totals.accounted(), capture.size());
    return whole;
}

class EachFraming : public ::testing::TestWithParam<Framing> {};
INSTANTIATE_TEST_SUITE_P(Framing, EachFraming, ::testing::Values(Framing::aligned, Framing::tpiu),
                         [](const auto& test) { return test.param == Framing::aligned ? "Aligned" : "Tpiu"; });

TEST_P(EachFraming, RoundTrip) {
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto pieces = random_pieces(random, 1 + below(random, 60), 1 + below(random, 100));
        const auto capture = format(random, pieces, random_options(random, GetParam()));
        const auto result = deformat_all_ways(random, capture, {.framing = GetParam()});
        EXPECT_EQ(streams_of(result.heard), testing::streams_of(pieces));
        EXPECT_EQ(result.totals.lost_bytes(), 0U);
        EXPECT_EQ(result.totals.unassociated, 0U);
        if (HasFailure()) return;
    }
}

// Every delivered byte is at its reported place: at an odd place it is the byte itself, at an even one all but bit 0.
TEST_P(EachFraming, OffsetsPointAtTheBytes) {
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto capture = format(random, random_pieces(random, 20, 50), random_options(random, GetParam()));
        for (const auto& heard : deformat(capture, {.framing = GetParam()}).heard) {
            ASSERT_EQ(capture.at(heard.at) & 0xFE, heard.what & 0xFE) << heard;
        }
    }
}

TEST_P(EachFraming, RandomBytes) {
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        Buffer capture(below(random, 600));
        // Few different values make sync packets and their near misses frequent.
        const bool rich = seed % 4 != 0;
        for (auto& byte : capture) {
            constexpr std::array<std::uint8_t, 4> special{0xFF, 0xFF, 0x7F, 0x20};
            byte = rich && below(random, 4) != 0 ? special[below(random, 4)] : static_cast<std::uint8_t>(random());
        }
        deformat_all_ways(random, capture, {GetParam(), seed % 2 == 0});
        if (HasFailure()) return;
    }
}

/// Items heard of a capture from `from` on, moved by `shift`.
std::vector<Heard> heard_from(const std::vector<Heard>& heard, std::uint64_t from, std::int64_t shift) {
    std::vector<Heard> result;
    for (const auto& each : heard) {
        if (each.at < from) continue;
        result.push_back(each);
        result.back().at += static_cast<std::uint64_t>(shift);
    }
    return result;
}

// Aligned frames keep their places, so a flipped bit spoils its own frame and, if it is in an ID, the bytes up to the
// next frame with an ID.
TEST(Damage, AlignedIsRightAgainAfterTheNextId) {
    unsigned compared = 0;
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto capture = format(random, random_pieces(random, 60, 60), random_options(random, Framing::aligned));
        auto damaged = capture;
        const auto place = below(random, static_cast<unsigned>(capture.size()));
        damaged[place] ^= static_cast<std::uint8_t>(1U << below(random, 8));
        const auto clean = deformat(capture);
        const auto hurt = deformat_all_ways(random, damaged, {});

        std::size_t next_id = (place / 16 + 1) * 16;
        while (next_id < capture.size() && (capture[next_id] & 1) == 0) next_id += 2;
        EXPECT_TRUE(heard_from(hurt.heard, next_id + 2, 0) == heard_from(clean.heard, next_id + 2, 0));
        compared += next_id + 2 < capture.size();
        if (HasFailure()) return;
    }
    EXPECT_GT(compared, rounds / 2);
}

// A trace port may lose its place; at the latest the next full sync gives it back, and the next ID says whose bytes
// follow.
TEST(Damage, TpiuIsRightAgainAfterTheNextFullSyncAndId) {
    unsigned compared = 0;
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        FormatterOptions options = random_options(random, Framing::tpiu);
        options.full_sync_frames = 1 + below(random, 6);
        const auto capture = format(random, random_pieces(random, 60, 60), options);
        auto damaged = capture;
        const auto place = below(random, static_cast<unsigned>(capture.size()));
        std::int64_t shift = 0;
        switch (below(random, 3)) {
            case 0: damaged[place] ^= static_cast<std::uint8_t>(1U << below(random, 8)); break;
            case 1:
                damaged.erase(damaged.begin() + place);
                shift = 1;
                break;
            default: damaged.insert(damaged.begin() + place, static_cast<std::uint8_t>(random())); shift = -1;
        }
        const auto hurt = deformat_all_ways(random, damaged, {.framing = Framing::tpiu});

        // The first full sync that begins behind the damage, and the result of a reader that starts there.
        const auto sync = std::search(capture.begin() + place + 1, capture.end(), full_sync.begin(), full_sync.end());
        const auto from = static_cast<std::size_t>(sync - capture.begin());
        const auto rest = deformat(Bytes(capture).subspan(from), {.framing = Framing::tpiu});
        if (!rest.totals.first_id) continue;
        const auto id = rest.totals.first_id->value;
        const auto back = static_cast<std::int64_t>(from) - shift;
        EXPECT_TRUE(heard_from(hurt.heard, id + static_cast<std::uint64_t>(back) + 2, 0) ==
                    heard_from(rest.heard, id + 2, back));
        ++compared;
        if (HasFailure()) return;
    }
    EXPECT_GT(compared, rounds / 2);
}

TEST_P(EachFraming, ManyDamagesAreAccountedFor) {
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        auto capture = format(random, random_pieces(random, 60, 40), random_options(random, GetParam()));
        for (unsigned i = below(random, 20); i > 0 && !capture.empty(); --i) {
            const auto place = capture.begin() + below(random, static_cast<unsigned>(capture.size()));
            switch (below(random, 4)) {
                case 0: *place ^= static_cast<std::uint8_t>(random()); break;
                case 1: capture.erase(place); break;
                case 2: capture.insert(place, static_cast<std::uint8_t>(random())); break;
                default: *place = 0xFF;
            }
        }
        deformat_all_ways(random, capture, {.framing = GetParam()});
        if (HasFailure()) return;
    }
}

TEST(Barrier, CapturesBehindOneAnother) {
    for (unsigned seed = 0; seed < rounds; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const auto first = random_pieces(random, 1 + below(random, 10), 40);
        const auto second = random_pieces(random, 1 + below(random, 10), 40);
        Buffer capture;
        Formatter formatter(capture, random_options(random, Framing::aligned));
        for (const auto& piece : first) formatter.add(piece.id, piece.bytes);
        formatter.barrier();
        const auto boundary = capture.size();
        for (const auto& piece : second) formatter.add(piece.id, piece.bytes);
        formatter.flush();

        auto heard = deformat_all_ways(random, capture, {}).heard;
        const auto reset = std::find(heard.begin(), heard.end(), testing::heard_reset(boundary));
        ASSERT_NE(reset, heard.end());
        EXPECT_EQ(streams_of({heard.begin(), reset}), testing::streams_of(first));
        EXPECT_EQ(streams_of({reset + 1, heard.end()}), testing::streams_of(second));
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace waymark::coresight
