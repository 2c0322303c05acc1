// ETMv4 and ETE units behind the interface that all protocols' units share.
#include "waymark/etm4/unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "etm4/support.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/protocol.h"

namespace waymark::etm4 {
namespace {

const flow::UnitFactory& ete() { return *unit_factories()[0]; }

/// The message of a refusal; empty: accepted.
template <class F>
std::string refusal(const flow::UnitFactory& units, F&& change) {
    flow::UnitOptions options = units.defaults();
    change(options);
    const Status status = units.check(options);
    return status ? std::string() : status.error().message;
}

flow::RegisterSetting setting(std::string name, std::uint64_t value, std::string field = {}) {
    return {std::move(name), std::move(field), value, "unit.txt:1"};
}

TEST(Etm4Units, LimitsOfOptions) {
    for (const flow::UnitFactory* const units : unit_factories()) {
        const auto fine = [&](auto&& change) { return refusal(*units, change).empty(); };
        EXPECT_TRUE(fine([](auto&) {}));
        EXPECT_FALSE(fine([](auto& o) { o.core = "cortex-a15"; }));
        for (const unsigned bytes : {0U, 4U}) EXPECT_TRUE(fine([=](auto& o) { o.context_id_bytes = bytes; }));
        for (const unsigned bytes : {1U, 2U, 3U, 5U}) EXPECT_FALSE(fine([=](auto& o) { o.context_id_bytes = bytes; }));
        for (const unsigned bytes : {0U, 256U, 1024U, 1048576U})
            EXPECT_TRUE(fine([=](auto& o) { o.sync_bytes = bytes; }));
        for (const unsigned bytes : {1U, 128U, 255U, 257U, 1000U, 2097152U})
            EXPECT_FALSE(fine([=](auto& o) { o.sync_bytes = bytes; }));
        for (const unsigned bytes : {0U, 64U}) EXPECT_TRUE(fine([=](auto& o) { o.fifo_bytes = bytes; }));
        for (const unsigned bytes : {1U, 63U}) EXPECT_FALSE(fine([=](auto& o) { o.fifo_bytes = bytes; }));
        EXPECT_FALSE(fine([](auto& o) { o.drain_cycles = 0; }));
        for (const unsigned depth : {0U, 2U, 256U}) EXPECT_TRUE(fine([=](auto& o) { o.speculation_depth = depth; }));
        for (const unsigned depth : {1U, 257U}) EXPECT_FALSE(fine([=](auto& o) { o.speculation_depth = depth; }));
        for (const unsigned cycles : {4U, 0xfffU})
            EXPECT_TRUE(fine([=](auto& o) { o.cycle_threshold = cycles, o.cycle_accurate = true; }));
        for (const unsigned cycles : {3U, 0x1000U})
            EXPECT_FALSE(fine([=](auto& o) { o.cycle_threshold = cycles, o.cycle_accurate = true; }));
        EXPECT_FALSE(fine([](auto& o) { o.cycle_threshold = 4; }));
    }
}

// Registers in a capture's form give the configuration that the options ask for.
TEST(Etm4Units, AreDescribedAsCapturesDescribeThem) {
    for (const flow::UnitFactory* const units : unit_factories()) {
        const bool is_ete = units == &ete();
        EXPECT_EQ(units->name(), is_ete ? "ETE" : "ETMV4");
        EXPECT_TRUE(units->traces_aarch64());
        EXPECT_FALSE(units->undefined_executes());
        flow::UnitOptions options = units->defaults();
        EXPECT_EQ(units->core_type(options), is_ete ? "ARMv9-A" : "Cortex-A53");
        EXPECT_EQ(units->source_type(options), is_ete ? "ETE" : "ETM4");
        EXPECT_EQ(units->decode_options(options).transaction_start_waypoints, is_ete);
        for (unsigned bits = 0; bits < 64; ++bits) {
            options.cycle_accurate = (bits & 1U) != 0;
            options.timestamps = (bits & 2U) != 0;
            options.return_stack = (bits & 4U) != 0;
            options.branch_broadcast = (bits & 8U) != 0;
            options.context_id_bytes = (bits & 16U) != 0 ? 4 : 0;
            options.speculation_depth = (bits & 32U) != 0 ? 7 : 0;
            options.sync_bytes = 512;
            RegisterValues values;
            std::uint32_t period = 0;
            bool threshold = false;
            for (const RegisterValue& r : units->registers(options, 0x21)) {
                const auto value = static_cast<std::uint32_t>(r.value);
                if (r.name == "TRCCONFIGR") values.configr = value;
                if (r.name == "TRCTRACEIDR") values.traceidr = value;
                if (r.name == "TRCIDR0") values.idr0 = value;
                if (r.name == "TRCIDR1") values.idr1 = value;
                if (r.name == "TRCIDR2") values.idr2 = value;
                if (r.name == "TRCIDR8") values.idr8 = value;
                if (r.name == "TRCDEVARCH") values.devarch = value;
                if (r.name == "TRCSYNCPR") period = value;
                threshold |= r.name == "TRCCCCTLR";
            }
            EXPECT_EQ(values.devarch.has_value(), is_ete);
            const ReadConfig read = read_config(values, CoreProfile::a);
            EXPECT_TRUE(read.notes.empty());
            const Config& c = read.config;
            EXPECT_EQ(c.ete(), is_ete);
            EXPECT_EQ(c.trace_id, 0x21);
            EXPECT_EQ(c.cycle_counting, options.cycle_accurate);
            EXPECT_EQ(c.timestamps, options.timestamps);
            EXPECT_EQ(c.return_stack, options.return_stack);
            EXPECT_EQ(c.branch_broadcast, options.branch_broadcast);
            EXPECT_EQ(c.context_id_trace, options.context_id_bytes != 0);
            EXPECT_EQ(c.max_speculation, options.speculation_depth);
            EXPECT_EQ(c.commit_mode_1, options.speculation_depth == 0);
            EXPECT_EQ(c.vmid_bytes, is_ete ? 4 : 1);
            EXPECT_EQ(period, 9U);
            EXPECT_EQ(threshold, options.cycle_accurate);
        }
    }
}

/// Names of packets that a unit sends for a loop at 0x1000 and an interrupt.
std::string packets(const flow::UnitFactory& units, const flow::UnitOptions& options, unsigned branches = 5,
                    std::vector<std::uint8_t>* bytes = nullptr) {
    ByteCollector trace;
    const std::unique_ptr<flow::Unit> unit = units.make(options, trace);
    unit->context({.ns = true, .aarch64 = true, .el = 0});
    unit->start({{0x1000}, isa::Isa::a64}, 1);
    isa::Instruction i;
    i.bytes = 4;
    i.waypoint = isa::Waypoint::direct;
    i.conditional = true;
    i.target = {0x1000};
    std::uint64_t cycle = 1;
    std::vector<flow::RetiredBlock> blocks;
    for (unsigned n = 0; n < branches; ++n)
        blocks.push_back({&i, ++cycle, {0x1008}, {0x1000}, isa::Isa::a64, isa::Isa::a64, 4, true});
    for (std::size_t at = 0; at < blocks.size();)
        at += unit->waypoints({{0x1000}, isa::Isa::a64}, std::span<const flow::RetiredBlock>(blocks).subspan(at));
    unit->waypoint({8, 4}, {{0x1008}, isa::Isa::a64, i, true, {{0x1000}, isa::Isa::a64}}, ++cycle);
    unit->exception({4, 4}, flow::ExceptionClass::irq, std::nullopt, ++cycle);
    unit->resume({{0x2000}, isa::Isa::a64}, ++cycle);
    unit->waypoint({0, 0}, {{0x2000}, isa::Isa::a64, i, true, {{0x1000}, isa::Isa::a64}}, ++cycle);
    unit->wait(++cycle);
    unit->finish();
    EXPECT_FALSE(unit->overflowing() && !unit->may_lose());
    RegisterValues values;
    for (const RegisterValue& r : units.registers(options, 1)) {
        const auto value = static_cast<std::uint32_t>(r.value);
        if (r.name == "TRCCONFIGR") values.configr = value;
        if (r.name == "TRCIDR0") values.idr0 = value;
        if (r.name == "TRCIDR1") values.idr1 = value;
        if (r.name == "TRCIDR2") values.idr2 = value;
        if (r.name == "TRCIDR8") values.idr8 = value;
        if (r.name == "TRCDEVARCH") values.devarch = value;
    }
    if (bytes != nullptr) *bytes = trace.bytes();
    std::string out;
    for (const test::Collected::Item& item :
         test::collect(trace.bytes(), read_config(values, CoreProfile::a).config).items)
        out += (out.empty() ? "" : " ") + item.text.substr(0, item.text.find(' '));
    return out;
}

std::size_t count(const std::string& text, std::string_view what) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
    return found;
}

TEST(Etm4Units, OptionsReachTheModel) {
    for (const flow::UnitFactory* const units : unit_factories()) {
        flow::UnitOptions options = units->defaults();
        const std::string plain = packets(*units, options);
        EXPECT_EQ(count(plain, "TRACE-ON"), 2U) << plain;
        EXPECT_EQ(count(plain, "EXCEPTION"), 1U) << plain;
        EXPECT_EQ(count(plain, "CYCLE"), 0U);
        EXPECT_EQ(count(plain, "TIMESTAMP"), 0U);
        options.cycle_accurate = options.timestamps = true;
        const std::string counted = packets(*units, options);
        EXPECT_GT(count(counted, "CYCLE"), 1U) << counted;
        EXPECT_GT(count(counted, "TIMESTAMP"), 0U) << counted;
        options = units->defaults();
        options.branch_broadcast = true;
        EXPECT_GT(count(packets(*units, options), "ADDRESS"), count(plain, "ADDRESS") + 4);
        options = units->defaults();
        options.sync_bytes = 256;
        EXPECT_GT(count(packets(*units, options, 30000), "A-SYNC"), 3U);
        options.sync_bytes = 0;
        EXPECT_EQ(count(packets(*units, options, 30000), "A-SYNC"), 1U);
        options = units->defaults();
        options.speculation_depth = 8;
        std::vector<std::uint8_t> one, same, other;
        const std::string wrong = packets(*units, options, 500, &one);
        EXPECT_GT(count(wrong, "COMMIT"), 10U);
        EXPECT_GT(count(wrong, "CANCEL") + count(wrong, "MISPREDICT"), 5U);
        packets(*units, options, 500, &same);
        options.seed = 2;
        packets(*units, options, 500, &other);
        EXPECT_EQ(one, same);
        EXPECT_NE(one, other);
    }
}

TEST(Etm4Units, AFullFifoLoses) {
    for (const flow::UnitFactory* const units : unit_factories()) {
        flow::UnitOptions options = units->defaults();
        ByteCollector trace;
        EXPECT_FALSE(units->make(options, trace)->may_lose());
        options.fifo_bytes = 64;
        options.drain_cycles = 1000;
        options.branch_broadcast = true;
        EXPECT_TRUE(units->make(options, trace)->may_lose());
        EXPECT_GT(count(packets(*units, options, 300), "OVERFLOW"), 0U);
    }
}

// A capture describes the unit completely: explain() misses no register.
TEST(Etm4Units, AreDescribedWithEveryRegisterThatDecides) {
    std::vector<flow::UnitOptions> programs;
    for (unsigned bits = 0; bits < 32; ++bits) {
        flow::UnitOptions o;
        o.cycle_accurate = (bits & 1U) != 0;
        o.timestamps = (bits & 2U) != 0;
        o.branch_broadcast = (bits & 4U) != 0;
        o.context_id_bytes = (bits & 8U) != 0 ? 4 : 0;
        if ((bits & 16U) != 0) o.view = {{{0x1000}, {0x1100}}}, o.exclude = {{{0x1040}, {0x1080}}};
        programs.push_back(o);
    }
    flow::UnitOptions events;
    events.trigger_at = Address{0x1044};
    events.registers = {setting("TRCVICTLR", 2, "EVENT.SEL"), setting("TRCRSCTLR2", 0x20001)};  // counter 0 is zero
    programs.push_back(events);
    flow::UnitOptions starts;
    starts.registers = {setting("TRCVICTLR", 0, "SSSTATUS"), setting("TRCVISSCTLR", 1), setting("TRCACVR0", 0x1000)};
    programs.push_back(starts);
    for (const flow::UnitFactory* const units : unit_factories())
        for (flow::UnitOptions o : programs) {
            o.core = units->defaults().core;
            ASSERT_TRUE(units->check(o)) << units->check(o).error().message;
            const auto explanation = row().explain(units->registers(o, 0x10), units->core_type(o));
            ASSERT_TRUE(explanation);
            EXPECT_TRUE(explanation->traces());
            EXPECT_EQ(explanation->undecided, std::vector<std::string>{});
            EXPECT_EQ(explanation->undescribed, std::vector<std::string>{});
        }
}

// Ranges take comparators from the first one that is free on; the rule for blocks is that of the registers.
TEST(Etm4Units, RangesBecomeComparators) {
    flow::UnitOptions options = ete().defaults();
    options.registers = {setting("TRCACVR2", 0x7000), setting("TRCACVR3", 0x7fff), setting("TRCVIIECTLR", 2)};
    options.view = {{{0x1000}, {0x1100}}};
    options.exclude = {{{0x1040}, {0x1080}}};
    options.trigger_at = Address{0x1044};
    ASSERT_TRUE(ete().check(options)) << ete().check(options).error().message;
    const std::vector<RegisterValue> registers = ete().registers(options, 1);
    const auto value = [&](std::string_view name) {
        const RegisterValue* const r = find_register(registers, name);
        return r == nullptr ? ~std::uint64_t{0} : r->value;
    };
    EXPECT_EQ(value("TRCACVR0"), 0x1000U);
    EXPECT_EQ(value("TRCACVR1"), 0x10ffU);
    EXPECT_EQ(value("TRCACVR2"), 0x7000U);
    EXPECT_EQ(value("TRCACVR4"), 0x1040U);
    EXPECT_EQ(value("TRCACVR5"), 0x107fU);
    EXPECT_EQ(value("TRCACVR6"), 0x1044U);
    EXPECT_EQ(value("TRCVIIECTLR"), 0x40003U);
    EXPECT_EQ(value("TRCRSCTLR2"), 0x40040U);  // single address comparator 6
    EXPECT_EQ(value("TRCEVENTCTL0R"), 2U);
    EXPECT_EQ(value("TRCEVENTCTL1R"), 1U);
    const auto selects = ete().selects(options);
    ASSERT_TRUE(selects);
    EXPECT_EQ(selects->include.size(), 2U);
    EXPECT_EQ(selects->exclude, (std::vector<flow::AddressRange>{{{0x1040}, {0x1080}}}));
    EXPECT_TRUE(selects->selects({0xff0}, {0x1000}, 4));
    EXPECT_FALSE(selects->selects({0xff0}, {0xffc}, 4));
    EXPECT_TRUE(selects->selects({0x103c}, {0x1044}, 4));
    EXPECT_FALSE(selects->selects({0x1040}, {0x107c}, 4));
    EXPECT_TRUE(selects->selects({0x1040}, {0x1080}, 4));
    options.view.push_back({{0x2000}, {0x2004}});
    EXPECT_NE(refusal(ete(), [&](auto& o) { o = options; })
                  .find("need 4 pairs of address comparators; this unit has 4, less"),
              std::string::npos);
}

}  // namespace
}  // namespace waymark::etm4
