// Single random writes into the ID bytes of the frames of real captures: which of them change the decoded flow, and
// which of these are reported. WM_FRAME_DAMAGE=N writes N times for each capture and kind instead of a few times;
// docs/spec/pft.md, 6.6, gives the shares measured so.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <random>
#include <tuple>

#include "support/corpus.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/frame.h"
#include "waymark/flow/summary.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {
namespace {

/// The decoded flow of all sources of a capture, and all sentences about losses.
struct Decoded {
    std::vector<flow::Totals> totals;
    std::uint64_t strays = 0, lost = 0, silent = 0, reserved = 0;

    [[nodiscard]] auto story() const {
        std::vector<std::array<std::uint64_t, 5>> out;
        for (const flow::Totals& t : totals)
            out.push_back({t.ranges, t.hash, t.exceptions, t.timestamps, t.last_timestamp.value_or(0)});
        return out;
    }
    [[nodiscard]] auto trouble() const {
        std::vector<std::uint64_t> out{strays, lost, silent, reserved};
        for (const flow::Totals& t : totals) {
            for (const flow::Count& gap : t.gaps) {
                out.push_back(gap.times);
                out.push_back(gap.bytes);
            }
            out.insert(out.end(), t.inconsistencies.begin(), t.inconsistencies.end());
        }
        return out;
    }
};

Decoded decode(const Session& session) {
    const auto selected = session.select({});
    std::vector<std::unique_ptr<flow::Summary>> sinks;
    const Report report = run(session, *selected, [&](const StreamInfo& stream) -> std::unique_ptr<Consumer> {
        if (!stream.source.has_flow()) return nullptr;
        sinks.push_back(std::make_unique<flow::Summary>());
        return flow_consumer(stream, *sinks.back(), DecoderKind::fast);
    });
    Decoded out;
    for (const auto& sink : sinks) out.totals.push_back(sink->totals());
    for (const Stray& stray : report.buffers[0].strays) out.strays += stray.bytes;
    for (const StreamReport& stream : report.streams) out.silent += stream.silent_from.has_value() ? 1 : 0;
    out.lost = report.buffers[0].frames.lost_bytes();
    return out;
}

enum class Write : std::uint8_t { any_byte_over_an_id, another_id_over_an_id, any_byte_anywhere };

class FrameDamage : public ::testing::TestWithParam<std::tuple<const char*, Write>> {};
INSTANTIATE_TEST_SUITE_P(Captures, FrameDamage,
                         ::testing::Combine(::testing::Values("tc2", "snowball"),
                                            ::testing::Values(Write::any_byte_over_an_id, Write::another_id_over_an_id,
                                                              Write::any_byte_anywhere)));

TEST_P(FrameDamage, IsReportedWhereItCanBeKnown) {
    const auto& [board, kind] = GetParam();
    const std::string name = std::string("ptm/") + board;
    WM_NEEDS_CORPUS(name);
    auto capture = capture::read_snapshot(waymark::support::corpus_path(name));
    ASSERT_TRUE(capture.has_value());
    ASSERT_EQ(capture->buffers.size(), 1U);
    std::vector<std::uint8_t> bytes = waymark::support::read_file(capture->buffers.front().files.front());
    TemporaryFolder folder;
    const auto file = folder.path() / "trace.bin";
    capture->buffers.front().files = {file};
    const auto session = make_session(std::move(*capture), {});
    ASSERT_TRUE(session.has_value());
    const auto decode_bytes = [&] {
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        return decode(*session);
    };
    const Decoded whole = decode_bytes();
    EXPECT_EQ(whole.strays, 0U);  // the capture has no damage
    EXPECT_EQ(whole.silent, 0U);
    EXPECT_EQ(whole.lost, 0U);

    const char* asked = std::getenv("WM_FRAME_DAMAGE");
    const unsigned times = asked != nullptr ? static_cast<unsigned>(std::atoi(asked)) : sized(60U, 24U);
    std::vector<std::size_t> places;
    for (std::size_t at = 0; at < bytes.size(); ++at)
        if (kind == Write::any_byte_anywhere || (at % coresight::frame_bytes % 2 == 0 && (bytes[at] & 1) != 0))
            places.push_back(at);
    const std::uint64_t seed = 12;
    std::mt19937_64 random(seed);
    unsigned changed = 0, reported = 0, strange = 0;
    for (unsigned i = 0; i < times; ++i) {
        const std::size_t at = places[random() % places.size()];
        const std::uint8_t was = bytes[at];
        do {
            bytes[at] = static_cast<std::uint8_t>(random());
            if (kind == Write::another_id_over_an_id) bytes[at] |= 1;
        } while (bytes[at] == was);
        const Decoded now = decode_bytes();
        const bool delivered = now.trouble() != whole.trouble();
        if (now.story() != whole.story() || delivered) {
            ++changed;
            reported += delivered ? 1 : 0;
        }
        if (now.strays != 0) {
            ++strange;
            EXPECT_TRUE(delivered);
        }
        bytes[at] = was;
    }
    std::printf(
        "%s, kind %u, seed %llu: of %u writes %u change what is decoded; %u of these are reported (%.1f %%), "
        "%u by bytes under IDs of no source\n",
        board, static_cast<unsigned>(kind), static_cast<unsigned long long>(seed), times, changed, reported,
        changed == 0 ? 100.0 : 100.0 * reported / changed, strange);
    ASSERT_GT(changed, 0U);
    // An ID that belongs to no described source is always noticed.
    if (kind != Write::any_byte_anywhere) {
        EXPECT_GE(reported * 100, changed * 85);
    }
}

}  // namespace
}  // namespace waymark::pipeline
