// The two decoders, which have nothing in common but packets and parser, on random trace and on damaged trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "etm3/random_trace.h"
#include "support/damage.h"
#include "support/elements.h"
#include "support/sanitized.h"
#include "support/wanted.h"
#include "waymark/etm3/decoder.h"

namespace waymark::etm3 {
namespace {

using synthetic::Element, synthetic::ElementSink, synthetic::Kind;
using test::RandomTrace, test::RanInstruction;

struct Case {
    Config config;
    const synthetic::Program& program;
};

template <class AnyDecoder>
std::vector<Element> decoded(const Case& c, Bytes bytes, std::size_t chunk) {
    ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    AnyDecoder decoder(c.config, c.program.memory, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        decoder.feed(bytes.subspan(at, std::min(chunk, bytes.size() - at)));
    decoder.finish();
    return sink.take();
}
std::vector<Element> decoded_in_parallel(const Case& c, Bytes bytes, unsigned workers) {
    ElementSink sink;
    flow::BlockTable table;
    ParallelDecoder decoder(c.config, c.program.memory, table, sink, {.workers = workers, .piece_bytes = 64});
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

/// The elements of the reference decoder; all others agree.
std::vector<Element> agreed(const Case& c, Bytes bytes, synthetic::Random& random, const std::string& what) {
    auto reference = decoded<ReferenceDecoder>(c, bytes, bytes.size());
    const auto same = [&](const std::vector<Element>& found, const char* by) {
        const std::string differs = synthetic::difference(found, reference, by, "reference");
        EXPECT_EQ(differs, "") << what;
    };
    same(decoded<Decoder>(c, bytes, bytes.size()), "fast");
    same(decoded<Decoder>(c, bytes, 1 + random.below(40)), "fast, in chunks");
    same(decoded<ReferenceDecoder>(c, bytes, 1 + random.below(40)), "reference, in chunks");
    same(decoded_in_parallel(c, bytes, 2 + random.below(2)), "parallel");
    return reference;
}

TEST(Etm3Reference, RandomTraceIsDecodedToWhatRan) {
    synthetic::Random random(1);
    const unsigned programs = wanted(sized(24U, 8U));
    for (unsigned n = 0; n < programs; ++n) {
        const auto program = synthetic::make_program({.seed = n + 1U, .blocks = 120, .large_block_chance = 0});
        const Case c{test::random_config(random), program};
        RandomTrace trace(c.config, program, n + 1U);
        trace.run(400, 120);
        const std::string what = "program " + std::to_string(n);
        const auto elements = agreed(c, trace.bytes, random, what);
        std::vector<RanInstruction> ran;
        for (const Element& e : elements) {
            if (e.kind == Kind::range) ran.push_back({e.block.start, e.taken});
            EXPECT_TRUE(e.kind != Kind::gap && e.kind != Kind::atoms && e.kind != Kind::inconsistency &&
                        e.kind != Kind::no_memory)
                << what << ": " << synthetic::to_text(e);
        }
        EXPECT_EQ(ran.size(), trace.ran.size()) << what;
        EXPECT_TRUE(ran == trace.ran) << what;
        if (HasFailure()) return;
    }
}

TEST(Etm3Reference, DamagedTraceIsDecodedAlikeAndRightBehindTheNextSync) {
    synthetic::Random random(2);
    const unsigned programs = wanted(sized(12U, 4U)), damages = sized(12U, 6U);
    unsigned compared = 0;
    for (unsigned n = 0; n < programs; ++n) {
        const auto program = synthetic::make_program({.seed = n + 100U, .blocks = 120, .large_block_chance = 0});
        const Case c{test::random_config(random), program};
        RandomTrace trace(c.config, program, n + 1U);
        trace.run(250, 60);
        const auto whole = decoded<ReferenceDecoder>(c, trace.bytes, trace.bytes.size());
        for (unsigned i = 0; i < damages; ++i) {
            synthetic::Damage d = synthetic::damage(trace.bytes, random);
            if (i % 4 == 3 && d.first > 16 && d.end + 16 < trace.bytes.size()) {
                // Two parts of the trace in the other order.
                d = {trace.bytes, d.first - 16, d.first + 16, 0, 0};
                const auto at = d.bytes.begin() + static_cast<std::ptrdiff_t>(d.first);
                std::rotate(at, at + 16, at + 32);
            }
            const std::string what = "program " + std::to_string(n) + ", damage " + std::to_string(i);
            const auto found = agreed(c, d.bytes, random, what);
            // From the second sync after the damage on: the damage may hide the first.
            const auto sync = std::upper_bound(trace.syncs.begin(), trace.syncs.end(), d.end + 1);
            if (sync != trace.syncs.end() && sync + 1 != trace.syncs.end()) {
                ++compared;
                const std::uint64_t from = *(sync + 1) + 6;
                const auto after = synthetic::flow_after(found, from + d.added - d.dropped, d.dropped, d.added);
                const auto expected = synthetic::flow_after(whole, from, 0, 0);
                const auto plain = [](const Element& e) { return e.kind == Kind::timestamp; };
                auto a = after, b = expected;
                std::erase_if(a, plain);  // the high bits of timestamps come with the next whole one
                std::erase_if(b, plain);
                EXPECT_EQ(synthetic::difference(a, b), "") << what;
            }
            if (HasFailure()) return;
        }
    }
    EXPECT_GT(compared, damages * programs / 4);
}

}  // namespace
}  // namespace waymark::etm3
