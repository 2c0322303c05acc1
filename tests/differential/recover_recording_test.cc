// A recording of a real program whose head is cut off at many places: the part of the flow before the first A-sync that
// is recovered, compared with the uncut recording.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/elements.h"
#include "support/random.h"
#include "support/shell.h"
#include "support/temporary_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/pft/protocol.h"
#include "waymark/pft/recover.h"
#include "waymark/pipeline/run.h"

namespace waymark {
namespace {

using synthetic::Element;
using synthetic::Kind;

bool present(const std::string& program) {
    return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

class Keeper final : public pipeline::Consumer {
public:
    void feed(Bytes bytes) override { kept.insert(kept.end(), bytes.begin(), bytes.end()); }
    void reset(GapReason) override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }
    std::vector<std::uint8_t> kept;
};

using Ranges = std::vector<std::pair<std::uint64_t, flow::Block>>;
Ranges ranges_of(const std::vector<Element>& elements, std::uint64_t shift, std::uint64_t from, std::uint64_t to) {
    Ranges out;
    for (const Element& e : elements)
        if (e.kind == Kind::range && e.offset + shift >= from && e.offset + shift < to)
            out.emplace_back(e.offset + shift, e.block);
    return out;
}

class RecoverRecording : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Programmed, RecoverRecording,
                         ::testing::Values("", "--cycle-accurate", "--timestamps --context-id 4"));

TEST_P(RecoverRecording, GivesNineTenthsOfWhatTheUncutRecordingGives) {
    for (const char* needed : {"arm-linux-gnueabihf-gcc", "qemu-arm"})
        if (!present(needed)) GTEST_SKIP() << "NOT RUN: no " << needed << " (gcc-arm-linux-gnueabihf, qemu-user)";
    const TemporaryFolder folder;
    const std::string program = (folder.path() / "interpreter").string(), out = (folder.path() / "out").string();
    const std::string source = std::string(WAYMARK_SOURCE_DIR) + "/examples/interpreter";
    ASSERT_EQ(std::system(("arm-linux-gnueabihf-gcc -O1 -march=armv7-a+fp -static -o " + shell_word(program) + " " +
                           shell_word(source) + "/*.c")
                              .c_str()),
              0);
    // A C library reads its environment and the program's name before main: with these the same runs everywhere.
    ASSERT_EQ(std::system(("cd " + shell_word(folder.path()) + " && env -i PATH=\"$PATH\" " +
                           shell_word(WAYMARK_PROGRAM) + " record --from-start --limit 60000 " + GetParam() +
                           " -o out -- ./interpreter sieve 100 > /dev/null 2>&1")
                              .c_str()),
              0);
    auto capture = capture::read_snapshot(out);
    ASSERT_TRUE(capture.has_value());
    const auto session = pipeline::make_session(std::move(*capture), {});
    ASSERT_TRUE(session.has_value());
    const auto selected = session->select({});
    const pipeline::Report report =
        pipeline::run(*session, *selected, [](const pipeline::StreamInfo&) { return std::make_unique<Keeper>(); });
    const pipeline::Source& unit = *report.streams.front().source;
    const pft::Config& config = pft::config_of(*unit.configuration);
    const std::vector<std::uint8_t> bytes = static_cast<const Keeper&>(*report.streams.front().consumer).kept;
    std::vector<pft::CodeExtent> extents;
    for (const image::Region& r : unit.memory->regions())
        if (!r.shadowed_by) extents.push_back({r.address, r.bytes});

    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter writer(table, sink);
    pft::ReferenceDecoder decoder(config, *unit.memory, writer);
    decoder.feed(bytes);
    decoder.finish();
    const std::vector<Element> truth = sink.take();

    synthetic::Random random(11);
    std::uint64_t heads = 0, recovered = 0, expected_ranges = 0, right = 0, wrong = 0;
    for (unsigned i = 0; i < 40; ++i) {
        const std::size_t cut = 1 + random.below(static_cast<std::uint32_t>(bytes.size() * 8 / 10));
        const Bytes stream = Bytes(bytes).subspan(cut);
        const pft::HeadRecovery head = pft::recover_head(config, *unit.memory, extents, stream);
        if (head.outcome == pft::HeadOutcome::no_sync || head.outcome == pft::HeadOutcome::no_head) continue;
        ++heads;
        const Ranges expected = ranges_of(truth, 0, cut, cut + head.sync.value);
        expected_ranges += expected.size();
        recovered += head.outcome == pft::HeadOutcome::recovered ? 1 : 0;
        synthetic::ElementSink delivered;
        flow::BlockTable blocks;
        flow::BatchWriter to(blocks, delivered);
        pft::decode_head(head, config, *unit.memory, stream, to);
        const Ranges found = ranges_of(delivered.take(), cut, cut, cut + head.sync.value);
        std::uint64_t same = 0;
        auto next = expected.begin();
        for (const auto& range : found) {
            const auto at = std::find(next, expected.end(), range);
            if (at == expected.end()) continue;
            ++same;
            next = at + 1;
        }
        right += same;
        wrong += found.size() - same;
    }
    std::printf("'%s': %llu of %llu heads, %.1f %% of %llu ranges, %llu wrong\n", GetParam(),
                static_cast<unsigned long long>(recovered), static_cast<unsigned long long>(heads),
                100.0 * static_cast<double>(right) / static_cast<double>(std::max<std::uint64_t>(expected_ranges, 1)),
                static_cast<unsigned long long>(expected_ranges), static_cast<unsigned long long>(wrong));
    EXPECT_GE(heads, 20U);
    EXPECT_GE(right * 10, expected_ranges * 9);
    EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace waymark
