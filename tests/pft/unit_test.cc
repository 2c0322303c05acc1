// A macrocell behind the interface that all protocols' units share.
#include "waymark/pft/unit.h"

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/random.h"
#include "waymark/pft/config.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/protocol.h"
#include "waymark/pft/registers.h"
#include "waymark/pft/state.h"

namespace waymark::pft {
namespace {

using flow::ExceptionClass;

TEST(PtmUnits, WhatAMacrocellDoesNotHave) {
    const flow::UnitFactory& units = unit_factory();
    const auto check = [&](auto&& change) {
        flow::UnitOptions options = units.defaults();
        change(options);
        return units.check(options).has_value();
    };
    EXPECT_TRUE(check([](auto&) {}));
    EXPECT_TRUE(check([](auto& o) { o.core = "cortex-a9"; }));
    EXPECT_FALSE(check([](auto& o) { o.core = "cortex-a7"; }));
    EXPECT_FALSE(check([](auto& o) { o.core.clear(); }));
    EXPECT_FALSE(check([](auto& o) { o.return_stack = o.branch_broadcast = true; }));
    EXPECT_FALSE(check([](auto& o) { o.context_id_bytes = 3; }));
    EXPECT_FALSE(check([](auto& o) { o.sync_bytes = 5000; }));
    EXPECT_FALSE(check([](auto& o) { o.context_id_bytes = 5; }));
    for (const std::uint8_t bytes : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
        EXPECT_TRUE(check([=](auto& o) { o.context_id_bytes = bytes; }));
    EXPECT_TRUE(check([](auto& o) { o.sync_bytes = 4095; }));  // ETMSYNCFR has 12 bits
    EXPECT_FALSE(check([](auto& o) { o.sync_bytes = 4096; }));
    EXPECT_TRUE(check([](auto& o) { o.fifo_bytes = 0; }));
    EXPECT_TRUE(check([](auto& o) { o.fifo_bytes = 32; }));
    EXPECT_FALSE(check([](auto& o) { o.fifo_bytes = 31; }));
    EXPECT_FALSE(check([](auto& o) { o.drain_cycles = 0; }));
}

TEST(PtmUnits, AreDescribedAsCapturesDescribeThem) {
    const flow::UnitFactory& units = unit_factory();
    ASSERT_EQ(row().units().size(), 1U);
    EXPECT_EQ(row().units().front(), &units);
    EXPECT_EQ(row().words().unit, units.name());
    flow::UnitOptions options = units.defaults();
    EXPECT_EQ(units.name(), "PTM");
    EXPECT_EQ(units.core_type(options), "Cortex-A15");
    EXPECT_EQ(units.source_type(options), "PTM1.1");
    options.core = "cortex-a9";
    options.cycle_accurate = options.timestamps = true;
    options.context_id_bytes = 4;
    EXPECT_EQ(units.core_type(options), "Cortex-A9");
    EXPECT_EQ(units.source_type(options), "PTM1.0");
    const std::vector<RegisterValue> registers = units.registers(options, 0x15);
    const auto value = [&](std::string_view name) {
        const RegisterValue* r = find_register(registers, name);
        EXPECT_NE(r, nullptr) << name;
        return r == nullptr ? 0U : static_cast<std::uint32_t>(r->value);
    };
    EXPECT_EQ(value("ETMTRACEIDR"), 0x15U);
    // A decoder makes its configuration from these registers.
    const Config config = Config::from_registers(
        from_value<Etmcr>(value("ETMCR")), from_value<Etmccer>(value("ETMCCER")), from_value<Etmidr>(value("ETMIDR")));
    EXPECT_TRUE(config.cycle_accurate);
    EXPECT_EQ(config.context_id_bytes, 4U);
    EXPECT_EQ(config.minor_version, 0U);
}

// A capture describes the macrocell completely: explain() misses no register.
TEST(PtmUnits, AreDescribedWithEveryRegisterThatDecides) {
    const auto setting = [](std::string name, std::uint64_t value) {
        return flow::RegisterSetting{std::move(name), {}, value, "unit.txt:1"};
    };
    const flow::UnitFactory& units = unit_factory();
    std::vector<flow::UnitOptions> programs(5, units.defaults());
    programs[1].core = "cortex-a9";
    programs[1].cycle_accurate = programs[1].timestamps = true;
    programs[2].view = {{{0x1000}, {0x1100}}};
    programs[2].trigger_at = Address{0x1044};
    programs[3].registers = {setting("ETMTEEVR", 0x50)};  // sequencer state 1
    programs[4].registers = {setting("ETMTECR1", 0x3000000), setting("ETMTSSCR", 1), setting("ETMACVR1", 0x1000)};
    for (const flow::UnitOptions& o : programs) {
        ASSERT_TRUE(units.check(o)) << units.check(o).error().message;
        const auto explanation = row().explain(units.registers(o, 0x10), units.core_type(o));
        ASSERT_TRUE(explanation);
        EXPECT_TRUE(explanation->traces());
        EXPECT_EQ(explanation->undecided, std::vector<std::string>{});
        EXPECT_EQ(explanation->undescribed, std::vector<std::string>{});
    }
}

struct Seen {
    std::vector<std::uint32_t> exceptions, context_ids;
    std::vector<bool> ns;
    void operator()(const BranchAddress& p, Extent) {
        if (p.exception() != 0) {
            exceptions.push_back(p.exception());
            ns.push_back(p.ns);
        }
    }
    void operator()(const ISync& p, Extent) { context_ids.push_back(p.context_id); }
    void operator()(const auto&, Extent) {}
    void operator()(const Gap& gap) { ADD_FAILURE() << name(gap.reason); }
};

isa::Instruction indirect_branch() {
    isa::Instruction i;
    i.waypoint = isa::Waypoint::indirect;
    i.bytes = 4;
    return i;
}

TEST(PtmUnits, SendTheNumberOfEachClassOfExceptions) {
    const isa::Instruction branch = indirect_branch();
    for (const bool recorded : {true, false}) {  // the handler
        ByteCollector trace;
        flow::UnitOptions options = unit_factory().defaults();
        options.context_id_bytes = 4;
        const auto unit = unit_factory().make(options, trace);
        unit->context({.ns = true, .hyp = false, .context_id = 7});
        unit->start({{0x8000}, Isa::a32}, 0);
        std::vector<std::uint32_t> expected;
        Place at{{0x8000}, Isa::a32};
        for (unsigned kind = 0; kind < flow::exception_classes; ++kind) {
            const auto what = static_cast<ExceptionClass>(kind);
            if (what == ExceptionClass::debug_halt) continue;  // it ends tracing; recordings do not contain it
            const Place next{{0x8000 + 0x100 * kind}, Isa::a32};
            unit->waypoint({4, 4}, {at.address + 4, at.isa, branch, true, next}, kind);
            if (recorded) {
                unit->exception({}, what, Place{{0x18}, Isa::a32}, kind);
                at = {{0x18}, Isa::a32};
            } else {
                unit->exception({}, what, std::nullopt, kind);
                unit->resume(next, kind);
                at = next;
            }
            expected.push_back(exception_number(what));
        }
        unit->finish();
        Seen seen;
        Config config;
        config.context_id_bytes = 4;
        config.minor_version = 1;
        config.return_stack = false;
        Parser<Seen> parser(config, seen);
        parser.feed(trace.bytes());
        parser.finish();
        EXPECT_EQ(seen.exceptions, expected);
        EXPECT_EQ(seen.ns, std::vector<bool>(expected.size(), true));
        ASSERT_FALSE(seen.context_ids.empty());
        for (const std::uint32_t id : seen.context_ids) EXPECT_EQ(id, 7U);
    }
}

TEST(PtmUnits, TakeManyWaypointsAsTheyTakeOne) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        synthetic::Random random(seed);
        flow::UnitOptions options = unit_factory().defaults();
        options.return_stack = random.below(2) == 0;
        options.cycle_accurate = random.below(4) == 0;
        options.sync_bytes = random.below(2) == 0 ? 100 : 1024;
        options.fifo_bytes = random.below(2) == 0 ? 0 : 64;
        options.drain_cycles = 1 + random.below(20);
        std::vector<isa::Instruction> branches(4, indirect_branch());
        branches[1].link = branches[2].function_return = true;
        branches[3].waypoint = isa::Waypoint::direct;
        std::array<ByteCollector, 2> traces;
        const auto one = unit_factory().make(options, traces[0]), many = unit_factory().make(options, traces[1]);
        Place at{{0x8000}, Isa::a32};
        for (flow::Unit* unit : {one.get(), many.get()}) {
            unit->context({.ns = true});
            unit->start(at, 0);
        }
        std::uint64_t cycle = 0;
        for (unsigned round = 0; round < 20; ++round) {
            std::vector<flow::RetiredBlock> blocks;
            const Place from = at;
            for (unsigned n = random.below(300); n != 0; --n) {
                const std::uint32_t before = 4 * random.below(20);
                flow::RetiredBlock b;
                b.instruction = &branches[random.below(4)];
                b.cycle = ++cycle;
                b.address = at.address + before;
                b.isa = at.isa;
                b.bytes_before = before == 0 ? 0 : 4;
                b.passed = random.below(4) != 0;
                b.next = b.passed ? Address{0x8000 + 4 * random.below(1000)} : b.address + 4;
                b.next_isa = b.passed && random.below(20) == 0 ? Isa::t32 : Isa::a32;
                if (!b.passed) b.next_isa = at.isa;
                blocks.push_back(b);
                at = {b.next, b.next_isa};
            }
            EXPECT_EQ(one->flow::Unit::waypoints(from, {}), 0U);
            Place here = from;
            for (std::span<const flow::RetiredBlock> rest = blocks; !rest.empty();) {
                const std::size_t taken = many->waypoints(here, rest);
                ASSERT_EQ(one->flow::Unit::waypoints(here, rest), taken);
                here = {rest[taken - 1].next, rest[taken - 1].next_isa};
                rest = rest.subspan(taken);
                ASSERT_EQ(one->lost(), many->lost());
            }
        }
        one->finish();
        many->finish();
        ASSERT_EQ(traces[0].bytes(), traces[1].bytes()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace waymark::pft
