// The streams of the benchmark: decoders give the executions from which they were made.

#include "support/measured_a64.h"
#include "support/paths.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <variant>
#include <vector>

#include "etm4/decoding.h"
#include "support/random.h"
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

/// A number of at most this many bits, with each length equally often.
std::uint64_t any_length(synthetic::Random& random, unsigned width) { return random() >> (63 - random.below(width)); }
/// A cycle count or a timestamp of any format and length.
Packet any_time(synthetic::Random& random) {
    const auto few_bits = [&](unsigned width) { return static_cast<std::uint8_t>(random.below(1U << width)); };
    switch (random.below(5)) {
        case 0: return CycleCountF2{.commit = few_bits(4), .count = few_bits(4), .from_maximum = random.below(2) == 0};
        case 1: return CycleCountF3{.commit = few_bits(2), .count = few_bits(2)};
        case 2: {
            Timestamp p;
            p.value.bytes = static_cast<std::uint8_t>(1 + random.below(9));
            p.value.value = any_length(random, timestamp_bits(p.value.bytes));
            p.has_cycles = random.below(2) == 0;
            if (p.has_cycles) p.cycles = static_cast<std::uint32_t>(any_length(random, 21));
            return p;
        }
        default: {
            CycleCountF1 p;
            p.commit = static_cast<std::uint32_t>(any_length(random, 32));
            p.unknown = random.below(8) == 0;
            if (!p.unknown) p.count = static_cast<std::uint32_t>(any_length(random, 21));
            return p;
        }
    }
}

// Models send few of the forms that cycle counts and timestamps may have.
TEST(Etm4Measured, TimesOfEveryForm) {
    const MeasuredA64Part part = synthetic::measured_a64_stream('e', 5000).parts.front();
    for (const bool commit_mode_1 : {false, true}) {
        SCOPED_TRACE(commit_mode_1);
        Config config = part.config;
        config.commit_mode_1 = commit_mode_1;
        synthetic::Random random(1);
        std::vector<std::uint8_t> bytes;
        for (const Packet& packet : test::collect(part.bytes, part.config).packets)
            encode(bytes, std::holds_alternative<CycleCountF1>(packet) ? any_time(random) : packet, config);
        const auto elements = test::decode<ReferenceDecoder>(bytes, config, *part.code);
        std::uint64_t ranges = 0;
        for (const synthetic::Element& element : elements) ranges += element.kind == synthetic::Kind::range ? 1 : 0;
        EXPECT_EQ(ranges, part.truth.ranges);
        test::expect_all_agree(elements, bytes, config, *part.code);
    }
}

}  // namespace
}  // namespace waymark::etm4
