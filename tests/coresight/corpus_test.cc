// Two trace buffers of real boards: of an ETB with a Cortex-A15 and three Cortex-A7 (tc2), and with two Cortex-A9
// (snowball). Facts and figures: docs/spec/pft.md, sections 6.1, 6.3 and 7.6.
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "coresight/reference_deformatter.h"
#include "support/corpus.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/guess.h"

namespace waymark::coresight {
namespace {

using testing::deformat;
using testing::ReferenceDeformatter;
using Buffer = std::vector<std::uint8_t>;

struct Capture {
    const char* board;
    std::uint64_t size, unassociated, repeats;
    std::vector<unsigned> sources;
};

class RealCapture : public ::testing::TestWithParam<Capture> {};
INSTANTIATE_TEST_SUITE_P(Boards, RealCapture,
                         ::testing::Values(Capture{"tc2", 32768, 22, 122, {0x10, 0x11, 0x12, 0x13}},
                                           Capture{"snowball", 8192, 106, 52, {0x10, 0x11}}),
                         [](const auto& test) { return test.param.board; });

TEST_P(RealCapture, EveryByteIsAccountedFor) {
    const std::string name = std::string("ptm/") + GetParam().board + "/cstrace.bin";
    WM_NEEDS_CORPUS(name);
    const auto capture = waymark::support::read_file(waymark::support::corpus_path(name));
    ASSERT_EQ(capture.size(), GetParam().size);

    const auto result = deformat(capture);
    EXPECT_EQ(result.totals.unassociated, GetParam().unassociated);
    EXPECT_EQ(result.totals.lost_bytes(), 0U);
    EXPECT_EQ(result.totals.frames, capture.size() / 16);
    EXPECT_EQ(result.totals.accounted(), capture.size());
    EXPECT_FALSE(result.totals.first_forbidden);
    std::vector<unsigned> sources;
    for (unsigned id = 1; id < trace_ids; ++id) {
        if (result.totals.data[id] > 0) sources.push_back(id);
    }
    EXPECT_EQ(sources, GetParam().sources);

    const auto reference = ReferenceDeformatter::run(capture, {});
    EXPECT_TRUE(result.heard == reference.heard);
    EXPECT_EQ(result.totals, reference.totals);
    unsigned length = 0;
    const auto pieces = deformat(capture, {}, [&] { return length++ % 37; });
    EXPECT_TRUE(pieces.heard == result.heard);
    EXPECT_EQ(pieces.totals, result.totals);
}

/// The sequence of bytes and owners in a capture, including padding, and the places before which an unchanged ID
/// stands.
struct Account {
    struct Owned {
        TraceId id;
        std::uint8_t byte;
        bool repeat_before;  ///< the ID is announced again when this byte is about to be placed
    };
    std::vector<Owned> bytes;
    std::uint64_t repeats = 0;
};

/// Walks the frames as 6.2 does. Bytes before the first ID are given to `before`.
Account account_of(const Buffer& capture, TraceId before) {
    Account account;
    TraceId current = before;
    bool repeat = false;
    const auto take = [&](unsigned byte) {
        account.bytes.push_back({current, static_cast<std::uint8_t>(byte), repeat});
        repeat = false;
    };
    for (std::size_t at = 0; at < capture.size(); at += 16) {
        const unsigned aux = capture[at + 15];
        for (unsigned k = 0; k < 8; ++k) {
            const unsigned mixed = capture[at + 2 * k];
            const bool bit = (aux >> k & 1) != 0;
            if ((mixed & 1) == 0) {
                take(mixed | bit);
                if (k < 7) take(capture[at + 2 * k + 1]);
                continue;
            }
            const TraceId id{static_cast<std::uint8_t>(mixed >> 1)};
            const bool same = id == current;
            account.repeats += same;
            // In the delayed form the byte beside the ID was already placed when the ID came.
            if (bit && k < 7) take(capture[at + 2 * k + 1]);
            current = id;
            repeat = same;
            if (!bit && k < 7) take(capture[at + 2 * k + 1]);
        }
    }
    return account;
}

TEST_P(RealCapture, TheFramesCanBeRebuilt) {
    const std::string name = std::string("ptm/") + GetParam().board + "/cstrace.bin";
    WM_NEEDS_CORPUS(name);
    const auto capture = waymark::support::read_file(waymark::support::corpus_path(name));

    constexpr TraceId unknown{0x6F};  // of the bytes before the first ID; neither board uses it
    const auto account = account_of(capture, unknown);
    EXPECT_EQ(account.repeats, GetParam().repeats);

    Buffer rebuilt;
    Formatter formatter(rebuilt, {.repeat_frames = 0, .initial_id = unknown});
    for (const auto& owned : account.bytes) {
        if (owned.repeat_before) formatter.repeat_id();
        formatter.add(owned.id, {&owned.byte, 1});
    }
    formatter.flush();
    EXPECT_TRUE(rebuilt == capture);
}

TEST_P(RealCapture, IsRecognised) {
    const std::string name = std::string("ptm/") + GetParam().board + "/cstrace.bin";
    WM_NEEDS_CORPUS(name);
    const auto capture = waymark::support::read_file(waymark::support::corpus_path(name));
    EXPECT_EQ(guess_framing(capture),
              (FramingGuess{BufferKind::aligned, Confidence::high, FramingEvidence::steady_ids}));
    EXPECT_EQ(guess_framing(Bytes(capture).first(2048)).kind, BufferKind::aligned);

    // The bytes of each source by themselves, as in a capture in bypass.
    std::map<unsigned, Buffer> streams;
    for (const auto& heard : deformat(capture).heard)
        streams[heard.what >> 8].push_back(static_cast<std::uint8_t>(heard.what));
    for (const auto& [id, stream] : streams) {
        EXPECT_EQ(guess_framing(stream).kind, BufferKind::raw) << id;
    }
}

}  // namespace
}  // namespace waymark::coresight
