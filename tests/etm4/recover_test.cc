// Program flow before the first A-sync, in streams of the model that were cut at many places of their heads: the uncut
// stream shows the truth. docs/recover.md.
#include "waymark/etm4/recover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/execution.h"
#include "support/heads.h"
#include "support/sanitized.h"

namespace waymark::etm4 {
namespace {

using test::Execution;

/// How a unit is built and programmed, and which part of the program a decoder has.
struct HeadSetting {
    std::string name;
    std::function<void(Config&, ModelChoices&, Execution::Options&)> change;
    bool in_part = false;
    unsigned least_per_cent = 0;  ///< of the ranges
    friend std::ostream& operator<<(std::ostream& out, const HeadSetting& setting) { return out << setting.name; }
};

/// The program, or the part that a decoder has.
class HeadCode final : public isa::CodeReader {
public:
    HeadCode(const synthetic::Memory& memory, bool in_part) : memory_(memory) {
        for (const auto& s : memory.sections)
            extents.push_back({{s.address}, in_part ? s.bytes.size() * 2 / 3 : s.bytes.size()});
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        for (const follow::CodeExtent& e : extents)
            if (address >= e.first && address.value - e.first.value < e.bytes) {
                isa::Code code = memory_.at(address, space);
                code.bytes = code.bytes.first(
                    std::min<std::size_t>(code.bytes.size(), e.bytes - (address.value - e.first.value)));
                return code;
            }
        return {};
    }
    [[nodiscard]] isa::Space view(const isa::Space& space) const override { return memory_.view(space); }
    std::vector<follow::CodeExtent> extents;

private:
    const synthetic::Memory& memory_;
};

std::vector<HeadSetting> head_settings() {
    using C = Config;
    using M = ModelChoices;
    using O = Execution::Options;
    const auto bare = [](C& c) {
        c.q_elements = c.cycle_counting = c.timestamps = false;
        c.commit_mode_1 = true;
    };
    const auto etmv4 = [=](C& c) { c = test::etmv4(), bare(c); };
    const auto ete = [=](C& c) { c = test::ete(3), bare(c); };
    return {
        {"etmv4", [=](C& c, M&, O&) { etmv4(c); }, false, sized(75U, 0U)},
        {"etmv4_a64", [=](C& c, M&, O& o) { etmv4(c), o.contents.aarch32 = false; }, false, sized(80U, 0U)},
        {"etmv4_return_stack", [=](C& c, M&, O&) { etmv4(c), c.return_stack = true; }, false, sized(75U, 0U)},
        {"etmv4_broadcast", [=](C& c, M&, O&) { etmv4(c), c.branch_broadcast = c.wfx_p0 = true; }, false,
         sized(70U, 0U)},
        {"ete_transactions", [=](C& c, M&, O& o) { ete(c), o.transactions = true; }, false, sized(75U, 0U)},
        {"ete_sources",
         [=](C& c, M& m, O&) {
             ete(c);
             m.source_address_after = 1;
         },
         false, sized(75U, 0U)},
        {"ete_q",
         [=](C& c, M& m, O&) {
             ete(c);
             c.q_elements = true;
             m.q_one_in = 40;
         },
         false, sized(15U, 0U)},
        {"etmv4_fifo",
         [=](C& c, M& m, O&) {
             etmv4(c);
             c.cycle_counting = c.timestamps = c.return_stack = true;
             m.fifo_bytes = 80;
             m.drain_cycles = 20;
         },
         false, sized(55U, 0U)},
        {"ete_speculation",
         [=](C& c, M& m, O&) {
             ete(c);
             c.max_speculation = 8;
             c.return_stack = true;
             m.mispredict_one_in = 4;
         },
         false, sized(65U, 0U)},
        {"etmv4_speculation_cycles",
         [=](C& c, M& m, O&) {
             etmv4(c);
             c.max_speculation = 60;
             c.cycle_counting = c.timestamps = true;
             c.commit_mode_1 = false;
             m.mispredict_one_in = 4;
         },
         false, sized(60U, 0U)},
        {"etmv4_in_part", [=](C& c, M&, O&) { etmv4(c); }, true, sized(60U, 0U)},
        {"ete_in_part_return_stack", [=](C& c, M&, O&) { ete(c), c.return_stack = true; }, true, sized(55U, 0U)},
    };
}

class Etm4RecoverHead : public testing::TestWithParam<HeadSetting> {};
INSTANTIATE_TEST_SUITE_P(Settings, Etm4RecoverHead, testing::ValuesIn(head_settings()),
                         [](const auto& which) { return which.param.name; });

TEST_P(Etm4RecoverHead, GivesWhatAnUncutStreamGives) {
    constexpr std::uint64_t programs = sized(4U, 1U);
    constexpr unsigned cuts = sized(4U, 2U);
    const std::uint64_t rounds = synthetic::property_rounds();
    synthetic::HeadScore score;
    for (std::uint64_t seed = 1; seed <= programs * rounds; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Config c;
        ModelChoices choices;
        choices.seed = seed;
        Execution::Options options;
        GetParam().change(c, choices, options);
        ModelConfig config{tracing_registers(c), CoreProfile::a, choices};
        config.registers.syncpr.period = 10;
        Execution execution(config, seed, options);
        execution.run(4000);
        const Config packets = packets_of(config.registers, CoreProfile::a);
        const HeadCode code(execution.memory, GetParam().in_part);
        const auto truth = test::decode<ReferenceDecoder>(execution.bytes(), packets, code);
        synthetic::cut_and_recover(
            execution.bytes(), truth, cuts, seed, score,
            [&](Bytes stream) { return recover_head(packets, code, code.extents, stream); },
            [&](const follow::HeadRecovery& head, Bytes stream, flow::BatchWriter& out) {
                decode_head(head, packets, code, stream, out);
            });
    }
    score.print(GetParam().name.c_str());
    EXPECT_EQ(score.wrong_if_sure, 0U);
    EXPECT_LE(static_cast<double>(score.wrong), score.expected_wrong);
    if (!GetParam().in_part) {
        EXPECT_EQ(score.wrong, 0U);
    }
    EXPECT_GE(score.right * 100, score.truth * GetParam().least_per_cent);
}

}  // namespace
}  // namespace waymark::etm4
