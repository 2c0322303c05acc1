/// Registers against the tables of docs/spec/spe.md, section 2.
#include "waymark/spe/registers.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace waymark::spe::test {
namespace {

struct Place {
    const char* field;
    unsigned hi, lo;
};

// Each field of sections 2.1 to 2.8 at the place that its table gives: independent evidence for the descriptions.
const Place places[] = {
    {"PMSCR_EL1.E0SPE", 0, 0},
    {"PMSCR_EL1.E1SPE", 1, 1},
    {"PMSCR_EL1.CX", 3, 3},
    {"PMSCR_EL1.PA", 4, 4},
    {"PMSCR_EL1.TS", 5, 5},
    {"PMSCR_EL1.PCT", 7, 6},
    {"PMSCR_EL1.EE", 9, 8},
    {"PMSCR_EL1.KE", 10, 10},
    {"PMSCR_EL2.E0HSPE", 0, 0},
    {"PMSCR_EL2.E2SPE", 1, 1},
    {"PMSCR_EL2.CX", 3, 3},
    {"PMSCR_EL2.PA", 4, 4},
    {"PMSCR_EL2.TS", 5, 5},
    {"PMSCR_EL2.PCT", 7, 6},
    {"PMSCR_EL2.EE", 9, 8},
    {"PMSCR_EL2.KE", 10, 10},
    {"PMSCR_EL2.EnVM", 11, 11},
    {"PMSFCR_EL1.FE", 0, 0},
    {"PMSFCR_EL1.FT", 1, 1},
    {"PMSFCR_EL1.FL", 2, 2},
    {"PMSFCR_EL1.FnE", 3, 3},
    {"PMSFCR_EL1.FDS", 4, 4},
    {"PMSFCR_EL1.B", 16, 16},
    {"PMSFCR_EL1.LD", 17, 17},
    {"PMSFCR_EL1.ST", 18, 18},
    {"PMSFCR_EL1.FP", 19, 19},
    {"PMSFCR_EL1.SIMD", 20, 20},
    {"PMSFCR_EL1.Bm", 48, 48},
    {"PMSFCR_EL1.LDm", 49, 49},
    {"PMSFCR_EL1.STm", 50, 50},
    {"PMSFCR_EL1.FPm", 51, 51},
    {"PMSFCR_EL1.SIMDm", 52, 52},
    {"PMSEVFR_EL1.E", 63, 0},
    {"PMSNEVFR_EL1.E", 63, 0},
    {"PMSDSFR_EL1.S", 63, 0},
    {"PMSLATFR_EL1.MINLAT", 15, 0},
    {"PMSICR_EL1.COUNT", 31, 0},
    {"PMSICR_EL1.ECOUNT", 63, 56},
    {"PMSIRR_EL1.INTERVAL", 31, 8},
    {"PMSIRR_EL1.RND", 0, 0},
    {"PMSIDR_EL1.FE", 0, 0},
    {"PMSIDR_EL1.FT", 1, 1},
    {"PMSIDR_EL1.FL", 2, 2},
    {"PMSIDR_EL1.ArchInst", 3, 3},
    {"PMSIDR_EL1.LDS", 4, 4},
    {"PMSIDR_EL1.ERnd", 5, 5},
    {"PMSIDR_EL1.FnE", 6, 6},
    {"PMSIDR_EL1.FDS", 7, 7},
    {"PMSIDR_EL1.Interval", 11, 8},
    {"PMSIDR_EL1.MaxSize", 15, 12},
    {"PMSIDR_EL1.CountSize", 19, 16},
    {"PMSIDR_EL1.Format", 23, 20},
    {"PMSIDR_EL1.PBT", 24, 24},
    {"PMSIDR_EL1.CRR", 25, 25},
    {"PMSIDR_EL1.EFT", 26, 26},
    {"PMSIDR_EL1.FPF", 27, 27},
    {"PMSIDR_EL1.ALTCLK", 31, 28},
    {"PMSIDR_EL1.SME", 32, 32},
    {"PMBLIMITR_EL1.E", 0, 0},
    {"PMBLIMITR_EL1.FM", 2, 1},
    {"PMBLIMITR_EL1.PMFZ", 5, 5},
    {"PMBLIMITR_EL1.nVM", 7, 7},
    {"PMBLIMITR_EL1.LIMIT", 63, 12},
    {"PMBPTR_EL1.PTR", 63, 0},
    {"PMBSR_EL1.MSS", 15, 0},
    {"PMBSR_EL1.COLL", 16, 16},
    {"PMBSR_EL1.S", 17, 17},
    {"PMBSR_EL1.EA", 18, 18},
    {"PMBSR_EL1.DL", 19, 19},
    {"PMBSR_EL1.EC", 31, 26},
    {"PMBSR_EL1.MSS2", 55, 32},
    {"PMBSR_EL2.S", 17, 17},
    {"PMBSR_EL3.S", 17, 17},
    {"PMBMAR_EL1.Attr", 7, 0},
    {"PMBMAR_EL1.SH", 9, 8},
    {"PMBIDR_EL1.Align", 3, 0},
    {"PMBIDR_EL1.P", 4, 4},
    {"PMBIDR_EL1.F", 5, 5},
    {"PMBIDR_EL1.AddrMode", 7, 6},
    {"PMBIDR_EL1.EA", 11, 8},
    {"PMBIDR_EL1.MaxBuffSize", 47, 32},
    {"MDCR_EL2.E2PB", 13, 12},
    {"MDCR_EL2.TPMS", 14, 14},
    {"MDCR_EL2.HPMFZS", 36, 36},
    {"MDCR_EL3.NSPB", 13, 12},
    {"MDCR_EL3.NSPBE", 11, 11},
    {"MDCR_EL3.EnPMSN", 36, 36},
    {"MDCR_EL3.EnPMS3", 42, 42},
    {"MDCR_EL3.PMSEE", 52, 51},
    {"MDCR_EL3.EnPMS4", 55, 55},
    {"SCR_EL3.NS", 0, 0},
    {"SCR_EL3.NSE", 62, 62},
    {"SCR_EL3.EEL2", 18, 18},
    {"HCR_EL2.TGE", 27, 27},
    {"HCR_EL2.E2H", 34, 34},
    {"PMCR_EL0.FZS", 32, 32},
    {"PMCR_EL0.FZO", 9, 9},
    {"PSTATE.EL", 3, 2},
    {"PSTATE.nRW", 4, 4},
    {"PSTATE.SM", 63, 63},
};

TEST(Registers, fields_are_where_the_specification_has_them) {
    std::set<std::string> known;
    for (const Place& place : places) {
        Registers r;
        const auto field = r.field(place.field);
        ASSERT_TRUE(field) << place.field;
        EXPECT_EQ(field->hi, place.hi) << place.field;
        EXPECT_EQ(field->lo, place.lo) << place.field;
        const std::string name(place.field, std::string_view(place.field).find('.'));
        ASSERT_TRUE(r.set(name, 0));
        const std::uint64_t ones = ~std::uint64_t{0} >> (63 - (place.hi - place.lo));
        EXPECT_TRUE(r.set_field(place.field, ones));
        EXPECT_EQ(r.get(name), ones << place.lo) << place.field;
        EXPECT_TRUE(ones + 1 == 0 || !r.set_field(place.field, ones + 1)) << place.field;
        known.insert(place.field);
    }
    // All fields are listed; PMBSR_EL2 and _EL3 are like PMBSR_EL1.
    const Registers none;
    Registers::for_each(none, [&](const auto& r) {
        if (r.name == "PMBSR_EL2" || r.name == "PMBSR_EL3") return;
        for (const Field& field : fields_of(r)) {
            if (field.reserved() || field.name.starts_with("other[")) continue;
            EXPECT_TRUE(known.contains(std::string(r.name) + "." + std::string(field.name)))
                << r.name << "." << field.name;
        }
    });
}

TEST(Registers, encodings) {
    const std::pair<std::string_view, std::string_view> table[] = {
        {"PMSCR_EL1", "S3_0_C9_C9_0"},    {"PMSNEVFR_EL1", "S3_0_C9_C9_1"}, {"PMSICR_EL1", "S3_0_C9_C9_2"},
        {"PMSIRR_EL1", "S3_0_C9_C9_3"},   {"PMSFCR_EL1", "S3_0_C9_C9_4"},   {"PMSEVFR_EL1", "S3_0_C9_C9_5"},
        {"PMSLATFR_EL1", "S3_0_C9_C9_6"}, {"PMSIDR_EL1", "S3_0_C9_C9_7"},   {"PMBLIMITR_EL1", "S3_0_C9_C10_0"},
        {"PMBPTR_EL1", "S3_0_C9_C10_1"},  {"PMBSR_EL1", "S3_0_C9_C10_3"},   {"PMSDSFR_EL1", "S3_0_C9_C10_4"},
        {"PMBMAR_EL1", "S3_0_C9_C10_5"},  {"PMBIDR_EL1", "S3_0_C9_C10_7"},  {"PMSCR_EL2", "S3_4_C9_C9_0"},
    };
    std::set<std::string> seen;
    Registers none;
    Registers::for_each(none, [&](auto& r) {
        if (r.name == "PSTATE") return;
        EXPECT_TRUE(seen.insert(to_text(r.encoding)).second) << r.name;
    });
    for (const auto& [name, encoding] : table) {
        std::string found;
        Registers::for_each(none, [&, wanted = name](auto& r) {
            if (r.name == wanted) found = to_text(r.encoding);
        });
        EXPECT_EQ(found, encoding) << name;
    }
}

TEST(Registers, value_and_back) {
    wire::Random random(5);
    Registers r;
    Registers::for_each(r, [&](auto& one) {
        using Register = std::remove_cvref_t<decltype(one)>;
        for (unsigned i = 0; i < 1000; ++i) {
            const std::uint64_t value = wire::random_number(random, 64);
            EXPECT_EQ(to_value(from_value<Register>(value)), value) << Register::name;
            EXPECT_TRUE(r.set(Register::name, value));
            EXPECT_EQ(r.get(Register::name), value);
        }
    });
}

TEST(Registers, names) {
    EXPECT_EQ(Registers::canonical("pmscr_el1"), "PMSCR_EL1");
    EXPECT_EQ(Registers::canonical("PMSCR_EL12"), "PMSCR_EL1");
    EXPECT_EQ(Registers::canonical("CurrentEL"), "PSTATE");
    EXPECT_EQ(Registers::canonical("PMSCR"), "");
    Registers r;
    EXPECT_FALSE(r.set("PMSCR", 1));
    EXPECT_FALSE(r.get("nothing"));
    EXPECT_FALSE(r.set_field("PMSCR_EL1", 1));
    EXPECT_FALSE(r.set_field("PMSCR_EL1.E9SPE", 1));
    EXPECT_TRUE(r.set("CurrentEL", 0x8));
    EXPECT_EQ(r.pstate.el, 2);
}

TEST(Registers, text) {
    const auto fields = fields_of(from_value<PmscrEl1>(0x6b));
    EXPECT_EQ(to_text(fields), "PCT=0b01 TS=1 CX=1 E1SPE=1 E0SPE=1");
    EXPECT_EQ(to_text(fields_of(PmscrEl1{})), "");
    EXPECT_EQ(to_text(fields_of(from_value<PmbsrEl1>(0x9002'0007))), "EC=0x24 S=1 MSS=7");
}

}  // namespace
}  // namespace waymark::spe::test
