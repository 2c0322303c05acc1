/// The unit as a model, compared with the specification by hand: docs/spec/spe.md, sections 1 and 3.9 to 3.14.
#include "waymark/spe/model.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "spe/unit_driver.h"
#include "support/corpus.h"

namespace waymark::spe {
namespace {

using test::branch;
using test::decode;
using test::hex;
using test::load;
using test::other;
using test::store;
using test::UnitUnderTest;
using Kind = Operation::Kind;

std::vector<std::uint8_t> copy(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

// ---- interval and population (1.2)

TEST(Interval, Mod19) {
    UnitUnderTest unit;
    EXPECT_EQ(unit.cold_start_members(800), (std::vector<std::uint64_t>{257, 514, 771}));
    EXPECT_EQ(unit.model().counts().pmu.sample_pop, 800U);
}

TEST(Interval, CounterResumesWhereItStood) {
    UnitUnderTest unit;
    unit.regs().pmsicr_el1.count_31_0 = 3;
    EXPECT_EQ(unit.cold_start_members(300), (std::vector<std::uint64_t>{3, 260}));
}

TEST(Interval, HoldsWhileProfilingIsDisabled) {
    UnitUnderTest unit;
    Model& model = unit.model();
    for (std::uint64_t i = 1; i <= 100; ++i) model.retire(other(i, i));
    model.set_exception_level(100, EL2);  // EL1 owns the buffer
    EXPECT_FALSE(model.enabled());
    EXPECT_EQ(model.until_next(), ~std::uint64_t{0});
    for (std::uint64_t i = 1; i <= 1000; ++i) model.retire(other(i, 100 + i));
    model.skip(5000);
    model.set_exception_level(1100, EL1);
    EXPECT_EQ(model.until_next(), 156U);  // members 101 to 256
    EXPECT_EQ(model.counts().pmu.sample_pop, 100U);
    EXPECT_EQ(model.counts().outside, 6000U);
}

TEST(Interval, OfZero) {
    UnitUnderTest unit;
    unit.regs().pmsirr_el1.interval = 0;
    EXPECT_TRUE(unit.cold_start_members(2000).empty());
    EXPECT_EQ(unit.model().until_next(), ~std::uint64_t{0});
    unit.model().skip(std::uint64_t{1} << 60);  // at once
    EXPECT_EQ(unit.model().counts().pmu.sample_pop, (std::uint64_t{1} << 60) + 2000);

    UnitUnderTest other_unit;
    other_unit.regs().pmsirr_el1.interval = 0;
    other_unit.config.choices.zero_interval = 2;
    EXPECT_EQ(other_unit.cold_start_members(1100), (std::vector<std::uint64_t>{513, 1026}));
    EXPECT_EQ(other_unit.model().registers().pmsirr_el1.interval, 0U);
}

TEST(Interval, EarlyMembersByTheSecondaryCounter) {
    // ECOUNT is nonzero on entry: it counts beside COUNT, and the member on which it becomes 0 is chosen.
    UnitUnderTest unit;
    unit.regs().pmsidr_el1.e_rnd = unit.regs().pmsirr_el1.rnd = true;
    unit.regs().pmsicr_el1.count_31_0 = 100;
    unit.regs().pmsicr_el1.ecount = 5;
    EXPECT_EQ(unit.model().until_next(), 4U);
    EXPECT_EQ(unit.cold_start_members(20), (std::vector<std::uint64_t>{5}));
    EXPECT_EQ(unit.model().registers().pmsicr_el1.count_31_0, 80U);
}

/// Pearson's statistic against equal shares.
double chi_square(const std::array<std::uint64_t, 256>& counts) {
    std::uint64_t total = 0;
    for (const std::uint64_t n : counts) total += n;
    const double expected = static_cast<double>(total) / 256;
    double sum = 0;
    for (const std::uint64_t n : counts) {
        const double off = static_cast<double>(n) - expected;
        sum += off * off / expected;
    }
    return sum;
}
// With 255 degrees of freedom the statistic lies in this interval, except in one case in ten million.
constexpr double least_chi = 150, most_chi = 390;

/// The members that a unit with this jitter chooses.
std::vector<std::uint64_t> chosen_members(bool e_rnd, std::uint32_t interval, std::uint64_t seed, unsigned samples) {
    UnitUnderTest unit;
    unit.regs().pmsidr_el1.e_rnd = e_rnd;
    unit.regs().pmsirr_el1.rnd = true;
    unit.regs().pmsirr_el1.interval = interval;
    unit.regs().pmsidr_el1.fn_e = unit.config.state.arch.fn_e = true;
    unit.config.state.arch.version = Version::v1_2;
    unit.regs().pmblimitr_el1.fm = 0b10;  // nothing fills
    unit.config.choices.seed = seed;
    while (unit.witness.samples.size() < samples) unit.sample(other(1, 0));
    return unit.witness.members(Fate::discarded);
}

TEST(Interval, JitterBeforeTheInterval) {
    // Without ERnd: COUNT is reloaded with 256 * INTERVAL + 0 to 255, and the reload takes one member.
    for (const std::uint32_t interval : {1U, 7U}) {
        std::array<std::uint64_t, 256> seen{};
        std::uint64_t before = 0, sum = 0;
        const auto members = chosen_members(false, interval, interval, 20000);
        for (const std::uint64_t member : members) {
            const std::uint64_t distance = member - before;
            before = member;
            ASSERT_GE(distance, 256 * interval + 1);
            ASSERT_LE(distance, 256 * interval + 256);
            ++seen[distance - 256 * interval - 1];
            sum += distance;
        }
        EXPECT_GT(chi_square(seen), least_chi);
        EXPECT_LT(chi_square(seen), most_chi);
        // 256 * INTERVAL + 128.5 on average; the mean of 20 000 has a standard deviation of 0.52.
        EXPECT_NEAR(static_cast<double>(sum) / static_cast<double>(members.size()), 256 * interval + 128.5, 3);
    }
}

TEST(Interval, JitterBehindTheInterval) {
    // With ERnd: the k-th chosen member is 0 to 255 members after member k * (256 * INTERVAL + 1).
    for (const std::uint32_t interval : {1U, 7U}) {
        std::array<std::uint64_t, 256> seen{};
        std::uint64_t k = 0;
        for (const std::uint64_t member : chosen_members(true, interval, 3 + interval, 20000)) {
            const std::uint64_t base = ++k * (256 * interval + 1);
            ASSERT_GE(member, base);
            ASSERT_LE(member, base + 255);
            ++seen[member - base];
        }
        EXPECT_GT(chi_square(seen), least_chi);
        EXPECT_LT(chi_square(seen), most_chi);
    }
}

TEST(Interval, SeedDecides) {
    EXPECT_EQ(chosen_members(false, 1, 5, 100), chosen_members(false, 1, 5, 100));
    EXPECT_NE(chosen_members(false, 1, 5, 100), chosen_members(false, 1, 6, 100));
}

TEST(Population, MicroOperations) {
    // An instruction of three micro-operations counts once, or three times.
    for (const bool arch_inst : {true, false}) {
        UnitUnderTest unit;
        unit.regs().pmsidr_el1.arch_inst = arch_inst;
        for (std::uint64_t i = 1; i <= 300; ++i)
            for (unsigned part = 0; part < 3; ++part) {
                Executed op = other(4 * i, i);
                op.continues = part != 0;
                unit.model().retire(op);
            }
        unit.model().psb_csync();
        EXPECT_EQ(unit.model().counts().pmu.sample_pop, arch_inst ? 300U : 900U);
        EXPECT_EQ(unit.model().counts().outside, arch_inst ? 600U : 0U);
        ASSERT_EQ(unit.witness.samples.size(), arch_inst ? 1U : 3U);
        EXPECT_EQ(unit.witness.samples[0].operation.pc.value, arch_inst ? 4 * 257U : 4 * 86U);
    }
}

TEST(Population, Speculation) {
    for (const bool speculation : {true, false}) {
        UnitUnderTest unit;
        unit.config.choices.speculation = speculation;
        for (std::uint64_t i = 1; i <= 514; ++i) {
            Executed op = other(i, i);
            op.retired = i % 2 == 0;
            unit.model().retire(op);
        }
        unit.model().psb_csync();
        const auto records = unit.witness.written();
        ASSERT_EQ(records.size(), speculation ? 2U : 1U);
        EXPECT_EQ(records[0].events, speculation ? 0U : event::retired);  // the 257th of all members, the 514th
        EXPECT_EQ(records.back().events, event::retired);
    }
}

// ---- records (1.4, 1.6, 3.11, 4)

TEST(Records, HandWorked) {
    UnitUnderTest unit;
    unit.regs().pmscr_el1.cx = unit.regs().pmscr_el1.ts = unit.regs().pmscr_el1.pa = true;
    unit.regs().pmscr_el2.pa = true;
    unit.config.choices.counter_first = 0x100;
    unit.model().set_context(0x5f80, 0xe);
    unit.model().set_counter_offsets(0x40, 0x80);

    Executed a = load(0xffff'ffc0'1234'5678, 0, 0xffff'fffc'2007'c226, 11);
    a.issue_latency = 7;
    a.translation_latency = 1;
    a.events = event::l1d_access | event::tlb_access;
    a.data_source = 0xe;
    a.access->physical = Address{0x80b'd88a'09e8};
    unit.set_cycle(0x20);
    unit.sample(a);
    // Context, counters, addresses, source, type, events, virtual time 0x100 + 0x20 - 0x40.
    EXPECT_EQ(copy(unit.bytes()), hex("64 80 5f 00 00"
                                      "98 0b 00  99 07 00  9a 01 00"
                                      "b0 78 56 34 12 c0 ff ff a0"
                                      "b2 26 c2 07 20 fc ff ff 00"
                                      "b3 e8 09 8a d8 0b 08 00 80"
                                      "43 0e  49 00  52 16 00"
                                      "71 e0 00 00 00 00 00 00 00"));
}

TEST(Records, EndWithoutTimestampAndPadding) {
    const auto record = [](std::uint8_t align, bool first) {
        UnitUnderTest unit;
        unit.regs().pmbidr_el1.align = align;
        unit.config.choices.padding_first = first;
        unit.sample(other(0x1234, 0, 3));
        return copy(unit.bytes());
    };
    const std::string body = "98 03 00 99 00 00 b0 34 12 00 00 00 00 00 a0 48 00 52 02 00";
    EXPECT_EQ(record(0, false), hex(body + "01"));
    EXPECT_EQ(record(2, false), hex(body + "01 00 00 00"));
    EXPECT_EQ(record(2, true), hex(body + "00 00 00 01"));
    // MaxSize = Align: all records are 64 bytes.
    auto full = hex(body + "01");
    full.resize(64);
    EXPECT_EQ(record(6, false), full);
}

TEST(Records, PlacesOfAbsentPackets) {
    const auto record = [](std::initializer_list<RecordColumn> slots, const Executed& op) {
        UnitUnderTest unit;
        unit.config.choices.order = ModelChoices::neoverse().order;
        for (const RecordColumn column : slots)
            unit.config.choices.slots =
                static_cast<std::uint16_t>(unit.config.choices.slots | 1U << static_cast<unsigned>(column));
        unit.sample(op);
        return unit.bytes().size();
    };
    constexpr auto target = RecordColumn::branch_target, data = RecordColumn::data_virtual;
    constexpr std::size_t least = 21, address = 9;
    // Target address and data address have the same place, whichever of them the record has.
    EXPECT_EQ(record({target, data}, other(1, 0)), least + address);
    EXPECT_EQ(record({data}, other(1, 0)), least + address);
    EXPECT_EQ(record({target}, other(1, 0)), least + address);
    EXPECT_EQ(record({target, data}, branch(1, 0, 2)), least + address);
    EXPECT_EQ(record({data}, branch(1, 0, 2)), least + address);
    EXPECT_EQ(record({target}, load(1, 0, 2)), least + address + 3);
    EXPECT_EQ(
        record({RecordColumn::context_el1, RecordColumn::data_source, RecordColumn::translation_latency}, other(1, 0)),
        least + 5 + 2 + 3);
}

TEST(Records, Branches) {
    const auto target = [](const Executed& op, bool not_taken_target) {
        UnitUnderTest unit;
        unit.config.choices.not_taken_target = not_taken_target;
        unit.sample(op);
        return unit.witness.written().at(0);
    };
    const Record taken = target(branch(0x100, 0, 0x200), false);
    EXPECT_EQ(taken.branch_target, 0xa000'0000'0000'0200U);
    EXPECT_EQ(taken.events, event::retired);
    EXPECT_FALSE(target(branch(0x100, 0, 0x104, false), false).has(RecordColumn::branch_target));
    const Record not_taken = target(branch(0x100, 0, 0x104, false), true);
    EXPECT_EQ(not_taken.branch_target, 0xa000'0000'0000'0104U);
    EXPECT_EQ(not_taken.events, event::retired | event::not_taken);

    Executed eret = branch(0x100, 0, 0x40'0000);
    eret.operation.indirect = true;
    eret.target.exception_level = EL0;
    EXPECT_EQ(target(eret, false).branch_target, 0x8000'0000'0040'0000U);
    EXPECT_EQ(target(eret, false).pc, 0xa000'0000'0000'0100U);
}

TEST(Records, SecurityStates) {
    const auto pc = [](bool ns, bool nse, std::uint8_t nspb, bool nspbe) {
        UnitUnderTest unit;
        unit.config.state.arch.rme = true;
        unit.config.state.arch.revision = Revision::modern;
        unit.regs().scr_el3.ns = ns;
        unit.regs().scr_el3.nse = nse;
        unit.regs().mdcr_el3.nspb = nspb;
        unit.regs().mdcr_el3.nspbe = nspbe;
        unit.regs().pmscr_el1.pa = unit.regs().pmscr_el2.pa = true;
        unit.sample(load(0x100, 0, 0x200));
        const Record r = unit.witness.written().at(0);
        EXPECT_EQ(program_address(r.pc).security, physical_address(r.data_physical).security);
        return program_address(r.pc);
    };
    EXPECT_EQ(pc(true, false, 0b11, false).security, Security::non_secure);
    EXPECT_EQ(pc(false, false, 0b01, false).security, Security::secure);
    EXPECT_EQ(pc(true, true, 0b11, true).security, Security::realm);
    EXPECT_EQ(pc(true, true, 0b11, true).exception_level, 1);
}

TEST(Records, Counters) {
    for (const auto& [size, most] : {std::pair<std::uint8_t, unsigned>{2, 0xfff}, {3, 0xffff}}) {
        UnitUnderTest unit;
        unit.regs().pmsidr_el1.count_size = size;
        unit.regs().pmsidr_el1.altclk = 1;
        unit.regs().pmsidr_el1.max_size = 7;
        Executed op = load(0x100, 0, 0x200, 0x12345);
        op.issue_latency = most;
        op.translation_latency = most + 1;
        op.alternate_issue_latency = most - 1;
        unit.sample(op);
        const Record r = unit.witness.written().at(0);
        EXPECT_EQ(r.total_latency, most);
        EXPECT_EQ(r.issue_latency, most);
        EXPECT_EQ(r.translation_latency, most);
        EXPECT_EQ(r.alternate_issue_latency, most - 1);
    }
    UnitUnderTest unit;  // no ALTCLK
    Executed op = other(0x100, 0);
    op.alternate_issue_latency = 3;
    unit.sample(op);
    EXPECT_FALSE(unit.witness.written().at(0).has(RecordColumn::alternate_issue_latency));
}

TEST(Records, DataAddresses) {
    const auto record = [](const Access& access, bool top_byte, bool collected = true) {
        UnitUnderTest unit;
        unit.config.choices.data_top_byte = top_byte;
        unit.regs().pmscr_el1.pa = unit.regs().pmscr_el2.pa = collected;
        Executed op = load(0x100, 0, 0);
        op.access = access;
        unit.sample(op);
        return unit.witness.written().at(0);
    };
    EXPECT_EQ(record({.address = {0xff00'1234}}, false).data_virtual, 0xff00'1234U);
    EXPECT_EQ(record({.address = {0xb400'007f'dead'beef}, .tagged = true}, false).data_virtual, 0xb400'007f'dead'beefU);
    EXPECT_EQ(record({.address = {0xffff'8000'dead'beef}}, false).data_virtual, 0x00ff'8000'dead'beefU);
    EXPECT_EQ(record({.address = {0xffff'8000'dead'beef}}, true).data_virtual, 0xffff'8000'dead'beefU);
    // An access that aborts has no physical address.
    EXPECT_FALSE(record({.address = {1}}, false).has(RecordColumn::data_physical));
    const Access tagged{.address = {1}, .physical = Address{0x1000}, .tag_checked = true, .physical_tag = 0xb};
    EXPECT_EQ(record(tagged, false).data_physical, 0xcb00'0000'0000'1000U);
    EXPECT_FALSE(record(tagged, false, false).has(RecordColumn::data_physical));
    const Access secure{.address = {1}, .physical = Address{0x1000}, .physical_space = SecurityState::Secure};
    EXPECT_EQ(record(secure, false).data_physical, 0x1000U);
}

TEST(Records, AddressOfRedirectedRegister) {
    // NV2: EL1's access to a register goes to memory that EL2 chose (1.4).
    for (const bool e2spe : {false, true}) {
        UnitUnderTest unit;
        unit.regs().mdcr_el2.e2pb = 0b00;
        unit.regs().pmscr_el2.e2spe = e2spe;
        Executed op = load(0x100, 0, 0x828);
        op.operation.kind = Kind::system_register;
        unit.sample(op);
        EXPECT_EQ(unit.witness.written().at(0).has(RecordColumn::data_virtual), e2spe);
        EXPECT_EQ(unit.witness.written().at(0).operation_type, 0x30);
    }
}

TEST(Records, DataSource) {
    const auto record = [](bool lds, std::uint8_t bytes, bool is_store, bool atomic) {
        UnitUnderTest unit;
        unit.regs().pmsidr_el1.lds = lds;
        unit.config.choices.data_source_bytes = bytes;
        Executed op = is_store ? store(0x100, 0, 0x200) : load(0x100, 0, 0x200);
        if (atomic) op.operation.kind = Kind::extended;
        op.operation.atomic = atomic;
        op.data_source = 0x8;
        unit.sample(op);
        const auto found = decode<Decoder>(unit.bytes());
        EXPECT_EQ(found.records, [&] {
            auto expected = unit.witness.written();
            for (Record& r : expected) r.first = r.first - 0x1000;
            return expected;
        }());
        return found.records.at(0);
    };
    EXPECT_TRUE(record(true, 1, false, false).has(RecordColumn::data_source));
    EXPECT_EQ(record(true, 2, false, false).bytes, record(true, 1, false, false).bytes + 1);
    EXPECT_TRUE(record(true, 1, false, true).has(RecordColumn::data_source));
    EXPECT_FALSE(record(true, 1, true, true).has(RecordColumn::data_source));
    EXPECT_FALSE(record(true, 1, true, false).has(RecordColumn::data_source));
    EXPECT_FALSE(record(false, 1, false, false).has(RecordColumn::data_source));
}

TEST(Records, PreviousBranchTarget) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_2);
    unit.regs().pmsidr_el1.pbt = unit.regs().pmsidr_el1.fn_e = true;
    unit.regs().pmsidr_el1.max_size = 7;
    Model& model = unit.model();
    unit.sample(branch(0x100, 0, 0x200));
    EXPECT_FALSE(unit.witness.written().at(0).has(RecordColumn::previous_target));  // none before it
    unit.sample(other(0x200, 0));
    EXPECT_EQ(unit.witness.written().at(1).previous_target, 0xa000'0000'0000'0200U);
    model.retire(branch(0x204, 10, 0x208, false));  // not taken
    unit.sample(branch(0x208, 0, 0x300));
    EXPECT_EQ(unit.witness.written().at(2).previous_target, 0xa000'0000'0000'0200U);
    model.skip(10);
    model.skipped_branch({{0x400}});
    unit.sample(other(0x400, 0));
    EXPECT_EQ(unit.witness.written().at(3).previous_target, 0xa000'0000'0000'0400U);
    // A branch that is not profiled ends the sequence.
    model.set_exception_level(2000, EL2);
    model.retire(branch(0x500, 2000, 0x600));
    model.set_exception_level(2001, EL1);
    unit.set_cycle(2001);
    unit.sample(other(0x600, 0));
    EXPECT_FALSE(unit.witness.written().at(4).has(RecordColumn::previous_target));
}

TEST(Records, PreviousBranchTargetOnBranchesOnly) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_2);
    unit.regs().pmsidr_el1.pbt = unit.regs().pmsidr_el1.fn_e = true;
    unit.regs().pmsidr_el1.max_size = 7;
    unit.config.choices.previous_target_on_all = false;
    unit.model().retire(branch(0x100, 0, 0x200));
    unit.sample(other(0x200, 0));
    unit.sample(branch(0x204, 0, 0x300));
    EXPECT_FALSE(unit.witness.written().at(0).has(RecordColumn::previous_target));
    EXPECT_TRUE(unit.witness.written().at(1).has(RecordColumn::previous_target));
}

TEST(Records, Timestamps) {
    const auto time = [](std::string_view field, std::uint64_t value, bool at_end) {
        UnitUnderTest unit;
        unit.config.choices.counter_first = 1000;
        unit.config.choices.counter_numerator = 3;
        unit.config.choices.counter_denominator = 2;
        unit.config.choices.timestamp_at_end = at_end;
        unit.config.state.arch = Architecture::of(Version::v1_1);
        unit.config.state.arch.ecv = true;
        unit.regs().pmscr_el1.ts = true;
        EXPECT_TRUE(unit.regs().set_field(field, value));
        unit.regs().pmscr_el2.pct = unit.regs().pmscr_el1.pct;  // EL2 does not stand in the way
        unit.model().set_counter_offsets(100, 10);
        unit.set_cycle(7);
        unit.sample(other(0x100, 0, 8));
        return unit.witness.written().at(0).timestamp;
    };
    EXPECT_EQ(time("PMSCR_EL1.PCT", 0b00, false), 1000U + 10 - 100);
    EXPECT_EQ(time("PMSCR_EL1.PCT", 0b01, false), 1000U + 10);
    EXPECT_EQ(time("PMSCR_EL1.PCT", 0b11, false), 1000U + 10 - 10);
    EXPECT_EQ(time("PMSCR_EL1.PCT", 0b01, true), 1000U + 22);
    UnitUnderTest unit;
    unit.regs().pmscr_el1.ts = true;
    unit.model().set_counter(0x1234);
    unit.sample(other(0x100, 0, 8));
    EXPECT_EQ(unit.witness.written().at(0).timestamp, 0x1234U);
}

TEST(Records, Contexts) {
    UnitUnderTest unit;
    unit.regs().pmscr_el2.cx = unit.regs().pmscr_el1.cx = true;
    unit.model().set_context(1, 2);
    unit.sample(other(0x100, 0));
    const Record r = unit.witness.written().at(0);
    EXPECT_EQ(r.context_el1, 1U);
    EXPECT_EQ(r.context_el2, 2U);
    unit.model().change(10, [](State& s) { s.regs.pmscr_el2.cx = false; });
    unit.set_cycle(10);
    unit.sample(other(0x100, 0));
    EXPECT_FALSE(unit.witness.written().at(1).has(RecordColumn::context_el2));
}

TEST(Records, EventsOfTheVersion) {
    const auto events = [](Version version, bool sve, bool sme, std::uint64_t delivered, std::uint8_t bytes = 0) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(version);
        unit.config.state.arch.sve = sve;
        unit.config.state.arch.sme = unit.regs().pmsidr_el1.sme = sme;
        unit.regs().pmsidr_el1.fn_e = unit.config.state.arch.fn_e;
        unit.regs().pmsidr_el1.fds = unit.config.state.arch.fds;
        unit.regs().pmsidr_el1.max_size = 7;
        unit.config.choices.event_bytes = bytes;
        unit.config.choices.events = ~std::uint64_t{0};
        Executed op = other(0x100, 0);
        op.events = delivered;
        unit.sample(op);
        return unit.witness.written().at(0).events;
    };
    constexpr std::uint64_t all = ~(event::not_taken | event::streaming);
    EXPECT_EQ(events(Version::v1_0, false, false, all), 0xffff'0000'fe00'f7bfU);
    EXPECT_EQ(events(Version::v1_1, false, false, all), 0xffff'0000'fe00'ffbfU);
    EXPECT_EQ(events(Version::v1_2, true, false, all), 0xffff'0000'fe06'ffbfU);
    EXPECT_EQ(events(Version::v1_4, true, false, all), 0xffff'0000'00fe'ffbfU);
    EXPECT_EQ(events(Version::v1_5, true, true, all), 0xffff'0000'02fe'ffbfU);
    EXPECT_EQ(events(Version::v1_4, true, false, all, 2), 0xffbfU);
    EXPECT_EQ(events(Version::v1_0, false, false, event::not_taken), event::retired);  // the unit's own
    EXPECT_EQ(events(Version::v1_0, false, false, 0, 8), event::retired);
}

TEST(Records, StreamingMode) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_2);
    unit.config.state.arch.sme = unit.regs().pmsidr_el1.sme = true;
    unit.regs().pmsidr_el1.fn_e = true;
    unit.regs().pstate.sm = true;
    unit.sample(other(0x100, 0));
    EXPECT_EQ(unit.witness.written().at(0).events, event::retired | event::streaming);
}

TEST(Records, EventPacketSizes) {
    const auto size = [](Version version, bool sve, std::uint8_t bytes, std::uint64_t implemented) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(version);
        unit.regs().pmsidr_el1.fn_e = unit.config.state.arch.fn_e;
        unit.config.state.arch.sve = sve;
        unit.regs().pmsidr_el1.max_size = 7;
        unit.config.choices.event_bytes = bytes;
        unit.config.choices.events = implemented;
        unit.sample(other(0x100, 0));
        return unit.witness.written().at(0).bytes - (3 + 3 + 9 + 2 + 1) - 1;
    };
    constexpr std::uint64_t named = ModelChoices{}.events;
    EXPECT_EQ(size(Version::v1_0, false, 0, named), 2U);
    EXPECT_EQ(size(Version::v1_1, true, 0, named), 4U);
    EXPECT_EQ(size(Version::v1_0, false, 0, 0xff), 1U);
    EXPECT_EQ(size(Version::v1_0, false, 0, ~std::uint64_t{0}), 8U);
    EXPECT_EQ(size(Version::v1_0, false, 4, named), 4U);
}

// ---- operation types (4.6)

std::string type_of(const Operation& o, Version version, bool features = true) {
    Architecture arch = Architecture::of(version);
    arch.sve = arch.sme = features;
    const OperationType t = operation_type(o, arch, features, features);
    constexpr std::string_view digits = "0123456789abcdef";
    return std::string{digits[8 + static_cast<unsigned>(t.kind)], ' ', digits[t.type >> 4], digits[t.type & 15]};
}

TEST(OperationTypes, HandWorked) {
    using Call = Operation::Call;
    const auto v14 = Version::v1_4;
    EXPECT_EQ(type_of({.kind = Kind::other}, v14), "8 00");
    EXPECT_EQ(type_of({.kind = Kind::other, .conditional = true}, v14), "8 01");
    EXPECT_EQ(type_of({.kind = Kind::other, .floating_point = true}, v14), "8 02");
    EXPECT_EQ(type_of({.kind = Kind::other, .floating_point = true, .simd = true}, v14), "8 06");
    EXPECT_EQ(type_of({.kind = Kind::other, .floating_point = true, .simd = true}, v14, false), "8 00");  // no FPF
    EXPECT_EQ(type_of({.kind = Kind::sve, .predicated = true, .length_code = 2}, v14), "8 2c");
    EXPECT_EQ(type_of({.kind = Kind::sve, .floating_point = true, .length_code = 6}, v14), "8 6a");
    EXPECT_EQ(type_of({.kind = Kind::sve, .predicated = true, .length_code = 2}, Version::v1_0), "8 00");
    EXPECT_EQ(type_of({.kind = Kind::sme, .floating_point = true, .length_code = 11}, v14), "8 de");
    EXPECT_EQ(type_of({.kind = Kind::sme, .length_code = 15}, v14), "8 fc");
    EXPECT_EQ(type_of({.kind = Kind::sme, .length_code = 15}, v14, false), "8 00");

    EXPECT_EQ(type_of({.kind = Kind::general, .load = true}, v14), "9 00");
    EXPECT_EQ(type_of({.kind = Kind::general, .store = true}, v14), "9 01");
    EXPECT_EQ(type_of({.kind = Kind::simd_fp, .store = true}, v14), "9 05");
    EXPECT_EQ(type_of({.kind = Kind::unspecified, .load = true}, v14), "9 10");
    EXPECT_EQ(type_of({.kind = Kind::unspecified, .load = true}, Version::v1_0), "9 00");
    EXPECT_EQ(type_of({.kind = Kind::allocation_tag, .store = true}, v14), "9 15");
    EXPECT_EQ(type_of({.kind = Kind::allocation_tag, .store = true}, Version::v1_2), "9 01");
    EXPECT_EQ(type_of({.kind = Kind::system_register, .store = true}, v14), "9 31");
    EXPECT_EQ(type_of({.kind = Kind::memory_copy, .store = true}, v14), "9 21");
    EXPECT_EQ(type_of({.kind = Kind::memory_set, .store = true}, v14), "9 25");
    EXPECT_EQ(type_of({.kind = Kind::memory_set, .store = true}, Version::v1_2), "9 01");
    EXPECT_EQ(type_of({.kind = Kind::control_stack, .load = true}, v14), "9 40");
    EXPECT_EQ(type_of({.kind = Kind::control_stack, .store = true, .common = true}, v14), "9 45");
    EXPECT_EQ(type_of({.kind = Kind::control_stack, .load = true}, Version::v1_3), "9 00");
    EXPECT_EQ(type_of({.kind = Kind::extended, .load = true, .acquire_release = true, .atomic = true}, v14), "9 16");
    EXPECT_EQ(type_of({.kind = Kind::extended, .store = true, .exclusive = true}, v14), "9 0b");
    EXPECT_EQ(
        type_of({.kind = Kind::sve_memory, .store = true, .predicated = true, .gather_scatter = true, .length_code = 1},
                v14),
        "9 9d");
    EXPECT_EQ(type_of({.kind = Kind::sve_memory, .store = true, .length_code = 1}, Version::v1_0), "9 05");

    EXPECT_EQ(type_of({.kind = Kind::branch}, v14), "a 00");
    EXPECT_EQ(type_of({.kind = Kind::branch, .conditional = true}, v14), "a 01");
    EXPECT_EQ(type_of({.kind = Kind::branch, .indirect = true, .call = Call::call}, v14), "a 0a");
    EXPECT_EQ(type_of({.kind = Kind::branch, .indirect = true, .call = Call::call}, v14, false), "a 02");  // no CRR
    EXPECT_EQ(
        type_of({.kind = Kind::branch, .indirect = true, .control_stack = true, .call = Call::procedure_return}, v14),
        "a 16");
    EXPECT_EQ(type_of({.kind = Kind::branch, .control_stack = true, .call = Call::neither}, Version::v1_3), "a 18");
}

TEST(OperationTypes, LengthsAreRoundedUp) {
    for (const auto& [bits, code] : {std::pair{0U, 0U},
                                     {16U, 0U},
                                     {32U, 0U},
                                     {33U, 1U},
                                     {128U, 2U},
                                     {129U, 3U},
                                     {256U, 3U},
                                     {2048U, 6U},
                                     {2049U, 7U}})
        EXPECT_EQ(vector_length_code(bits), code) << bits;
    for (const auto& [bits, code] :
         {std::pair{1U, 0U}, {128U, 0U}, {129U, 1U}, {1024U, 3U}, {262144U, 11U}, {262145U, 15U}})
        EXPECT_EQ(tile_size_code(bits), code) << bits;
}

TEST(OperationTypes, ForFilters) {
    EXPECT_EQ(filter_type({.kind = Kind::extended, .load = true, .atomic = true}), OpType::LoadAtomic);
    EXPECT_EQ(filter_type({.kind = Kind::extended, .store = true, .atomic = true}), OpType::Store);
    EXPECT_EQ(filter_type({.kind = Kind::extended, .load = true, .exclusive = true}), OpType::Load);
    EXPECT_EQ(filter_type({.kind = Kind::memory_set, .store = true}), OpType::Store);
    EXPECT_EQ(filter_type({.kind = Kind::simd_fp, .load = true}), OpType::Load);
    EXPECT_EQ(filter_type({.kind = Kind::branch}), OpType::Branch);
    EXPECT_EQ(filter_type({.kind = Kind::sve}), OpType::OtherSVE);
    EXPECT_EQ(filter_type({.kind = Kind::sme}), OpType::OtherSME);
    EXPECT_EQ(filter_type({}), OpType::Other);
}

TEST(OperationTypes, MemoryCopyIsSampledAsOneOfBoth) {
    const auto copies = [](bool ft, bool ld, bool st) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(Version::v1_3);
        unit.regs().pmsidr_el1.fn_e = true;
        unit.regs().pmsfcr_el1.ft = ft;
        unit.regs().pmsfcr_el1.ld = ld;
        unit.regs().pmsfcr_el1.st = st;
        for (unsigned i = 0; i < 64; ++i) {
            Executed op = load(0x100, 0, 0x2000);
            op.operation.kind = Kind::memory_copy;
            op.operation.store = true;
            op.store_access = Access{.address = {0x3000}};
            unit.sample(op);
        }
        unsigned loads = 0, stores = 0;
        for (const Record& r : unit.witness.written()) {
            EXPECT_EQ(r.data_virtual, r.operation_type == 0x20 ? 0x2000U : 0x3000U);
            ++(r.operation_type == 0x20 ? loads : stores);
        }
        EXPECT_EQ(loads + stores, 64U);
        return loads;
    };
    EXPECT_EQ(copies(true, true, false), 64U);
    EXPECT_EQ(copies(true, false, true), 0U);
    EXPECT_GT(copies(false, true, false), 10U);
    EXPECT_LT(copies(true, true, true), 54U);
}

TEST(OperationTypes, MemorySetIsSampledAsItsStore) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_3);
    unit.regs().pmsidr_el1.fn_e = true;
    for (unsigned i = 0; i < 16; ++i) {
        Executed op = load(0x100, 0, 0x2000);
        op.operation.kind = Kind::memory_set;
        op.operation.store = true;
        op.store_access = Access{.address = {0x3000}};
        unit.sample(op);
        EXPECT_EQ(unit.witness.written().back().operation_type, 0x25);
        EXPECT_EQ(unit.witness.written().back().data_virtual, 0x3000U);
    }
}

// ---- in flight (1.3)

TEST(Collisions, WhileOneIsInFlight) {
    // Members 257, 514, 771, 1028 in cycles 257, 514, …: the first takes 600 cycles, so the next two collide.
    UnitUnderTest unit;
    for (std::uint64_t i = 1; i <= 1100; ++i) unit.model().retire(other(i, i, 600));
    EXPECT_EQ(unit.witness.members(Fate::collided), (std::vector<std::uint64_t>{514, 771}));
    EXPECT_EQ(unit.model().pending(), 1U);
    unit.model().psb_csync();
    EXPECT_EQ(unit.witness.members(Fate::written), (std::vector<std::uint64_t>{257, 1028}));
    const Registers& r = unit.model().registers();
    EXPECT_TRUE(r.pmbsr_el1.coll);
    EXPECT_FALSE(r.pmbsr_el1.s);
    EXPECT_EQ(unit.model().counts().pmu.sample_collision, 2U);
    EXPECT_EQ(unit.model().counts().chosen, 4U);
    EXPECT_FALSE(unit.model().pmbirq());
}

TEST(Collisions, TheSlotIsFreeWhenTheOperationIsComplete) {
    for (const auto& [latency, collisions] : {std::pair{257U, 0U}, {258U, 1U}}) {
        UnitUnderTest unit;
        for (std::uint64_t i = 1; i <= 514; ++i) unit.model().retire(other(i, i, latency));
        EXPECT_EQ(unit.model().counts().pmu.sample_collision, collisions);
    }
}

TEST(Collisions, MoreInFlight) {
    // The sample that ends first is written first.
    UnitUnderTest unit;
    unit.config.choices.in_flight = 2;
    for (std::uint64_t i = 1; i <= 1100; ++i) unit.model().retire(other(i, i, i == 257 ? 700 : 200));
    unit.model().psb_csync();
    EXPECT_TRUE(unit.witness.members(Fate::collided).empty());
    EXPECT_EQ(unit.witness.members(Fate::written), (std::vector<std::uint64_t>{514, 257, 771, 1028}));
}

TEST(Collisions, RateAsExpected) {
    // One member in each cycle, each with L cycles, no jitter, one in flight: of ceil(L / 257) samples, one is taken.
    for (const unsigned latency : {100U, 300U, 1000U, 4000U}) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(Version::v1_2);
        unit.regs().pmsidr_el1.fn_e = true;
        unit.regs().pmblimitr_el1.fm = 0b10;
        constexpr unsigned samples = 960;
        Model& model = unit.model();
        for (std::uint64_t n = 1; n <= samples; ++n) {
            model.skip(model.until_next());
            model.retire(other(n, 257 * n, latency));
        }
        const unsigned group = (latency + 256) / 257;
        EXPECT_EQ(model.counts().pmu.sample_collision, samples - samples / group) << latency;
        EXPECT_EQ(model.counts().chosen, samples);
    }
}

// ---- filters (1.5, 3.9 to 3.13): that the unit uses them, and its counts

TEST(Filters, CountsFromV12) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_4);
    unit.config.state.arch.eft = unit.regs().pmsidr_el1.eft = true;
    Registers& r = unit.regs();
    r.pmsidr_el1.fn_e = r.pmsidr_el1.fds = true;
    r.pmsidr_el1.max_size = 7;
    r.pmsfcr_el1.ft = r.pmsfcr_el1.ld = true;  // on: loads
    r.pmsevfr_el1.e = event::l1d_refill;       // off
    r.pmslatfr_el1.minlat = 10;                // off
    r.pmsdsfr_el1.s = 1U << 8;                 // off
    const auto run = [&](Executed op, std::uint64_t events, std::uint32_t total, int source) {
        op.events = events;
        op.total_latency = total;
        if (source >= 0) op.data_source = static_cast<std::uint16_t>(source);
        unit.sample(op);
    };
    Executed vector = load(8, 0, 0x200);
    vector.operation.kind = Kind::simd_fp;
    vector.operation.simd = true;
    Executed scalar = store(9, 0, 0x200);
    scalar.operation.kind = Kind::simd_fp;
    run(load(1, 0, 0x200), event::l1d_refill, 10, 8);
    run(load(2, 0, 0x200), 0, 9, 9);
    run(store(3, 0, 0x200), event::l1d_refill, 11, -1);
    run(branch(4, 0, 0x300), 0, 1, -1);
    run(other(5, 0), 0, 1, -1);
    run(vector, 0, 4, -1);
    run(scalar, 0, 4, -1);
    const PmuCounts& c = unit.model().counts().pmu;
    EXPECT_EQ(c.sample_feed, 7U);
    EXPECT_EQ(c.sample_filtrate, 3U);  // the loads
    EXPECT_EQ(c.sample_feed_br, 1U);
    EXPECT_EQ(c.sample_feed_ld, 3U);
    EXPECT_EQ(c.sample_feed_st, 2U);
    EXPECT_EQ(c.sample_feed_op, 3U);
    EXPECT_EQ(c.sample_feed_event, 2U);
    EXPECT_EQ(c.sample_feed_lat, 2U);
    EXPECT_EQ(c.sample_feed_fp, 1U);
    EXPECT_EQ(c.sample_feed_simd, 1U);
    EXPECT_EQ(c.sample_feed_ds, 1U);
    EXPECT_EQ(unit.model().counts().with(Fate::filtered), 4U);
    EXPECT_EQ(unit.model().counts().with(Fate::written), 3U);
}

// A branch that stores to the guarded control stack or loads from it is fed as both (section 1.4).
TEST(Filters, FeedsOfTheGuardedControlStack) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_4);
    Registers& r = unit.regs();
    r.pmsidr_el1.fn_e = r.pmsidr_el1.fds = true;
    r.pmsidr_el1.max_size = 7;
    Executed call = branch(1, 0, 0x300);
    call.operation.control_stack = true;
    call.operation.call = Operation::Call::call;
    Executed back = call;
    back.operation.call = Operation::Call::procedure_return;
    const auto feeds = [&] {
        const PmuCounts& c = unit.model().counts().pmu;
        return std::to_string(c.sample_feed_br) + std::to_string(c.sample_feed_ld) + std::to_string(c.sample_feed_st);
    };
    unit.sample(call);
    EXPECT_EQ(feeds(), "101");
    unit.sample(back);
    EXPECT_EQ(feeds(), "211");
    unit.sample(load(3, 0, 0x200));
    EXPECT_EQ(feeds(), "221");
    unit.sample(store(4, 0, 0x200));
    EXPECT_EQ(feeds(), "222");
}

TEST(Filters, NoFeedCountsBeforeV12) {
    UnitUnderTest unit;
    unit.sample(load(1, 0, 0x200));
    PmuCounts expected;
    expected.sample_pop = 257;
    expected.sample_feed = expected.sample_filtrate = 1;
    EXPECT_EQ(unit.model().counts().pmu, expected);
}

TEST(Filters, LatencyIsTheSaturatedCount) {
    UnitUnderTest unit;
    unit.regs().pmsfcr_el1.fl = true;
    unit.regs().pmslatfr_el1.minlat = 0xfff;
    unit.sample(other(1, 0, 0xffe));
    unit.sample(other(2, 0, 0x10000));
    EXPECT_EQ(unit.model().counts().with(Fate::filtered), 1U);
    EXPECT_EQ(unit.witness.written().at(0).total_latency, 0xfff);
}

TEST(Filters, LeastLatencyHasAsManyBitsAsCounters) {
    for (const std::uint8_t size : std::array<std::uint8_t, 2>{2, 3}) {
        UnitUnderTest unit;
        unit.regs().pmsidr_el1.count_size = size;
        unit.regs().pmslatfr_el1.minlat = 0x1234;
        EXPECT_EQ(unit.model().registers().pmslatfr_el1.minlat, size == 2 ? 0x234 : 0x1234);
    }
}

TEST(Filters, EventsOfTheUnitItself) {
    UnitUnderTest unit;
    unit.regs().pmsfcr_el1.fe = true;
    unit.regs().pmsevfr_el1.e = event::retired;
    Executed squashed = other(1, 0);
    squashed.retired = false;
    unit.sample(squashed);
    unit.sample(other(2, 0));
    EXPECT_EQ(unit.witness.members(Fate::filtered), (std::vector<std::uint64_t>{257}));
    EXPECT_EQ(unit.witness.members(Fate::written), (std::vector<std::uint64_t>{514}));
}

TEST(Filters, SelectivityAsExpected) {
    // Loads of 3 in 10, refills of 1 in 4, all independent: both filters leave 7.5 in 100.
    wire::Random random(11);
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_2);
    Registers& r = unit.regs();
    r.pmsidr_el1.fn_e = true;
    r.pmblimitr_el1.fm = 0b10;
    r.pmsfcr_el1.fe = r.pmsfcr_el1.ft = r.pmsfcr_el1.ld = true;
    r.pmsevfr_el1.e = event::l1d_refill;
    constexpr unsigned samples = 40000;
    for (unsigned i = 0; i < samples; ++i) {
        Executed op = random() % 10 < 3 ? load(1, 0, 2) : other(1, 0);
        if (random() % 4 == 0) op.events = event::l1d_refill;
        unit.sample(op);
    }
    const auto share = [&](std::uint64_t n) { return static_cast<double>(n) / samples; };
    const PmuCounts& c = unit.model().counts().pmu;
    EXPECT_NEAR(share(c.sample_filtrate), 0.075, 0.0066);  // five standard deviations
    EXPECT_NEAR(share(c.sample_feed_op), 0.3, 0.0115);
    EXPECT_NEAR(share(c.sample_feed_event), 0.25, 0.0109);
}

TEST(Filters, DrawnChoicesAreDrawnForEachSample) {
    UnitUnderTest unit;
    unit.regs().pmsfcr_el1.fl = true;  // MINLAT = 0
    unit.config.state.choices[Unpredictable::ZEROMINLATENCY] = Choices::Answer::drawn;
    for (unsigned i = 0; i < 64; ++i) unit.sample(other(1, 0));
    EXPECT_GT(unit.model().counts().with(Fate::filtered), 10U);
    EXPECT_GT(unit.model().counts().with(Fate::written), 10U);
}

// ---- the buffer (1.6)

TEST(Buffer, Mod17And18) {
    for (const bool full : {false, true}) {
        UnitUnderTest unit;
        constexpr std::uint64_t record = 21;
        unit.regs().pmbptr_el1.ptr = 0x1fc0 + (full ? 1 : 0) - record;
        unit.sample(other(1, 0));
        const Registers& r = unit.model().registers();
        EXPECT_EQ(r.pmbptr_el1.ptr, full ? 0x1fc1U : 0x1fc0U);
        EXPECT_EQ(r.pmbsr_el1.s, full);
        EXPECT_EQ(r.pmbsr_el1.ec, 0);
        EXPECT_EQ(r.pmbsr_el1.mss, full ? 1 : 0);
        EXPECT_EQ(unit.model().pmbirq(), full);
        EXPECT_EQ(unit.model().enabled(), !full);
        EXPECT_EQ(unit.model().counts().pmu.sample_buffer_full, full ? 1U : 0U);
        EXPECT_EQ(unit.model().counts().with(Fate::written), 1U);
    }
}

TEST(Buffer, FillsStopsAndGoesOn) {
    UnitUnderTest unit;
    unit.regs().pmbidr_el1.align = 6;
    Model& model = unit.model();
    std::uint64_t cycle = 0, written = 0;
    for (unsigned round = 0; round < 3; ++round) {
        while (!model.pmbirq()) {
            cycle += 1000;
            model.skip(model.until_next());
            model.retire(other(1, cycle));
            model.advance(cycle + 1);
        }
        // 64 records of 64 bytes have room: after the last one there is no room for another.
        written += 64;
        EXPECT_EQ(model.pointer().value, 0x2000U);
        EXPECT_EQ(model.counts().with(Fate::written), written);
        EXPECT_EQ(unit.buffer.written(model.pointer()).size(), 0x1000U);
        // While profiling is stopped no member is counted.
        const std::uint64_t members = model.counts().pmu.sample_pop;
        for (unsigned i = 0; i < 600; ++i) model.retire(other(2, ++cycle));
        EXPECT_EQ(model.counts().pmu.sample_pop, members);
        EXPECT_EQ(model.pointer().value, 0x2000U);
        model.change(cycle, [](State& s) {
            s.regs.pmbptr_el1.ptr = 0x1000;
            s.regs.pmbsr_el1 = {};
        });
        EXPECT_FALSE(model.pmbirq());
    }
    EXPECT_EQ(model.counts().pmu.sample_buffer_full, 3U);
}

TEST(Buffer, WithoutRoomFromTheBeginning) {
    UnitUnderTest unit;
    unit.regs().pmbptr_el1.ptr = 0x1fe0;
    unit.sample(other(1, 0));
    EXPECT_TRUE(unit.model().registers().pmbsr_el1.s);
    EXPECT_EQ(unit.model().pointer().value, 0x1fe0U);
    EXPECT_EQ(unit.model().counts().with(Fate::lost), 1U);
    EXPECT_EQ(unit.model().counts().bytes, 0U);
}

TEST(Buffer, NothingIsSkippedWhileOneInFlightMayFillIt) {
    for (const std::uint8_t el : std::array<std::uint8_t, 2>{EL1, EL2}) {  // at EL2 profiling is disabled
        UnitUnderTest unit;
        unit.regs().pmbptr_el1.ptr = 0x1fb0;
        Model& model = unit.model();
        model.skip(model.until_next());
        model.retire(other(1, 100, 50));
        model.set_exception_level(100, el);
        EXPECT_EQ(model.until_next(), 0U);
        model.retire(other(2, 149));
        EXPECT_FALSE(model.pmbirq());
        model.retire(other(3, 150));
        EXPECT_TRUE(model.pmbirq());
        EXPECT_EQ(model.until_next(), ~std::uint64_t{0});
    }
}

TEST(Buffer, PointerBitsBelowAlign) {
    for (const bool res0 : {true, false}) {
        UnitUnderTest unit;
        unit.regs().pmbidr_el1.align = 4;
        unit.regs().pmbptr_el1.ptr = 0x1018;
        unit.config.choices.pointer_res0 = res0;
        EXPECT_EQ(unit.model().pointer().value, res0 ? 0x1010U : 0x1018U);
    }
}

TEST(Buffer, Faults) {
    struct Row {
        WriteFault fault;
        std::uint64_t at;
        unsigned ec, mss;
        bool ea, dl;
        Fate fate;
    };
    using Fault = WriteFault::Kind;
    const Row rows[] = {
        {{Fault::stage1, 0x07, 0}, 0x1000, 0x24, 0x07, false, false, Fate::lost},
        {{Fault::stage1, 0x0f, 0x100}, 0x1005, 0x24, 0x0f, false, true, Fate::torn},
        {{Fault::stage2, 0x06, 0}, 0x1014, 0x25, 0x06, false, true, Fate::torn},
        {{Fault::granule_protection, 0x28, 0}, 0x1001, 0x1e, 0, false, true, Fate::torn},
        {{Fault::external_abort, 0x10, 0}, 0x1000, 0x24, 0x10, true, false, Fate::lost},
    };
    for (const Row& row : rows) {
        UnitUnderTest unit;
        unit.buffer.fault_at({row.at}, row.fault);
        unit.regs().pmbsr_el1.coll = true;  // stays
        unit.sample(other(0x1234, 0, 3));
        const PmbsrEl1& s = unit.model().registers().pmbsr_el1;
        EXPECT_TRUE(s.s);
        EXPECT_TRUE(s.coll);
        EXPECT_EQ(s.ec, row.ec);
        EXPECT_EQ(s.mss, row.mss);
        EXPECT_EQ(s.mss2, row.fault.mss2);
        EXPECT_EQ(s.ea, row.ea);
        EXPECT_EQ(s.dl, row.dl);
        EXPECT_EQ(unit.model().pointer().value, row.at);
        EXPECT_EQ(unit.model().counts().with(row.fate), 1U);
        EXPECT_EQ(unit.model().counts().fault_events, 1U);
        EXPECT_EQ(unit.model().counts().bytes, row.at - 0x1000);
        // Bytes written before the fault are there, and none after it.
        const auto record = hex("98 03 00 99 00 00 b0 34 12 00 00 00 00 00 a0 48 00 52 02 00 01");
        for (std::size_t i = 0; i < record.size(); ++i)
            EXPECT_EQ(unit.buffer.bytes()[i], 0x1000 + i < row.at ? record[i] : 0);
    }
}

TEST(Buffer, FaultOutsideMemory) {
    UnitUnderTest unit;
    unit.regs().pmblimitr_el1.limit = 3;  // the limit is 0x3000, memory ends at 0x2000
    unit.regs().pmbptr_el1.ptr = 0x1ff0;
    unit.sample(other(1, 0));
    EXPECT_EQ(unit.model().pointer().value, 0x2000U);
    EXPECT_TRUE(unit.model().registers().pmbsr_el1.dl);
}

TEST(Buffer, ExternalAbortsThatAreNotReported) {
    for (const std::uint8_t ea : std::array<std::uint8_t, 2>{1, 2}) {
        UnitUnderTest unit;
        unit.regs().pmbidr_el1.ea = ea;
        unit.buffer.fault_at({0x1004}, {WriteFault::Kind::external_abort, 0x10, 0});
        unit.sample(other(1, 0));
        unit.sample(other(2, 0));
        EXPECT_FALSE(unit.model().registers().pmbsr_el1.s);
        EXPECT_EQ(unit.model().counts().serrors, ea == 2 ? 1U : 0U);
        EXPECT_EQ(unit.model().counts().with(Fate::torn), 1U);
        EXPECT_EQ(unit.witness.written().at(0).first.value, 0x1015U);
    }
}

TEST(Buffer, DiscardMode) {
    for (const Version version : {Version::v1_1, Version::v1_2}) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(version);
        unit.regs().pmsidr_el1.fn_e = unit.config.state.arch.fn_e;
        unit.regs().pmblimitr_el1.fm = 0b10;
        unit.regs().pmbptr_el1.ptr = 0xffff'0001;  // restrictions are waived
        unit.sample(other(1, 0));
        const ModelCounts& c = unit.model().counts();
        const bool discards = version == Version::v1_2;
        EXPECT_EQ(c.with(Fate::discarded), discards ? 1U : 0U);
        EXPECT_EQ(c.pmu.sample_filtrate, 1U);
        EXPECT_EQ(unit.model().registers().pmbsr_el1.s, !discards);
        EXPECT_EQ(c.bytes, 0U);
    }
}

TEST(Buffer, FreezeOfThePmu) {
    UnitUnderTest unit;
    unit.config.state.arch = Architecture::of(Version::v1_2);
    Registers& r = unit.regs();
    r.pmsidr_el1.fn_e = r.pmblimitr_el1.pmfz = r.pmcr_el0.fzs = true;
    r.pmbptr_el1.ptr = 0x1fe0;
    EXPECT_FALSE(unit.model().pmu_frozen());
    unit.sample(other(1, 0));
    EXPECT_TRUE(unit.model().pmu_frozen());
    EXPECT_FALSE(unit.model().pmu_frozen_el2());
    unit.model().change(1, [](State& s) { s.regs.pmblimitr_el1.pmfz = false; });
    EXPECT_FALSE(unit.model().pmu_frozen());
}

TEST(Buffer, ProfilingExceptions) {
    const auto stopped = [](std::uint8_t ee1, std::uint8_t ee2, std::uint8_t pmsee, WriteFault::Kind kind) {
        UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(Version::v1_5);
        Registers& r = unit.regs();
        r.pmsidr_el1.fn_e = r.pmsidr_el1.fds = true;
        r.pmsidr_el1.max_size = 7;
        r.pmscr_el1.ee = ee1;
        r.pmscr_el2.ee = ee2;
        r.mdcr_el3.pmsee = pmsee;
        r.pstate.el = EL0;
        unit.buffer.fault_at({0x1000}, {kind, 0x07, 0});
        unit.sample(other(1, 0));
        const Model& m = unit.model();
        EXPECT_FALSE(m.enabled());
        const auto& regs = m.registers();
        return std::to_string(regs.pmbsr_el1.s) + std::to_string(regs.pmbsr_el2.s) + std::to_string(regs.pmbsr_el3.s) +
               (m.pmbirq() ? " irq" : "") +
               (m.profiling_exception() ? " EL" + std::to_string(*m.profiling_exception()) : "");
    };
    using Fault = WriteFault::Kind;
    EXPECT_EQ(stopped(0, 0, 0, Fault::stage1), "100 irq");
    EXPECT_EQ(stopped(0b11, 0b01, 0, Fault::stage1), "100 EL1");
    EXPECT_EQ(stopped(0b11, 0b00, 0, Fault::stage1), "100 irq");  // EL2 has exceptions off
    EXPECT_EQ(stopped(0b11, 0b10, 0, Fault::stage1), "100 EL1");
    EXPECT_EQ(stopped(0b11, 0b10, 0, Fault::stage2), "010 EL2");
    EXPECT_EQ(stopped(0b11, 0b11, 0, Fault::stage1), "010 EL2");
    EXPECT_EQ(stopped(0b11, 0b11, 0b11, Fault::stage1), "001 EL3");
}

// ---- barriers (1.7)

TEST(Barrier, RecordsWaitUntilPsbCsync) {
    UnitUnderTest unit;
    unit.config.choices.queued_records = 3;
    for (unsigned i = 0; i < 3; ++i) unit.sample(other(i, 0));
    EXPECT_EQ(unit.model().pending(), 3U);
    EXPECT_EQ(unit.model().pointer().value, 0x1000U);
    unit.sample(other(3, 0));  // the oldest sample makes room
    EXPECT_EQ(unit.witness.members(Fate::written), (std::vector<std::uint64_t>{257}));
    unit.model().psb_csync();
    EXPECT_EQ(unit.model().pending(), 0U);
    EXPECT_EQ(unit.model().counts().with(Fate::written), 4U);
}

TEST(Barrier, WithoutPsbCsyncTheyAreLost) {
    UnitUnderTest unit;
    unit.config.choices.queued_records = 3;
    unit.sample(other(1, 0));
    unit.sample(other(2, 0));
    unit.model().skip(unit.model().until_next());
    unit.model().retire(other(3, 50, 100));  // still in flight
    unit.model().change(60, [](State& s) { s.regs.pmblimitr_el1.e = false; });
    EXPECT_EQ(unit.witness.members(Fate::lost), (std::vector<std::uint64_t>{257, 514, 771}));
    EXPECT_EQ(unit.model().pointer().value, 0x1000U);
    EXPECT_EQ(unit.model().pending(), 0U);
}

TEST(Barrier, DrainLosesNothing) {
    UnitUnderTest unit;
    unit.config.choices.queued_records = 3;
    unit.config.choices.writes_wait = true;
    unit.sample(other(1, 0));
    unit.model().skip(unit.model().until_next());
    unit.model().retire(other(2, 50, 100));
    unit.model().drain(60);
    EXPECT_EQ(unit.model().counts().with(Fate::written), 2U);
    EXPECT_FALSE(unit.model().enabled());
    EXPECT_FALSE(unit.model().registers().pmblimitr_el1.e);
    EXPECT_EQ(decode<Decoder>(unit.bytes()).records.size(), 2U);
}

TEST(Barrier, WritesAreCompleteBehindDsb) {
    UnitUnderTest unit;
    unit.config.choices.writes_wait = true;
    unit.sample(other(1, 0));
    EXPECT_EQ(unit.model().pointer().value, 0x1015U);
    EXPECT_EQ(copy(unit.bytes()), std::vector<std::uint8_t>(21, 0));
    unit.model().dsb();
    EXPECT_EQ(decode<Decoder>(unit.bytes()).records.size(), 1U);
}

TEST(Barrier, FaultBecomesVisible) {
    // The record waits; PSB CSYNC translates its address, and records after it are lost.
    UnitUnderTest unit;
    unit.config.choices.queued_records = 8;
    unit.buffer.fault_at({0x1015}, {});
    for (unsigned i = 0; i < 3; ++i) unit.sample(other(i, 0));
    EXPECT_FALSE(unit.model().pmbirq());
    unit.model().psb_csync();
    EXPECT_TRUE(unit.model().pmbirq());
    EXPECT_EQ(unit.model().counts().with(Fate::written), 1U);
    EXPECT_EQ(unit.model().counts().with(Fate::lost), 2U);
}

// ---- configurations

TEST(Check, WhatNoUnitIs) {
    const auto message = [](auto&& change) {
        UnitUnderTest unit;
        change(unit.config);
        const Status status = unit.config.check();
        return status ? std::string("ok") : status.error().message;
    };
    EXPECT_EQ(message([](ModelConfig&) {}), "ok");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.arch.version = Version::none; }),
              "there is no unit: the version is none");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmsidr_el1.max_size = 5; }),
              "PMSIDR_EL1.MaxSize is 5; records of 2^6 to 2^11 bytes are permitted");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmsidr_el1.count_size = 1; }),
              "PMSIDR_EL1.CountSize is 1; valid are 2 (12 bits) and 3 (16 bits)");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmsidr_el1.format = 1; }),
              "PMSIDR_EL1.Format is 1; there is only format 0");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmbidr_el1.align = 7; }),
              "PMBIDR_EL1.Align is 7, more than PMSIDR_EL1.MaxSize, which is 6");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmsidr_el1.fn_e = true; }),
              "PMSIDR_EL1.FnE is 1, but in this version it must be 0");
    EXPECT_EQ(message([](ModelConfig& c) { c.state.regs.pmsidr_el1.pbt = true; }), "PMSIDR_EL1.PBT and FnE need v1.2");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.event_bytes = 3; }),
              "event_bytes is 3; it may be 0, 1, 2, 4 or 8");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.event_bytes = 8; }),
              "a record can have 68 bytes, but PMSIDR_EL1.MaxSize allows 64");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.data_source_bytes = 4; }),
              "data_source_bytes is 4; it may be 1 or 2");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.in_flight = 0; }),
              "in_flight is 0; a unit tracks at least one sample");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.counter_denominator = 0; }), "counter_denominator is 0");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices.order[3] = RecordColumn::pc; }),
              "order must contain every packet except the terminator, each once");
    EXPECT_EQ(message([](ModelConfig& c) { c.choices = ModelChoices::neoverse(); }), "ok");
    EXPECT_EQ(message([](ModelConfig& c) {
                  c.choices = ModelChoices::hiperf();
                  c.state.regs.pmsidr_el1.max_size = 7;
              }),
              "ok");
}

TEST(Check, LongestRecords) {
    UnitUnderTest printed;  // CollectContextIDR2 as the printed text has it, without EL2
    printed.config.state.arch.el2 = false;
    EXPECT_EQ(printed.config.longest_record_bytes(), 57U);
    printed.config.state.arch.as_printed = true;
    EXPECT_EQ(printed.config.longest_record_bytes(), 62U);
    UnitUnderTest unit;
    EXPECT_EQ(unit.config.longest_record_bytes(), 62U);
    unit.config.choices = ModelChoices::neoverse();
    unit.regs().pmbidr_el1.align = 6;
    EXPECT_EQ(unit.config.longest_record_bytes(), 64U);
}

TEST(Reset, LeavesTheBufferOff) {
    for (const ResetValues values : {ResetValues::zero, ResetValues::ones, ResetValues::random}) {
        UnitUnderTest unit;
        const PmsidrEl1 id = unit.regs().pmsidr_el1;
        unit.config.state.arch.el3 = false;
        reset(unit.config.state, values, 7);
        const Registers& r = unit.model().registers();
        EXPECT_EQ(r.pmsidr_el1, id);
        EXPECT_FALSE(r.pmblimitr_el1.e);
        EXPECT_FALSE(unit.model().enabled());
        EXPECT_EQ(r.pmscr_el2.ee, 0);
        EXPECT_EQ(r.pmscr_el1.ee, values == ResetValues::ones   ? 0b11
                                  : values == ResetValues::zero ? 0
                                                                : r.pmscr_el1.ee);
        EXPECT_EQ(r.pmscr_el1.res0_63_11, 0U);
        EXPECT_EQ(r.pmsicr_el1.res0_55_32, 0U);
        EXPECT_EQ(r.pmsevfr_el1.e, values == ResetValues::zero   ? 0
                                   : values == ResetValues::ones ? ~std::uint64_t{0}
                                                                 : r.pmsevfr_el1.e);
        EXPECT_EQ(r.mdcr_el3.nspb, 0b11);
        for (std::uint64_t i = 0; i < 1000; ++i) unit.model().retire(other(i, i));
        EXPECT_EQ(unit.model().counts().pmu.sample_pop, 0U);
    }
}

// A seed gives the same values everywhere: the values of SplitMix64, which are published for the seed 0.
TEST(Reset, RandomValuesAreThoseOfTheSeed) {
    UnitUnderTest unit;
    reset(unit.config.state, ResetValues::random, 0);
    const Registers& r = unit.config.state.regs;
    // In the order of the registers: PMSCR_EL1, PMSCR_EL2, PMSFCR_EL1, then PMSEVFR_EL1, which has no reserved bits.
    EXPECT_EQ(*r.get("PMSCR_EL1"), 0xe220a8397b1dcdafU & 0x7fbU);
    EXPECT_EQ(r.pmsevfr_el1.e, 0xf88bb8a8724c81ecU);
    EXPECT_EQ(r.pmsnevfr_el1.e, 0x1b39896a51a8749bU);
}

TEST(Check, ImplementedRegistersStay) {
    UnitUnderTest unit;
    unit.model().change(0, [](State& s) {
        s.regs.pmsidr_el1.max_size = 11;
        s.regs.pmbidr_el1.align = 3;
        s.arch.version = Version::v1_5;
    });
    EXPECT_EQ(unit.model().registers().pmsidr_el1.max_size, 6);
    EXPECT_EQ(unit.model().registers().pmbidr_el1.align, 0);
    EXPECT_EQ(unit.model().state().arch.version, Version::v1_0);
}

TEST(Check, LinuxUser) {
    for (const Version version :
         {Version::v1_0, Version::v1_1, Version::v1_2, Version::v1_3, Version::v1_4, Version::v1_5}) {
        const ProfilingBuffer buffer({0x10000}, 0x4000);
        const ModelConfig config = ModelConfig::linux_user(version, 4096, buffer);
        const Status status = config.check();
        ASSERT_TRUE(status) << name(version) << ": " << status.error().message;
        ProfilingBuffer memory({0x10000}, 0x4000);
        Model model(config, memory);
        EXPECT_TRUE(model.enabled());
        model.set_context(0, 0x1234);
        for (std::uint64_t i = 0; i < 10000; ++i) model.retire(load(0x400000, i, 0x7fff0000));
        model.drain(10000);
        const auto records = decode<Decoder>(memory.written(model.pointer())).records;
        ASSERT_EQ(records.size(), 2U) << name(version);
        EXPECT_EQ(records[0].pc, 0x8000'0000'0040'0000U);
        EXPECT_EQ(records[0].context_el2, 0x1234U);
        EXPECT_TRUE(records[0].has(RecordColumn::timestamp));
        EXPECT_EQ(records[1].first.value, 64U);
    }
}

// ---- records of real units, given to the model as operations

/// The operation that a record describes, and a unit programmed like the record's unit.
void replay(const Record& r, UnitUnderTest& unit, Executed& op) {
    const ProgramAddress pc = program_address(r.pc);
    Registers& regs = unit.regs();
    regs.pstate.el = pc.exception_level;
    regs.mdcr_el2.e2pb = 0b00;
    regs.pmscr_el1.e0spe = regs.pmscr_el1.e1spe = regs.pmscr_el2.e2spe = regs.pmscr_el2.e0hspe = true;
    regs.hcr_el2.tge = pc.exception_level == EL2;
    regs.pmscr_el1.cx = r.has(RecordColumn::context_el1);
    regs.pmscr_el2.cx = r.has(RecordColumn::context_el2);
    regs.pmscr_el2.ts = r.has(RecordColumn::timestamp);
    op.pc = pc.address;
    op.operation = operation(r.operation_class, r.operation_type);
    op.events = r.events;
    op.retired = (r.events & event::retired) != 0;
    op.condition_failed = (r.events & event::not_taken) != 0;
    op.total_latency = r.total_latency;
    op.issue_latency = r.issue_latency;
    op.translation_latency = r.translation_latency;
    op.target.address = program_address(r.branch_target).address;
    if (r.has(RecordColumn::data_virtual)) op.access = Access{.address = data_address(r.data_virtual).address};
    if (r.has(RecordColumn::data_source)) op.data_source = r.data_source;
}

void replay_file(const std::string& file, const ModelChoices& choices, std::uint8_t align, std::uint8_t max_size,
                 std::size_t records) {
    const auto bytes = support::read_file(support::corpus_path("spe/" + file));
    const auto found = decode<Decoder>(bytes).records;
    ASSERT_EQ(found.size(), records);
    std::vector<std::uint8_t> again;
    for (const Record& r : found) {
        UnitUnderTest unit;
        Executed op;
        unit.config.choices = choices;
        replay(r, unit, op);
        unit.regs().pmbidr_el1.align = align;
        unit.regs().pmsidr_el1.max_size = max_size;
        unit.model().set_context(r.context_el1, r.context_el2);
        unit.model().set_counter(r.timestamp);
        unit.sample(op);
        again.insert(again.end(), unit.bytes().begin(), unit.bytes().end());
    }
    ASSERT_LE(again.size(), bytes.size());
    EXPECT_EQ(again, copy(Bytes(bytes).first(again.size()))) << file;
    EXPECT_EQ(again.size(), found.back().end().value);
}

TEST(Captured, Neoverse) {
    WM_NEEDS_CORPUS("spe");
    replay_file("quipper-two-records.bin", ModelChoices::neoverse(), 6, 6, 2);
    replay_file("wperf-branch-end.bin", ModelChoices::neoverse(), 6, 6, 1);
    replay_file("wperf-branch-ts.bin", ModelChoices::neoverse(), 6, 6, 1);
}

TEST(Captured, Hiperf) {
    WM_NEEDS_CORPUS("spe");
    replay_file("hiperf-unit-a.bin", ModelChoices::hiperf(), 3, 7, 4);
}

TEST(Captured, KvmGuest) {
    WM_NEEDS_CORPUS("spe");
    ModelChoices choices = ModelChoices::hiperf();
    choices.slots = 0;
    choices.event_bytes = 2;
    replay_file("kvm-guest-partial.bin", choices, 2, 7, 2);
}

}  // namespace
}  // namespace waymark::spe
