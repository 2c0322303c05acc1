// Program flow before the first A-sync, from streams whose head was cut off at many places: the uncut stream shows the
// truth. docs/spec/pft.md, 2.11.
#include "waymark/pft/recover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "pft/support.h"
#include "support/elements.h"
#include "support/heads.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

using synthetic::Element;

/// A program that ran, and its trace. It is also the code for the decoder: if the decoder has only a part, `extents` is
/// that part.
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

/// How a unit is programmed, and which part of the program a decoder has.
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

std::vector<Element> decode_all(const Trace& t) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    ReferenceDecoder decoder(t.config, t, out);
    decoder.feed(t.bytes);
    decoder.finish();
    return sink.take();
}

void cut_and_recover(const Trace& t, unsigned cuts, std::uint64_t seed, synthetic::HeadScore& score) {
    synthetic::cut_and_recover(
        t.bytes, decode_all(t), cuts, seed, score,
        [&](Bytes stream) { return recover_head(t.config, t, t.extents, stream); },
        [&](const HeadRecovery& head, Bytes stream, flow::BatchWriter& out) {
            decode_head(head, t.config, t, stream, out);
        });
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
    const std::uint64_t rounds = synthetic::property_rounds();
    synthetic::HeadScore score;
    for (std::uint64_t seed = 1; seed <= programs * rounds; ++seed)
        cut_and_recover(make_trace(GetParam(), seed), cuts, seed, score);
    score.print(GetParam().name);
    EXPECT_GE(score.heads * 10, programs * rounds * cuts * 9);
    EXPECT_EQ(score.wrong_if_sure, 0U);
    EXPECT_LE(static_cast<double>(score.wrong), score.expected_wrong);
    // With the whole program, no range is wrong. Invented programs spend their time in tiny loops, which look alike:
    // recorded programs give more. A head of cycle-accurate trace contains few ranges, and some are in its first
    // packets, whose beginning is unknown.
    if (!GetParam().in_part) {
        EXPECT_EQ(score.wrong, 0U);
        EXPECT_GE(score.right * 100, score.truth * (GetParam().config.cycle_accurate ? 70 : 80));
    } else {
        EXPECT_GE(score.right * 100, score.truth * 60);
    }
}

}  // namespace
}  // namespace waymark::pft
