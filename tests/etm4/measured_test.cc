// The streams of the benchmark: decoders give the execution they were made of.

#include "support/measured_a64.h"
#include "support/paths.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "waymark/etm4/decoder.h"
#include "waymark/etm4/reference_decoder.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"

namespace waymark::etm4 {
namespace {

using synthetic::MeasuredA64Part;

template <class D>
flow::Totals totals_of(const MeasuredA64Part& part) {
    flow::Summary summary;
    flow::BlockTable blocks;
    flow::BatchWriter out(blocks, summary);
    synthetic::vary_paths();
    D decoder(part.config, *part.code, out);
    decoder.feed(part.bytes);
    decoder.finish();
    return summary.totals();
}

TEST(Etm4Measured, DecodersGiveTheExecution) {
    for (const char* which = synthetic::measured_a64_streams; *which != 0; ++which) {
        SCOPED_TRACE(*which);
        for (const MeasuredA64Part& part : synthetic::measured_a64_stream(*which, 20000).parts) {
            for (const flow::Totals& found : {totals_of<Decoder>(part), totals_of<ReferenceDecoder>(part)}) {
                EXPECT_EQ(found.ranges, part.truth.ranges);
                EXPECT_EQ(found.instructions, part.truth.instructions);
                EXPECT_EQ(found.hash, part.truth.hash.value());
                EXPECT_EQ(found.inconsistencies, flow::Totals{}.inconsistencies);
            }
        }
    }
}

TEST(Etm4Measured, CountsAreThoseOfTheRanges) {
    for (const char* which = synthetic::measured_a64_streams; *which != 0; ++which) {
        SCOPED_TRACE(*which);
        for (const MeasuredA64Part& part : synthetic::measured_a64_stream(*which, 20000).parts) {
            flow::Summary events;
            flow::BlockTable blocks;
            flow::CountWriter out(blocks, events);
            synthetic::vary_paths();
            Decoder decoder(part.config, *part.code, out);
            decoder.feed(part.bytes);
            decoder.finish();
            std::uint64_t ranges = 0, instructions = 0;
            for (std::size_t edge = 0; edge < 2 * blocks.blocks().size(); ++edge) {
                ranges += out.counts()[edge];
                instructions += out.counts()[edge] * blocks.blocks()[edge / 2].instructions;
            }
            EXPECT_EQ(ranges, part.truth.ranges);
            EXPECT_EQ(instructions, part.truth.instructions);
        }
    }
}

}  // namespace
}  // namespace waymark::etm4
