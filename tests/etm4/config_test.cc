/// Registers, and the configurations made from them.
#include "waymark/etm4/config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "etm4/support.h"

namespace waymark::etm4 {
namespace {

TEST(Etm4Registers, FieldsAndValuesAgree) {
    wire::Random random(2);
    Registers registers;
    unsigned count = 0;
    Registers::for_each(registers, [&](auto& r, unsigned) {
        using Register = std::remove_cvref_t<decltype(r)>;
        for (unsigned i = 0; i < 20; ++i) {
            const std::uint64_t value = random() >> (64 - 8 * Register::bytes);
            ASSERT_EQ(to_value(from_value<Register>(static_cast<RegisterNumber<Register>>(value))), value)
                << Register::name;
        }
        ++count;
    });
    EXPECT_GT(count, 200U);
}

TEST(Etm4Registers, HaveOffsetsOfTheirOwn) {
    Registers registers;
    std::map<unsigned, std::string_view> at;
    Registers::for_each(registers, [&](auto& r, unsigned offset) {
        using Register = std::remove_cvref_t<decltype(r)>;
        for (unsigned word = offset; word < offset + Register::bytes; word += 4)
            EXPECT_TRUE(at.emplace(word, Register::name).second) << Register::name << " and " << at[word];
        EXPECT_LT(offset, 0x1000U);
        EXPECT_EQ(offset % Register::bytes, 0U) << Register::name;
    });
    wire::Random random(4);
    for (const auto& [offset, name] : at) {
        const auto value = static_cast<std::uint32_t>(random());
        ASSERT_TRUE(registers.set(offset, value)) << name;
        ASSERT_EQ(registers.get(offset), value) << name;
    }
    EXPECT_FALSE(registers.set(0x014, 1));
    EXPECT_EQ(registers.get(0x014), std::nullopt);
    // Both halves of a register of 64 bits.
    registers.set(0x408, 0x12345678), registers.set(0x40c, 0x9abcdef0);
    EXPECT_EQ(registers.acvr[1].address, 0x9abcdef012345678U);
}

// Every register of the tables in docs/spec/etm4-registers.md, section 1, is at the offset given there.
TEST(Etm4Registers, AreThoseOfTheSpecification) {
    std::ifstream in(std::filesystem::path(WAYMARK_SOURCE_DIR) / "docs/spec/etm4-registers.md");
    ASSERT_TRUE(in);
    Registers registers;
    std::map<unsigned, std::string_view> at;
    Registers::for_each(registers,
                        [&](auto& r, unsigned offset) { at.emplace(offset, std::remove_cvref_t<decltype(r)>::name); });
    unsigned rows = 0;
    for (std::string line; std::getline(in, line) && !line.starts_with("### 1.7");) {
        // `| TRCSEQEVR0-2 | 0x100+4n | …`; without the number, the name is that of the group.
        const std::size_t bar = line.find(" | 0x");
        if (!line.starts_with("| TRC") || bar == std::string::npos) continue;
        std::string name = line.substr(2, line.find_first_of(" /(", 2) - 2);
        name.resize(std::min(name.size(), name.find('-')));
        std::uint64_t offset = 0;
        const std::string digits =
            line.substr(bar + 3, line.find_first_not_of("0123456789abcdefABCDEFx", bar + 3) - bar - 3);
        ASSERT_TRUE(wire::scan_number(digits, offset)) << line;
        if (name.starts_with("TRCRSCTLR")) offset += 2 * 4;  // the table's n begins with 2
        const auto found = at.find(static_cast<unsigned>(offset));
        ASSERT_NE(found, at.end()) << line;
        EXPECT_TRUE(name.starts_with(found->second) || found->second.starts_with(name)) << line << found->second;
        ++rows;
    }
    EXPECT_GT(rows, 60U);
}

// docs/spec/etm4-registers.md, 1.1: the encoding of a system register from its offset, compared with the listed ones.
TEST(Etm4Registers, OffsetsGiveTheSystemRegisterEncodings) {
    const auto encoding = [](unsigned offset) {
        const unsigned n = offset / 4;
        return std::array<unsigned, 3>{n >> 7, n & 0xfU, n >> 4 & 7U};  // CRn, CRm, op2
    };
    EXPECT_EQ(encoding(Trcprgctlr::offset), (std::array{0U, 1U, 0U}));
    EXPECT_EQ(encoding(Trcvictlr::offset), (std::array{0U, 0U, 2U}));
    EXPECT_EQ(encoding(Trcrsr::offset), (std::array{0U, 10U, 0U}));
    EXPECT_EQ(encoding(Trcacvr::offset + 8), (std::array{2U, 2U, 0U}));
    EXPECT_EQ(encoding(Trcclaimset::offset), (std::array{7U, 8U, 6U}));
    EXPECT_EQ(encoding(Trcdevarch::offset), (std::array{7U, 15U, 6U}));
}

// docs/spec/etm4-registers.md, section 3 and 5: values of real units and of Linux.
TEST(Etm4Registers, KnownValuesHaveTheKnownFields) {
    const auto idr0 = from_value<Trcidr0>(0x28000ea1);  // Cortex-A53
    EXPECT_TRUE(idr0.retstack && idr0.trccci && idr0.trcbb && idr0.commopt && !idr0.commtrans && !idr0.trccond);
    EXPECT_EQ(idr0.tssize, 8);
    EXPECT_EQ(idr0.numevent, 3);
    const auto idr2 = from_value<Trcidr2>(0x20001088);  // Cortex-A76
    EXPECT_EQ(idr2.iasize, 8);
    EXPECT_EQ(idr2.cidsize, 4);
    EXPECT_EQ(idr2.vmidsize, 4);
    const auto idr4 = from_value<Trcidr4>(0x11170004);  // Cortex-A53: 4 pairs of comparators, 8 pairs of selectors, one
                                                        // of each other resource
    EXPECT_EQ(idr4.numacpairs, 4);
    EXPECT_EQ(idr4.numrspair, 7);
    EXPECT_EQ(idr4.numsscc, 1);
    EXPECT_EQ(idr4.numcidc, 1);
    const auto idr5 = from_value<Trcidr5>(0x28c7081e);  // Cortex-A53
    EXPECT_EQ(idr5.numcntr, 2);
    EXPECT_EQ(idr5.numseqstate, 4);
    EXPECT_EQ(idr5.numextin, 30);
    EXPECT_EQ(idr5.numextinsel, 4);
    EXPECT_EQ(idr5.traceidsize, 7);
    EXPECT_TRUE(idr5.lpoverride && idr5.atbtrig);
    const auto victlr = from_value<Trcvictlr>(0x00600201);  // cs_etm//u, kernel at EL1
    EXPECT_TRUE(victlr.ssstatus);
    EXPECT_EQ(victlr.sel, 1);
    EXPECT_EQ(victlr.exlevel_ns, 6);
    EXPECT_EQ(victlr.exlevel_s, 0);
    const auto counter = from_value<Trccntctlr>(0x00010001);
    EXPECT_TRUE(counter.reload_self && !counter.chain);
    EXPECT_EQ(counter.count_sel, 1);
}

RegisterValues a53() {
    RegisterValues r;
    r.configr = 0xc1;
    r.traceidr = 0x10;
    r.idr0 = 0x28000ea1;
    r.idr1 = 0x4100f403;
    r.idr2 = 0x488;
    r.idr8 = 0;
    return r;
}

TEST(Etm4Config, OfCapturedRegisters) {
    const ReadConfig a = read_config(a53(), CoreProfile::a);
    EXPECT_TRUE(a.notes.empty()) << a.notes.front();
    EXPECT_EQ(a.config.version, 0x40);
    EXPECT_FALSE(a.config.ete());
    EXPECT_TRUE(a.config.context_id_trace && a.config.vmid_trace && a.config.commit_mode_1);
    EXPECT_FALSE(a.config.cycle_counting || a.config.timestamps || a.config.return_stack || a.config.q_elements);
    EXPECT_EQ(a.config.vmid_bytes, 1);
    EXPECT_EQ(a.config.context_id_bytes, 4);
    EXPECT_EQ(a.config.address_bytes, 8);
    EXPECT_EQ(a.config.timestamp_bits, 64);
    EXPECT_EQ(a.config.trace_id, 0x10);
    EXPECT_EQ(data_trace_id(a.config), std::nullopt);

    RegisterValues r;  // the ETE 1.3 model
    r.configr = 0xe001;
    r.traceidr = 1;
    r.idr0 = 0x28c1cea1;
    r.idr1 = 0x4100fff0;
    r.idr2 = 0xd0001088;
    r.idr8 = 0x78;
    r.devarch = 0x47735a13;
    const ReadConfig e = read_config(r, CoreProfile::a);
    EXPECT_TRUE(e.notes.empty()) << e.notes.front();
    EXPECT_EQ(e.config.version, 0x53);
    EXPECT_TRUE(e.config.ete() && e.config.q_elements && e.config.timestamp_markers && e.config.wfx_p0);
    EXPECT_TRUE(e.config.vmid_is_contextidr && e.config.transaction_start_p0);
    EXPECT_EQ(e.config.vmid_bytes, 4);
    EXPECT_EQ(e.config.max_speculation, 0x78U);
    EXPECT_EQ(e.config.cycle_count_bits, 20);
}

bool mentions(const ReadConfig& read, std::string_view words) {
    return std::any_of(read.notes.begin(), read.notes.end(),
                       [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

// Only ARCHVER decides: TRCIDR1 of an ETE says 15, and labels do not count.
TEST(Etm4Config, ArchverDecidesWhetherItIsAnEte) {
    RegisterValues r = a53();
    r.devarch = 0x47705a13;
    EXPECT_EQ(read_config(r, CoreProfile::a).config.version, 0x50);
    r.devarch = 0x47724a13;  // ETMv4.2 by TRCDEVARCH, 4.0 by TRCIDR1
    const ReadConfig contradiction = read_config(r, CoreProfile::a);
    EXPECT_EQ(contradiction.config.version, 0x40);
    EXPECT_TRUE(mentions(contradiction, "is ETMv4.2, but TRCIDR1=0x4100f403 is ETMv4.0; TRCIDR1 was believed"));
    r.idr1.reset();
    EXPECT_EQ(read_config(r, CoreProfile::a).config.version, 0x42);
    EXPECT_TRUE(read_config(r, CoreProfile::a).notes.empty());
}

TEST(Etm4Config, SaysWhatIsMissingAndWhatWasAssumed) {
    const ReadConfig none = read_config({}, CoreProfile::a);
    EXPECT_EQ(none.notes, std::vector<std::string>{
                              "TRCIDR1, TRCCONFIGR, TRCTRACEIDR, TRCIDR0, TRCIDR2 and TRCIDR8 are missing; assumed "
                              "0x4100f403, 0x1, 0x0, 0x28000ea1, 0x488 and 0x0"});
    RegisterValues given = a53();
    given.configr = 1, given.traceidr = 0;
    EXPECT_EQ(none.config, read_config(given, CoreProfile::a).config);
    RegisterValues r = a53();
    r.idr1 = 0x4100fff0;
    const ReadConfig ete = read_config(r, CoreProfile::a);
    EXPECT_EQ(ete.config.version, 0x50);
    EXPECT_TRUE(mentions(ete, "TRCIDR1=0x4100fff0 leaves the version to TRCDEVARCH, which is missing")) << ete.notes[0];
}

TEST(Etm4Config, SaysWhatCannotBe) {
    const auto with = [](auto&& change) {
        RegisterValues r = a53();
        change(r);
        return read_config(r, CoreProfile::a);
    };
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x489; }), "TRCIDR2.IASIZE=9 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x448; }), "TRCIDR2.CIDSIZE=2 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0xc88; }), "TRCIDR2.VMIDSIZE=3 is none that ETMv4.0 has"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x1088; }), "TRCIDR2.VMIDSIZE=4 is none that ETMv4.0 has"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x12000488; }), "TRCIDR2.CCSIZE=9 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x408; }), "TRCCONFIGR.CID=1 enables Context IDs"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr2 = 0x088; }), "TRCCONFIGR.VMID=1 enables VMIDs"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr0 = 0x21000ea1; }), "TRCIDR0.TSSIZE=1 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x801, r.idr0 = 0x20000ea1; }), "TRCCONFIGR.TS=1"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x11, r.idr0 = 0x28000e21; }), "TRCCONFIGR.CCI=1"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x701; }), "TRCCONFIGR.COND=7 enables conditional trace"));
    EXPECT_TRUE(
        mentions(with([](auto& r) { r.configr = 0x501, r.idr0 = 0x28000ee1; }), "TRCCONFIGR.COND=5 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x3; }), "TRCCONFIGR.INSTP0=1"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x10001; }), "TRCCONFIGR enables data trace"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x1001, r.idr0 = 0x28000ca1; }), "TRCCONFIGR.RS=1"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x9, r.idr0 = 0x28000e81; }), "TRCCONFIGR.BB=1"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x2001; }), "TRCCONFIGR.QE=1 enables Q elements"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x4001; }), "TRCCONFIGR.QE=2 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x4001, r.idr0 = 0x28008ea1; }), "read all the same"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr0 = 0x28000ea3; }), "TRCIDR0.INSTP0=1 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr0 = 0x28000eb1; }), "TRCIDR0.TRCDATA=2 is reserved"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.configr = 0x701, r.idr0 = 0x28002ee1; }), "TRCIDR0.CONDTYPE=2"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr0 = 0x28800ea1; }), "TRCIDR0.TSMARK=1"));
    EXPECT_FALSE(with([](auto& r) { r.idr0 = 0x28800ea1; }).config.timestamp_markers);
    EXPECT_TRUE(with([](auto& r) { r.idr0 = 0x28800ea1, r.idr1 = 0x4100f463; }).config.timestamp_markers);
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr1 = 0x4100f303; }), "major version 3"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.idr1 = 0x4100f473; }), "is ETMv4.7, which is not known"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.devarch = 0x47755a13; }), "is ETE 1.5, which is not known"));
    EXPECT_TRUE(mentions(with([](auto& r) { r.devarch = 0x47700a00; }), "is not that of an ETMv4 or ETE"));
    EXPECT_TRUE(
        mentions(with([](auto& r) { r.devarch = 0x47705a13, r.configr = 0x10003; }), "which an ETE does not have"));
}

// ID registers state what a unit can do; TRCCONFIGR what it did.
TEST(Etm4Config, AFeatureThatTheUnitHasIsOffUnlessItWasEnabled) {
    for (Config everything : {test::etmv4(), test::ete(), test::conditional()}) {
        everything.q_elements = everything.return_stack = everything.branch_broadcast = true;
        RegisterValues r = to_registers(everything);
        r.configr = 1;
        const ReadConfig read = read_config(r, CoreProfile::a);
        EXPECT_TRUE(read.notes.empty()) << read.notes.front();
        const Config& c = read.config;
        EXPECT_FALSE(c.q_elements || c.return_stack || c.branch_broadcast || c.cycle_counting || c.timestamps);
        EXPECT_FALSE(c.context_id_trace || c.vmid_trace || c.p0_loads || c.p0_stores || c.data_trace);
        EXPECT_EQ(c.conditional, 0);
    }
}

TEST(Etm4Config, DataTraceHasAnIdOfItsOwn) {
    RegisterValues r = a53();
    r.configr = 0x10003;
    r.idr0 = 0x28000ebf;
    const ReadConfig read = read_config(r, CoreProfile::a);
    EXPECT_TRUE(read.config.data_trace && read.config.p0_loads && !read.config.p0_stores) << read.notes.size();
    EXPECT_EQ(data_trace_id(read.config), 0x11);
    EXPECT_EQ(read.config.p0_keys, 1U);  // 0 means 1, and so does a missing register
    EXPECT_TRUE(mentions(read, "TRCIDR9, TRCIDR10 and TRCIDR11 are missing; assumed 0x1, 0x0 and 0x0"));
    r.idr9 = 0, r.idr10 = 4, r.idr11 = 2;
    const ReadConfig keys = read_config(r, CoreProfile::a);
    EXPECT_TRUE(keys.notes.empty()) << keys.notes.front();
    EXPECT_EQ(keys.config.p0_keys, 1U);
    EXPECT_EQ(keys.config.p1_keys, 4U);
    EXPECT_EQ(keys.config.p1_special_keys, 2U);
    EXPECT_EQ(keys.config.conditional_keys, 0U);  // no conditional trace
}

TEST(Etm4Config, RegistersGiveItAgain) {
    for (Config config : test::all_configs()) {
        config.trace_id = 0x24;
        config.max_speculation = 12;
        const ReadConfig read = read_config(to_registers(config), config.profile);
        const bool vmid_16 = config.version == 0x40 && config.vmid_bytes > 1;
        if (vmid_16) continue;  // that version does not have it
        // Only sizes for absent features are noted.
        for (const std::string& note : read.notes)
            EXPECT_TRUE((config.vmid_bytes == 0 && note.starts_with("TRCCONFIGR.VMID=1")) ||
                        (config.context_id_bytes == 0 && note.starts_with("TRCCONFIGR.CID=1")))
                << note;
        EXPECT_EQ(read.config, config);
    }
}

}  // namespace
}  // namespace waymark::etm4
