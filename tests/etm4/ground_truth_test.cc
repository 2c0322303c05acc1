// Random programs and random executions of them given to the model: what it is given is what the decoders deliver
// (docs/spec/etm4-registers.md, 2.13 to 2.18).

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/execution.h"
#include "etm4/support.h"
#include "support/sanitized.h"

namespace waymark::etm4 {
namespace {

using test::Execution;

struct Class {
    std::string name;
    ModelConfig config;
    Execution::Options options;
};

/// One for each thing that changes what the unit sends.
std::vector<Class> classes() {
    std::vector<Class> out;
    for (const bool ete : {false, true}) {
        const auto make = [&](const char* name, auto&& change) {
            Config c = ete ? test::ete(3) : test::etmv4();
            c.q_elements = c.cycle_counting = c.timestamps = false;
            c.commit_mode_1 = true;
            Class one;
            one.options.transactions = ete;
            ModelChoices choices;
            change(c, choices, one.options);
            one.config = {tracing_registers(c), Profile::a, choices};
            one.config.registers.syncpr.period = 8;
            one.name = std::string(ete ? "ete_" : "etmv4_") + name;
            out.push_back(one);
        };
        using C = Config;
        using M = ModelChoices;
        using O = Execution::Options;
        make("plain", [](C& c, M&, O&) { c.context_id_trace = c.vmid_trace = false; });
        make("contexts", [](C&, M&, O&) {});
        make("batched", [](C& c, M&, O& o) {
            c.return_stack = true;
            o.batched = true;
        });
        make("return_stack", [](C& c, M&, O&) { c.return_stack = true; });
        make("deep_return_stack", [](C& c, M& m, O&) {
            c.return_stack = true;
            m.return_stack_depth = 15;
        });
        make("broadcast", [](C& c, M&, O&) { c.branch_broadcast = c.wfx_p0 = true; });
        make("broadcast_return_stack", [](C& c, M&, O&) { c.branch_broadcast = c.return_stack = true; });
        make("cycles", [](C& c, M&, O&) { c.cycle_counting = true; });
        make("cycles_mode_0", [](C& c, M&, O&) {
            c.cycle_counting = true;
            c.commit_mode_1 = false;
        });
        make("long_cycles", [](C& c, M&, O& o) {
            c.cycle_counting = true;
            o.most_cycles = 2000;
        });
        make("timestamps", [](C& c, M&, O&) { c.timestamps = true; });
        make("cycles_timestamps", [](C& c, M&, O&) { c.cycle_counting = c.timestamps = c.return_stack = true; });
        make("unfolded", [](C&, M& m, O&) { m.folds_exception_address = false; });
        make("fifo", [](C& c, M& m, O&) {
            c.cycle_counting = c.timestamps = c.return_stack = true;
            m.fifo_bytes = 80;
            m.drain_cycles = 20;
        });
        for (const std::uint32_t speculation : {2U, 8U, 60U}) {
            const std::string name = "speculation_" + std::to_string(speculation);
            make(name.c_str(), [&](C& c, M& m, O&) {
                c.max_speculation = speculation;
                c.return_stack = true;
                m.mispredict_one_in = 4;
            });
            make((name + "_broadcast").c_str(), [&](C& c, M& m, O&) {
                c.max_speculation = speculation;
                c.branch_broadcast = true;
                m.mispredict_one_in = 4;
            });
            for (const bool mode_1 : {false, true})
                make((name + (mode_1 ? "_cycles_mode_1" : "_cycles_mode_0")).c_str(), [&](C& c, M& m, O&) {
                    c.max_speculation = speculation;
                    c.cycle_counting = c.timestamps = true;
                    c.commit_mode_1 = mode_1;
                    m.mispredict_one_in = 4;
                });
            make((name + "_fifo").c_str(), [&](C& c, M& m, O&) {
                c.max_speculation = speculation;
                m.mispredict_one_in = 4;
                m.fifo_bytes = 64;
                m.drain_cycles = 30;
            });
        }
        if (ete) {
            make("source_addresses", [](C& c, M& m, O&) {
                c.return_stack = true;
                m.source_address_after = 0;
            });
            make("source_addresses_speculation", [](C& c, M& m, O&) {
                c.max_speculation = 8;
                m.mispredict_one_in = 4;
                m.source_address_after = 1;
            });
            make("q", [](C& c, M& m, O&) {
                c.q_elements = true;
                m.q_one_in = 3;
            });
            make("q_return_stack_speculation", [](C& c, M& m, O&) {
                c.q_elements = c.return_stack = true;
                c.max_speculation = 8;
                m.mispredict_one_in = 4;
                m.q_one_in = 3;
            });
        }
    }
    return out;
}

class Etm4Model : public testing::TestWithParam<Class> {};

/// WAYMARK_PROPERTY_PROGRAMS=10000 in the environment tries so many of each class.
unsigned programs_of_model(unsigned usual) {
    const char* const wanted = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : usual;
}

TEST_P(Etm4Model, GivesWhatRan) {
    const Class& c = GetParam();
    const Config config = packets_of(c.config.registers, c.config.profile);
    ModelCounts sum;
    for (std::uint64_t seed = 1; seed <= programs_of_model(sized(12U, 3U)); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ModelConfig with_seed = c.config;
        with_seed.choices.seed = seed;
        Execution execution(with_seed, seed, c.options);
        execution.run(400);
        const std::vector<synthetic::Element> elements =
            test::decode<ReferenceDecoder>(execution.bytes(), config, execution.memory);
        ASSERT_EQ(test::difference_from(elements, execution.truth, config), "");
        ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, execution.bytes(), config, execution.memory));
        const ModelCounts& counts = execution.counts();
        ASSERT_EQ(counts.bytes, execution.bytes().size());
        std::uint64_t lost = 0;
        for (const Execution::Ran& ran : execution.truth) lost += ran.lost ? 1 : 0;
        ASSERT_EQ(counts.p0, execution.truth.size() - lost);
        ASSERT_EQ(counts.overflowed, lost);
        sum.p0 += counts.p0;
        sum.cancelled += counts.cancelled;
        sum.overflowed += counts.overflowed;
    }
    EXPECT_GT(sum.p0, 500U);
    EXPECT_EQ(sum.cancelled != 0, c.config.choices.mispredict_one_in != 0);
    EXPECT_EQ(sum.overflowed != 0, c.config.choices.fifo_bytes != 0);
    std::printf("%s: %llu P0 elements, %llu cancelled, %llu lost\n", c.name.c_str(),
                static_cast<unsigned long long>(sum.p0), static_cast<unsigned long long>(sum.cancelled),
                static_cast<unsigned long long>(sum.overflowed));
}

INSTANTIATE_TEST_SUITE_P(Everything, Etm4Model, testing::ValuesIn(classes()),
                         [](const auto& which) { return which.param.name; });

// Many blocks in one call give the bytes of one call for each.
TEST(Etm4ModelBlocks, GivenAtOnceGiveTheSameBytes) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        Config c = seed % 2 == 0 ? test::ete(3) : test::etmv4();
        c.cycle_counting = c.timestamps = seed % 5 == 0;
        c.q_elements = false;
        c.return_stack = seed % 3 == 0;
        ModelConfig config{.registers = tracing_registers(c)};
        config.registers.syncpr.period = 8;
        Execution::Options batched;
        batched.batched = true;
        Execution execution(config, seed, batched);
        execution.run(500);
        Execution::Options one_by_one = batched;
        one_by_one.one_by_one = true;
        Execution other(config, seed, one_by_one);
        other.run(500);
        ASSERT_EQ(execution.bytes(), other.bytes()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace waymark::etm4
