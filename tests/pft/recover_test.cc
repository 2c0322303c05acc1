// Program flow before the first A-sync, from streams whose head was cut off at many places: what an uncut stream gives
// there is known. docs/spec/pft.md, 2.11.
#include "waymark/pft/recover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "pft/support.h"
#include "support/elements.h"
#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

using synthetic::Element;
using synthetic::Kind;

/// A program that ran, and its trace.
struct Trace {
    Config config;
    synthetic::Program program;
    std::vector<std::uint8_t> bytes;
    std::vector<CodeExtent> extents;
};

Trace make_trace(const Config& config, std::uint64_t seed, std::uint32_t sync_bytes = 1024) {
    Trace t{config, synthetic::make_program({.seed = seed, .tee = false}), {}, {}};
    synthetic::WalkOptions walk;
    walk.seed = seed + 1;
    walk.trustzone = false;
    walk.wrong_returns = 0;
    walk.debug = walk.jazelle = 0;
    synthetic::TraceWriterOptions writer;
    writer.seed = seed + 2;
    writer.sync_bytes = sync_bytes;
    synthetic::TraceWriter out(config, writer);
    synthetic::Walk(t.program, walk).run(out, 40000);
    out.finish();
    t.bytes = out.bytes();
    for (const auto& s : t.program.memory.sections) t.extents.push_back({{s.address}, s.bytes.size()});
    return t;
}

/// The ranges in a list, by the packet that told them.
using Ranges = std::vector<std::pair<std::uint64_t, flow::Block>>;
Ranges ranges_of(const std::vector<Element>& elements, std::uint64_t shift, std::uint64_t from, std::uint64_t to) {
    Ranges out;
    for (const Element& e : elements)
        if (e.kind == Kind::range && e.offset + shift >= from && e.offset + shift < to)
            out.emplace_back(e.offset + shift, e.block);
    return out;
}

std::vector<Element> decode_all(const Trace& t) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    ReferenceDecoder decoder(t.config, t.program.memory, out);
    decoder.feed(t.bytes);
    decoder.finish();
    return sink.take();
}

struct Score {
    std::uint64_t heads = 0, recovered_heads = 0, truth = 0, right = 0, wrong = 0, bytes = 0, recovered_bytes = 0;
    std::map<HeadOutcome, unsigned> outcomes;
    void print(const char* what) const {
        std::printf(
            "%-24s %llu of %llu heads, %.1f %% of %llu ranges, %llu wrong, %.1f %% of %llu bytes", what,
            static_cast<unsigned long long>(recovered_heads), static_cast<unsigned long long>(heads),
            100.0 * static_cast<double>(right) / static_cast<double>(std::max<std::uint64_t>(truth, 1)),
            static_cast<unsigned long long>(truth), static_cast<unsigned long long>(wrong),
            100.0 * static_cast<double>(recovered_bytes) / static_cast<double>(std::max<std::uint64_t>(bytes, 1)),
            static_cast<unsigned long long>(bytes));
        for (const auto& [outcome, count] : outcomes)
            if (outcome != HeadOutcome::recovered) std::printf("; %u: %s", count, std::string(name(outcome)).c_str());
        std::printf("\n");
    }
};

void cut_and_recover(const Trace& t, unsigned cuts, std::uint64_t seed, Score& score) {
    const std::vector<Element> truth = decode_all(t);
    synthetic::Random random(seed);
    for (unsigned i = 0; i < cuts; ++i) {
        const std::size_t cut = random.below(static_cast<std::uint32_t>(t.bytes.size() * 9 / 10));
        const Bytes stream = Bytes(t.bytes).subspan(cut);
        const HeadRecovery head = recover_head(t.config, t.program.memory, t.extents, stream);
        if (head.outcome == HeadOutcome::no_head || head.outcome == HeadOutcome::no_sync) continue;
        ++score.heads;
        ++score.outcomes[head.outcome];
        score.bytes += head.sync.value;
        const Ranges expected = ranges_of(truth, 0, cut, cut + head.sync.value);
        score.truth += expected.size();
        if (head.outcome != HeadOutcome::recovered) {
            EXPECT_EQ(head.bytes(), 0U);
            continue;
        }
        ++score.recovered_heads;
        score.recovered_bytes += head.bytes();
        EXPECT_GE(head.confidence, least_confidence);
        flow::BlockTable table;
        synthetic::ElementSink sink;
        flow::BatchWriter out(table, sink);
        decode_head(head, t.config, t.program.memory, stream, out);
        const std::vector<Element> elements = sink.take();
        ASSERT_FALSE(elements.empty());
        EXPECT_EQ(elements.front().kind, Kind::trace_on);
        EXPECT_EQ(elements.front().a, static_cast<std::uint64_t>(flow::TraceOnReason::recovered));
        const Ranges found = ranges_of(elements, cut, cut, cut + head.sync.value);
        std::uint64_t right = 0;
        auto next = expected.begin();
        for (const auto& range : found) {
            const auto same = std::find(next, expected.end(), range);
            if (same == expected.end()) continue;
            ++right;
            next = same + 1;
        }
        score.right += right;
        score.wrong += found.size() - right;
    }
}

class RecoverHead : public ::testing::TestWithParam<std::pair<const char*, Config>> {};
Config with(bool cycles, bool stack, bool timestamps, std::uint8_t context_id) {
    Config c;
    c.cycle_accurate = cycles;
    c.return_stack = stack;
    c.timestamps = timestamps;
    c.context_id_bytes = context_id;
    return c;
}
INSTANTIATE_TEST_SUITE_P(Configurations, RecoverHead,
                         ::testing::Values(std::pair{"plain", with(false, false, false, 0)},
                                           std::pair{"cycles", with(true, false, false, 0)},
                                           std::pair{"timestamps_context", with(false, false, true, 4)},
                                           std::pair{"return_stack", with(false, true, false, 0)}),
                         [](const auto& test) { return std::string(test.param.first); });

TEST_P(RecoverHead, GivesWhatAnUncutStreamGives) {
    Score score;
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        cut_and_recover(make_trace(GetParam().second, seed), GetParam().second.return_stack ? 10 : 40, seed, score);
    score.print(GetParam().first);
    EXPECT_GE(score.heads, 25U);
    // Invented programs spend their time in tiny loops, which look alike: recorded ones give more.
    // With a return stack, what lay on it before the cut is missing too.
    EXPECT_GE(score.right * 10, score.truth * (GetParam().second.return_stack ? 5 : 8));
    EXPECT_LE(score.wrong * 50, score.truth);
}

}  // namespace
}  // namespace waymark::pft
