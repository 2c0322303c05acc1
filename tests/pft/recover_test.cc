// Program flow before the first A-sync, from streams whose head was cut off at many places: what an uncut stream gives
// there is known. docs/spec/pft.md, 2.11.
#include "waymark/pft/recover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "pft/support.h"
#include "support/elements.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

using synthetic::Element;
using synthetic::Kind;

/// A program that ran, and its trace. It is the decoder's code too: of a program in part, what `extents` hold.
struct Trace final : isa::CodeReader {
    Config config;
    synthetic::Program program;
    std::vector<std::uint8_t> bytes;
    std::vector<CodeExtent> extents;

    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        const bool held = std::any_of(extents.begin(), extents.end(), [&](const CodeExtent& e) {
            return address >= e.first && address.value - e.first.value < e.bytes;
        });
        return held ? program.memory.at(address, space) : isa::Code{};
    }
    [[nodiscard]] isa::Space view(const isa::Space& space) const override { return program.memory.view(space); }
};

/// How a unit is programmed, and how much of the program a decoder has.
struct Setting {
    const char* name;
    Config config;
    bool in_part = false;
    unsigned stack_depth = 1;
    friend std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }
};

Trace make_trace(const Setting& setting, std::uint64_t seed) {
    Trace t;
    t.config = setting.config;
    t.program = synthetic::make_program({.seed = seed, .tee = false});
    synthetic::WalkOptions walk;
    walk.seed = seed + 1;
    walk.trustzone = false;
    walk.wrong_returns = 0;
    walk.debug = walk.jazelle = 0;
    synthetic::TraceWriterOptions writer;
    writer.seed = seed + 2;
    writer.return_stack_depth = setting.stack_depth;
    synthetic::TraceWriter out(t.config, writer);
    synthetic::Walk(t.program, walk).run(out, 40000);
    out.finish();
    t.bytes = out.bytes();
    for (const auto& s : t.program.memory.sections) t.extents.push_back({{s.address}, s.bytes.size()});
    if (setting.in_part) t.extents.resize(t.extents.size() * 2 / 3);
    return t;
}

/// The ranges in a list, by their packet.
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
    ReferenceDecoder decoder(t.config, t, out);
    decoder.feed(t.bytes);
    decoder.finish();
    return sink.take();
}

struct Score {
    std::uint64_t heads = 0, recovered_heads = 0, truth = 0, right = 0, wrong = 0, bytes = 0, recovered_bytes = 0;
    std::map<HeadOutcome, unsigned> outcomes;
    double expected_wrong = 0;        // by the confidence stated
    std::uint64_t wrong_if_sure = 0;  // at a confidence that prints as 1
    void print(const char* what) const {
        std::printf(
            "%-24s %llu of %llu heads, %.1f %% of %llu ranges, %llu wrong (%.1f by the confidence stated), %.1f %% of "
            "%llu bytes",
            what, static_cast<unsigned long long>(recovered_heads), static_cast<unsigned long long>(heads),
            100.0 * static_cast<double>(right) / static_cast<double>(std::max<std::uint64_t>(truth, 1)),
            static_cast<unsigned long long>(truth), static_cast<unsigned long long>(wrong), expected_wrong,
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
        const HeadRecovery head = recover_head(t.config, t, t.extents, stream);
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
        decode_head(head, t.config, t, stream, out);
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
        score.expected_wrong += (1 - head.confidence) * static_cast<double>(found.size());
        if (head.confidence > 0.99995) score.wrong_if_sure += found.size() - right;
    }
}

class RecoverHead : public ::testing::TestWithParam<Setting> {};
Config with(bool cycles, bool stack, bool timestamps, std::uint8_t context_id) {
    Config c;
    c.cycle_accurate = cycles;
    c.return_stack = stack;
    c.timestamps = timestamps;
    c.context_id_bytes = context_id;
    return c;
}
INSTANTIATE_TEST_SUITE_P(Configurations, RecoverHead,
                         ::testing::Values(Setting{"plain", with(false, false, false, 0)},
                                           Setting{"cycles", with(true, false, false, 0)},
                                           Setting{"timestamps_context", with(false, false, true, 4)},
                                           Setting{"return_stack", with(false, true, false, 0)},
                                           Setting{"deep_return_stack", with(false, true, false, 0), false, 4},
                                           Setting{"in_part", with(false, false, false, 0), true},
                                           Setting{"in_part_return_stack", with(false, true, false, 0), true}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(RecoverHead, GivesWhatAnUncutStreamGives) {
    constexpr std::uint64_t programs = sized(10U, 1U);
    constexpr unsigned cuts = sized(8U, 3U);
    const char* text = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    const std::uint64_t rounds = text != nullptr ? std::max(1UL, std::strtoul(text, nullptr, 10)) : 1;
    Score score;
    for (std::uint64_t seed = 1; seed <= programs * rounds; ++seed)
        cut_and_recover(make_trace(GetParam(), seed), cuts, seed, score);
    score.print(GetParam().name);
    EXPECT_GE(score.heads * 10, programs * rounds * cuts * 9);
    EXPECT_EQ(score.wrong_if_sure, 0U);
    EXPECT_LE(static_cast<double>(score.wrong), score.expected_wrong);
    // Of a whole program, no range is wrong. Invented programs spend their time in tiny loops, which look alike:
    // recorded ones give more. A head of cycle-accurate trace holds few ranges, and some are in the packets it begins
    // with, whose beginning is not known.
    if (!GetParam().in_part) {
        EXPECT_EQ(score.wrong, 0U);
        EXPECT_GE(score.right * 100, score.truth * (GetParam().config.cycle_accurate ? 70 : 80));
    } else {
        EXPECT_GE(score.right * 100, score.truth * 60);
    }
}

}  // namespace
}  // namespace waymark::pft
