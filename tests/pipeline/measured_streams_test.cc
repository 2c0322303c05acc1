// Checks the streams that bench/pft_rates times: here at a smaller size; the bench itself checks them at full size.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "support/measured_streams.h"
#include "support/sanitized.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark {
namespace {

using synthetic::MeasuredPart;
using synthetic::MeasuredStream;

void expect_truth(const flow::Totals& found, const MeasuredPart& part) {
    EXPECT_EQ(found.ranges, part.truth.ranges);
    EXPECT_EQ(found.instructions, part.truth.instructions);
    EXPECT_EQ(found.hash, part.truth.hash.value());
    EXPECT_FALSE(found.has_gaps());
}

template <class D>
flow::Totals decode(const MeasuredPart& part, Bytes bytes) {
    flow::Summary summary;
    flow::BlockTable blocks;
    flow::BatchWriter out(blocks, summary);
    D decoder(part.config, *part.code, out);
    decoder.feed(bytes);
    decoder.finish();
    return summary.totals();
}

void expect_truth_of_all_decoders(const MeasuredPart& part, Bytes bytes) {
    expect_truth(decode<pft::ReferenceDecoder>(part, bytes), part);
    expect_truth(decode<pft::Decoder>(part, bytes), part);
    for (const unsigned workers : {1U, 2U, 3U, 7U}) {
        SCOPED_TRACE(std::to_string(workers) + " workers");
        flow::Summary summary, events;
        flow::BlockTable blocks, counted_blocks;
        pft::ParallelDecoder delivered(part.config, *part.code, blocks, summary, {.workers = workers});
        delivered.feed(bytes);
        delivered.finish();
        expect_truth(summary.totals(), part);
        pft::ParallelDecoder counted(part.config, *part.code, counted_blocks, events,
                                     {.workers = workers, .ranges = pft::ParallelDecoder::Ranges::counted});
        counted.feed(bytes);
        counted.finish();
        const std::vector<std::uint64_t> times = counted.counts();
        std::uint64_t ranges = 0, instructions = 0;
        for (std::size_t edge = 0; edge < std::min(times.size(), 2 * counted_blocks.blocks().size()); ++edge) {
            ranges += times[edge];
            instructions += times[edge] * counted_blocks.blocks()[edge / 2].instructions;
        }
        EXPECT_EQ(ranges, part.truth.ranges);
        EXPECT_EQ(instructions, part.truth.instructions);
    }
}

/// The bytes of each source.
struct Parted {
    void data(coresight::TraceId id, Bytes bytes, Offset) {
        by_id[id.value].insert(by_id[id.value].end(), bytes.begin(), bytes.end());
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) { ADD_FAILURE() << "a gap in whole frames"; }
    void reset(Offset) {}
    std::array<std::vector<std::uint8_t>, coresight::trace_ids> by_id;
};

TEST(MeasuredStreams, EveryDecoderGivesTheTruth) {
    constexpr unsigned steps = sized(150'000U, 30'000U);
    for (const char* which = synthetic::measured_streams; *which != 0; ++which) {
        SCOPED_TRACE(std::string("stream ") + *which);
        const MeasuredStream s = synthetic::measured_stream(*which, steps);
        Parted parted;
        if (!s.frames.empty()) {
            coresight::Deformatter deformatter;
            deformatter.feed(s.frames, parted);
            deformatter.finish(parted);
        }
        for (const MeasuredPart& part : s.parts) {
            ASSERT_GT(part.truth.ranges, steps * 2 / 5);
            expect_truth_of_all_decoders(part, s.frames.empty() ? Bytes(part.bytes) : parted.by_id[part.id.value]);
        }
    }
}

}  // namespace
}  // namespace waymark
