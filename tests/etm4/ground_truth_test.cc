// Random programs and random executions of them given to the model: the decoders deliver the same executions
// (docs/spec/etm4-registers.md, 2.13 to 2.18).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/execution.h"
#include "etm4/support.h"
#include "support/sanitized.h"
#include "waymark/etm4/access.h"

namespace waymark::etm4 {
namespace {

using test::Execution;

struct Class {
    std::string name;
    ModelConfig config;
    Execution::Options options;
};

/// One for each setting that changes the unit's output.
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
            one.config = {tracing_registers(c), CoreProfile::a, choices};
            one.config.registers.syncpr.period = 8;
            // Comparators of the program's A64 code, for filters with ranges.
            one.config.registers.acvr[0].address = 0x40'0100;
            one.config.registers.acvr[1].address = 0x40'0300;
            const bool ranges = std::string(name).ends_with("_ranges");
            one.config.registers.bbctlr.range = one.config.registers.qctlr.range = ranges ? 1 : 0;
            one.config.registers.qctlr.mode = ranges;
            one.config.registers.idr0.qfilt = ranges;
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
        const auto again = [](Model&, std::uint64_t, wire::Random&) { return decltype(O::view){}; };
        make("sessions", [&](C& c, M&, O& o) {
            c.cycle_counting = c.timestamps = c.return_stack = true;
            o.program = again;
        });
        make("sessions_speculation_fifo", [&](C& c, M& m, O& o) {
            c.max_speculation = 8;
            m.mispredict_one_in = 4;
            m.fifo_bytes = 64;
            m.drain_cycles = 30;
            o.program = again;
        });
        make("broadcast_ranges", [](C& c, M&, O&) { c.branch_broadcast = true; });
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
            make((name + "_committed").c_str(), [&](C& c, M& m, O&) {
                c.max_speculation = speculation;
                c.return_stack = c.branch_broadcast = true;
                m.mispredict_one_in = 3;
                m.mispredict_committed = true;
            });
            make((name + "_committed_cycles").c_str(), [&](C& c, M& m, O&) {
                c.max_speculation = speculation;
                c.cycle_counting = c.timestamps = c.return_stack = true;
                m.mispredict_one_in = 3;
                m.mispredict_committed = true;
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
            make("q_ranges", [](C& c, M& m, O&) {
                c.q_elements = true;
                m.q_one_in = 2;
            });
            make("q_return_stack", [](C& c, M& m, O&) {
                c.q_elements = c.return_stack = true;
                m.q_one_in = 3;
            });
            make("q_deep_return_stack", [](C& c, M& m, O&) {
                c.q_elements = c.return_stack = true;
                m.return_stack_depth = 15;
                m.q_one_in = 2;
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

using Starts = std::vector<std::uint64_t>;
using View = std::function<bool(const Starts&, const flow::Context&)>;

/// Filters, and the same rule written for lists of instructions (docs/spec/etm4-registers.md, 2.12).
struct Filter {
    std::string name;
    std::function<void(Registers&)> program;
    std::function<View()> view;  ///< a new one for each execution: it has the start/stop state
};

bool any_in(const Starts& starts, std::uint64_t low, std::uint64_t high) {
    return std::any_of(starts.begin(), starts.end(), [&](std::uint64_t at) { return at >= low && at <= high; });
}
bool all_in(const Starts& starts, std::uint64_t low, std::uint64_t high) {
    return std::all_of(starts.begin(), starts.end(), [&](std::uint64_t at) { return at >= low && at <= high; });
}
void range(Registers& r, unsigned n, std::uint64_t low, std::uint64_t high) {
    r.acvr[2 * n].address = low;
    r.acvr[2 * n + 1].address = high;
}

std::vector<Filter> filters() {
    constexpr std::uint64_t a = 0x40'0080, b = 0x40'0300, c = 0x40'0180, d = 0x40'01fc;
    constexpr std::uint64_t high = 0xffff'8000'0008'0000;
    const auto none = [] { return [](const Starts&, const flow::Context&) { return false; }; };
    const auto contexts = [](auto&& excluded) {
        return [excluded] { return [excluded](const Starts&, const flow::Context& x) { return !excluded(x); }; };
    };
    return {
        {"event_false", [](Registers& r) { r.victlr.sel = 0; }, none},
        {"stopped", [](Registers& r) { r.victlr.ssstatus = false; }, none},
        {"include",
         [](Registers& r) {
             range(r, 1, a, b);
             range(r, 3, high, high + 0x100);
             r.viiectlr.include = 0b1010;
         },
         [] {
             return
                 [](const Starts& s, const flow::Context&) { return any_in(s, a, b) || any_in(s, high, high + 0x100); };
         }},
        {"exclude",
         [](Registers& r) {
             range(r, 0, a, b);
             r.viiectlr.exclude = 1;
         },
         [] { return [](const Starts& s, const flow::Context&) { return !all_in(s, a, b); }; }},
        {"include_exclude",
         [](Registers& r) {
             range(r, 0, a, b);
             range(r, 1, c, d);
             r.viiectlr.include = 1;
             r.viiectlr.exclude = 2;
         },
         [] { return [](const Starts& s, const flow::Context&) { return any_in(s, a, b) && !all_in(s, c, d); }; }},
        {"include_of_a_level",
         [](Registers& r) {
             range(r, 0, a, b);
             r.acatr[0].exlevel_ns = 0b010;
             r.acatr[0].exlevel_s = 0b1101;
             r.viiectlr.include = 1;
         },
         [] {
             return [](const Starts& s, const flow::Context& x) {
                 const bool out = x.nse ? !x.ns || *x.el == 1 : x.ns ? *x.el == 1 : *x.el != 1;
                 return any_in(s, a, b) && !out;
             };
         }},
        {"include_of_a_context",
         [](Registers& r) {
             range(r, 0, a, b);
             r.acatr[0].contexttype = 3;
             r.cidcvr[0].value = 2;
             r.vmidcvr[0].value = 1;
             r.viiectlr.include = 1;
         },
         [] {
             return [](const Starts& s, const flow::Context& x) {
                 return any_in(s, a, b) && x.context_id == 2U && x.vmid == 1U;
             };
         }},
        {"levels", [](Registers& r) { r.victlr.exlevel_s = 0b1001, r.victlr.exlevel_ns = 0b100; },
         contexts([](const flow::Context& x) {
             if (x.nse) return x.ns ? *x.el == 2 : true;
             return x.ns ? *x.el == 2 : *x.el == 0 || *x.el == 3;
         })},
        {"realm_levels",
         [](Registers& r) { r.idr6.exlevel_rl = 7, r.victlr.exlevel_rl = 0b011, r.victlr.exlevel_ns = 0b001; },
         contexts([](const flow::Context& x) {
             if (x.nse) return x.ns && *x.el == 1;
             return x.ns && *x.el == 0;
         })},
        {"context_comparator",
         [](Registers& r) {
             r.cidcvr[0].value = 1;
             r.rsctlr[0].group = 6;
             r.rsctlr[0].select = 1;
             r.victlr.sel = 2;
         },
         contexts([](const flow::Context& x) { return x.context_id != 1U; })},
        {"pair",  // not (Context ID 1 and VMID 2)
         [](Registers& r) {
             r.cidcvr[0].value = 1;
             r.vmidcvr[0].value = 2;
             r.rsctlr[2].group = 6;
             r.rsctlr[2].select = 1;
             r.rsctlr[2].pairinv = true;
             r.rsctlr[3].group = 7;
             r.rsctlr[3].select = 1;
             r.victlr.type = true;
             r.victlr.sel = 2;
         },
         contexts([](const flow::Context& x) { return x.context_id == 1U && x.vmid == 2U; })},
        {"start_stop",
         [](Registers& r) {
             r.acvr[0].address = a;
             r.acvr[1].address = c;
             r.acvr[2].address = d;
             r.acvr[3].address = b;
             r.vissctlr.start = 0b0101;
             r.vissctlr.stop = 0b1010;
             r.victlr.ssstatus = false;
         },
         [] {
             return [on = false](const Starts& s, const flow::Context&) mutable {
                 bool traced = on;
                 for (const std::uint64_t at : s) {
                     if (at == a || at == d) traced = on = true;
                     if (at == c || at == b) on = false;
                 }
                 return traced;
             };
         }},
    };
}

class Etm4View : public testing::TestWithParam<Filter> {};

TEST_P(Etm4View, TracesWhatTheRulesSay) {
    const Filter& f = GetParam();
    std::uint64_t ranges = 0, untraced = 0;
    const std::uint64_t programs = test::programs(sized(20U, 4U));
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Config c = test::ete(seed % 4);
        c.q_elements = c.cycle_counting = c.timestamps = false;
        c.return_stack = seed % 2 == 0;
        c.branch_broadcast = seed % 3 == 0;
        ModelConfig config{.registers = tracing_registers(c)};
        config.registers.syncpr.period = 8;
        f.program(config.registers);
        Execution::Options options;
        options.contents.aarch32 = false;
        options.batched = seed % 5 == 0;
        options.view = f.view();
        Execution execution(config, seed, options);
        execution.run(600);
        const std::vector<synthetic::Element> elements =
            test::decode<ReferenceDecoder>(execution.bytes(), c, execution.memory);
        ASSERT_EQ(test::difference_from(elements, execution.truth, c, execution.bytes()), "");
        ASSERT_NO_FATAL_FAILURE(test::expect_agree(seed, programs, elements, execution.bytes(), c, execution.memory));
        for (const Execution::Ran& ran : execution.truth) ranges += ran.lines.front().starts_with("range") ? 1 : 0;
        untraced += execution.counts().untraced;
    }
    // An exception before all instructions is traced if TRCRSR.TA is 1, with any filter (2.12).
    EXPECT_EQ(ranges == 0, f.name == "event_false" || f.name == "stopped");
    EXPECT_GT(untraced, sized(500U, 100U));
}

// The filters again, another one in each session of a unit, programmed during execution.
TEST(Etm4Sessions, TraceWhatTheRulesOfEachSay) {
    const std::vector<Filter> all = filters();
    std::uint64_t traced = 0, untraced = 0;
    const std::uint64_t programs = test::programs(sized(60U, 8U));
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Config c = seed % 2 == 0 ? test::ete(3) : test::etmv4();
        c.q_elements = c.cycle_counting = c.timestamps = false;
        ModelConfig config{.registers = tracing_registers(c)};
        Registers& ids = config.registers;
        ids.syncpr.period = 8;
        ids.idr6.exlevel_rl = c.ete() ? 7 : 0;
        ids.idr3.exlevel_s = 0xf;
        const Registers first = ids;
        Execution::Options options;
        options.contents.aarch32 = false;
        options.batched = seed % 5 == 0;
        options.program = [&](Model& model, std::uint64_t cycle, wire::Random& random) {
            // Realms are of ETE.
            const Filter* f = &all[random() % all.size()];
            while (!c.ete() && f->name == "realm_levels") f = &all[random() % all.size()];
            Registers r = first;
            f->program(r);
            Registers::for_each(r, [&](const auto& one, unsigned offset) {
                const auto value = to_value(one);
                for (unsigned word = 0; word < sizeof value / 4; ++word) {
                    const WordAccess access = word_access(first, offset + 4 * word);
                    if (!access.present || !access.writable || access.always) continue;
                    EXPECT_EQ(model.write(offset + 4 * word,
                                          static_cast<std::uint32_t>(std::uint64_t{value} >> 32 * word), cycle),
                              AccessResult::done);
                }
            });
            return f->view();
        };
        Execution execution(config, seed, options);
        execution.run(1200);
        const std::vector<synthetic::Element> elements =
            test::decode<ReferenceDecoder>(execution.bytes(), c, execution.memory);
        ASSERT_EQ(test::difference_from(elements, execution.truth, c, execution.bytes()), "");
        ASSERT_NO_FATAL_FAILURE(test::expect_agree(seed, programs, elements, execution.bytes(), c, execution.memory));
        traced += execution.counts().p0;
        untraced += execution.counts().untraced;
    }
    EXPECT_GT(traced, sized(1000U, 100U));
    EXPECT_GT(untraced, sized(1000U, 100U));
}

INSTANTIATE_TEST_SUITE_P(Filters, Etm4View, testing::ValuesIn(filters()),
                         [](const auto& which) { return which.param.name; });

class Etm4Model : public testing::TestWithParam<Class> {};

TEST_P(Etm4Model, GivesWhatRan) {
    const Class& c = GetParam();
    const Config config = packets_of(c.config.registers, c.config.profile);
    ModelCounts sum;
    const std::uint64_t programs = test::programs(sized(12U, 2U));
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        ModelConfig with_seed = c.config;
        with_seed.choices.seed = seed;
        Execution execution(with_seed, seed, c.options);
        execution.run(400);
        const std::vector<synthetic::Element> elements =
            test::decode<ReferenceDecoder>(execution.bytes(), config, execution.memory);
        ASSERT_EQ(test::difference_from(elements, execution.truth, config, execution.bytes()), "");
        ASSERT_NO_FATAL_FAILURE(
            test::expect_agree(seed, programs, elements, execution.bytes(), config, execution.memory));
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
    EXPECT_GT(sum.p0 + sum.overflowed, sized(500U, 300U));
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
