// Programs for hardware, on the models: random options of every unit give the trace that they give when a recorder
// programs the unit, and each access that is left out is noticed.

#include "waymark/program/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "waymark/etm3/unit.h"
#include "waymark/etm4/unit.h"
#include "waymark/pft/unit.h"

namespace waymark::program {
namespace {

std::vector<const flow::UnitFactory*> factories() {
    return {&pft::unit_factory(), &etm3::unit_factory(), etm4::unit_factories()[1], etm4::unit_factories()[0]};
}

flow::UnitOptions with_trigger_on_bus(const flow::UnitFactory& units, flow::UnitOptions unit) {
    if (units.traces_aarch64()) unit.registers.push_back({"TRCEVENTCTL1R", "ATB", 1, {}});
    return unit;
}

/// Random options within the unit's abilities.
Wanted drawn(const flow::UnitFactory& units, std::mt19937_64& random) {
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    for (;;) {
        Wanted wanted{.units = &units, .unit = units.defaults()};
        flow::UnitOptions& unit = wanted.unit;
        unit.cycle_accurate = one_in(2);
        unit.timestamps = one_in(2);
        unit.return_stack = one_in(2);
        unit.branch_broadcast = one_in(3);
        unit.context_id_bytes = one_in(2) ? 4 : 0;
        unit.sync_bytes = one_in(3) ? 0 : 256U << random() % 4;
        if (unit.cycle_accurate && one_in(2)) unit.cycle_threshold = 4 + static_cast<unsigned>(random() % 200);
        for (auto* const ranges : {&unit.view, &unit.exclude})
            while (one_in(3) && ranges->size() < 2) {
                const std::uint64_t first = 0x10000 + 4 * (random() % 64);
                ranges->push_back({{first}, {first + 4 * (1 + random() % 32)}});
            }
        if (one_in(3)) unit.trigger_at = Address{0x10000 + 4 * (random() % 64)};
        if (one_in(2)) {
            constexpr sink::SinkKind kinds[] = {sink::SinkKind::etb11, sink::SinkKind::etb, sink::SinkKind::etf,
                                                sink::SinkKind::etr};
            wanted.sink.emplace();
            wanted.sink->buffer.kind = kinds[random() % 4];
            wanted.sink->buffer.memory_bytes = 1024U << random() % 8;
            if (wanted.sink->buffer.kind == sink::SinkKind::etr) {
                wanted.sink->buffer.base = 0x80000000;
                wanted.sink->scatter_list = wanted.sink->buffer.memory_bytes >= 4096 && one_in(2);
            }
            if (unit.trigger_at && one_in(2)) wanted.sink->after_trigger = 4 * (1 + random() % 100);
        } else if (one_in(2)) {
            wanted.port_pins = 1 + static_cast<unsigned>(random() % 32);
        }
        if (unit.trigger_at && (wanted.sink || wanted.port_pins != 0) && one_in(2))
            wanted.cross_trigger = {.input = static_cast<unsigned>(random() % 8),
                                    .output = static_cast<unsigned>(random() % 8),
                                    .unit_base = {},
                                    .sink_base = {},
                                    .reported = with_trigger_on_bus(units, unit)};
        if (one_in(3)) wanted.replicator_output = static_cast<unsigned>(random() % 2);
        if (one_in(3)) wanted.funnel_port = static_cast<unsigned>(random() % 8);
        if (units.check(unit)) return wanted;
    }
}

TEST(Plan, GivesTheTraceOfARecording) {
    constexpr std::uint64_t seed = 20261;
    constexpr unsigned option_sets = 30;
    std::mt19937_64 random(seed);
    std::uint64_t stored = 0, triggers = 0;
    std::map<std::string, unsigned> components;
    for (const flow::UnitFactory* const units : factories())
        for (unsigned n = 0; n < option_sets; ++n) {
            SCOPED_TRACE(std::string(units->name()) + ", option set " + std::to_string(n));
            const auto plan = make_plan(drawn(*units, random));
            ASSERT_TRUE(plan) << plan.error().message;
            const auto proof = prove(*plan, n);
            ASSERT_TRUE(proof) << proof.error().message;
            EXPECT_FALSE(proof->differs_at)
                << *proof->differs_at << " of " << proof->wanted_bytes << ", given " << proof->given_bytes;
            EXPECT_TRUE(proof->stored_same);
            EXPECT_EQ(proof->wanted_bytes, proof->given_bytes);
            EXPECT_TRUE(proof->triggered_same);
            stored += proof->stored_bytes;
            if (plan->wanted.cross_trigger) triggers += proof->triggers;
            for (const Component& c : plan->components) ++components[c.variable];
        }
    EXPECT_GT(stored, 10000U);
    EXPECT_GT(triggers, 100U);
    for (const char* const component : {"sink", "replicator", "funnel", "unit_cti", "sink_cti"})
        EXPECT_GT(components[component], 10U) << component;
}

TEST(Plan, NoticesEachAccessOnTheWayOfTheTrigger) {
    const flow::UnitFactory& ptm = pft::unit_factory();
    for (const bool port : {false, true}) {
        Wanted wanted{.units = &ptm, .unit = ptm.defaults()};
        wanted.unit.trigger_at = Address{0x10080};
        if (port) {
            wanted.port_pins = 4;
        } else {
            wanted.sink.emplace();
            wanted.sink->after_trigger = 256;
        }
        wanted.cross_trigger = {.unit_base = {}, .sink_base = {}, .reported = wanted.unit};
        const auto plan = make_plan(wanted);
        ASSERT_TRUE(plan) << plan.error().message;
        const auto whole = prove(*plan);
        ASSERT_TRUE(whole) << whole.error().message;
        EXPECT_TRUE(whole->same());
        EXPECT_NE(whole->triggers, 0U);
        for (std::size_t c = 0; c < plan->components.size(); ++c) {
            if (!plan->components[c].variable.ends_with("cti")) continue;
            for (std::size_t n = 0; n < plan->components[c].program.enable.size(); ++n) {
                Plan without = *plan;
                auto& enable = without.components[c].program.enable;
                // The interfaces of the models are off at first.
                if (enable[n].name == "CTICONTROL" && enable[n].value == 0) continue;
                // The sink's interface passes the channel on to its own outputs, whatever its gate.
                if (enable[n].name == "CTIGATE" && without.components[c].variable == "sink_cti") continue;
                SCOPED_TRACE(without.components[c].variable + " " + enable[n].name);
                enable.erase(enable.begin() + static_cast<std::ptrdiff_t>(n));
                const auto proof = prove(without);
                EXPECT_TRUE(!proof || !proof->same());
            }
        }
    }
}

TEST(Plan, NoticesEachAccessThatDecides) {
    // Everything that the options can use is used, so every write has an effect.
    for (const flow::UnitFactory* const units : factories()) {
        Wanted wanted{.units = units, .unit = units->defaults()};
        wanted.unit.cycle_accurate = wanted.unit.timestamps = true;
        wanted.unit.view = {{{0x10040}, {0x10100}}};
        wanted.unit.trigger_at = Address{0x10080};
        const auto plan = make_plan(wanted);
        ASSERT_TRUE(plan) << plan.error().message;
        // Effects that the trial run cannot show: the Programming bit of a macrocell that never ran, locks that are
        // already open, the trace ID, which frames carry, registers that act on other hardware, the upper access type
        // of a range, and events whose random resources never become true.
        const std::set<std::string> unseen{"TRCTRACEIDR", "ETMTRACEIDR", "TRCAUXCTLR", "TRCSTALLCTLR",    "TRCBBCTLR",
                                           "ETMFFLR",     "TRCQCTLR",    "TRCITEEDCR", "TRCPROCSELR",     "ETMAUXCR",
                                           "ETMTESSEICR", "TRCITCTRL",   "TRCRSR",     "TRCACATR1[31:0]", "ETMTSSCR",
                                           "ETMTSEVR",    "ETMACTR2"};
        const std::vector<flow::RegisterStep>& steps = plan->components.back().program.enable;
        for (std::size_t left_out = 0; left_out < steps.size(); ++left_out) {
            const flow::RegisterStep& step = steps[left_out];
            if (step.kind != flow::RegisterStep::Kind::write || unseen.contains(step.name)) continue;
            // Of the two writes of ETMCR, the first sets the Programming bit.
            if (step.name == "ETMCR" && left_out + 1 != steps.size() && steps[left_out + 1].name == "ETMSR" &&
                steps[left_out + 1].value != 0)
                continue;
            SCOPED_TRACE(step.name + " of " + std::string(units->name()));
            Plan without = *plan;
            auto& enable = without.components.back().program.enable;
            enable.erase(enable.begin() + static_cast<std::ptrdiff_t>(left_out));
            bool noticed = false;
            constexpr unsigned tries = 8;
            for (unsigned seed = 0; seed < tries && !noticed; ++seed) {
                const auto proof = prove(without, seed);
                noticed = !proof || !proof->same();
            }
            EXPECT_TRUE(noticed);
        }
    }
}

TEST(Plan, SaysWhatCannotBeProgrammed) {
    const flow::UnitFactory& ete = *etm4::unit_factories()[0];
    const auto refused = [](const Wanted& wanted) {
        const auto plan = make_plan(wanted);
        return plan ? std::string("accepted") : plan.error().message;
    };
    Wanted wanted{.units = &ete, .unit = ete.defaults()};
    EXPECT_EQ(refused(wanted), "accepted");
    wanted.trace_id = 0x70;
    EXPECT_EQ(refused(wanted), "trace ID 0x70: sources have 0x01 to 0x6f");
    wanted.trace_id = 1;
    wanted.unit.fifo_bytes = 64;
    EXPECT_EQ(refused(wanted), "the size of the FIFO is a property of the unit and cannot be programmed");
    wanted.unit.fifo_bytes = 0;
    wanted.unit.speculation_depth = 8;
    EXPECT_EQ(refused(wanted), "how far the core speculates is a property of the core and cannot be programmed");
    wanted.unit.speculation_depth = 0;
    wanted.sink.emplace();
    wanted.sink->after_trigger = 1024;
    EXPECT_EQ(refused(wanted), "the buffer is to stop at a trigger, but nothing triggers: add --trigger-at SYMBOL");
    wanted.sink->after_trigger.reset();
    wanted.funnel_port = 8;
    EXPECT_EQ(refused(wanted), "input 8 of a funnel: there are 0 to 7");
}

}  // namespace
}  // namespace waymark::program
