#include "waymark/doctor/register_reference.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace waymark::doctor {
namespace {

TEST(RegisterReference, EveryFieldHasAMeaning) {
    for (const UnitReference& unit : register_references()) {
        std::set<std::string_view> names;
        for (const RegisterReference& r : unit.registers) {
            EXPECT_TRUE(names.insert(r.name).second) << unit.title << ": " << r.name << " is there twice";
            EXPECT_FALSE(r.title.empty()) << r.name;
            EXPECT_EQ(r.places.empty(), r.name == "PSTATE") << r.name;
            for (const FieldReference& f : r.fields) {
                EXPECT_FALSE(f.meaning.empty()) << unit.title << ": " << r.name << "." << f.name;
                EXPECT_TRUE(f.lo <= f.hi && f.hi < r.bits) << r.name << "." << f.name;
            }
        }
    }
}

TEST(RegisterReference, EveryMeaningHasAField) {
    for (const UnitReference& unit : register_references()) {
        std::set<std::string_view> rows;
        for (const RegisterReference& r : unit.registers)
            for (const RegisterMeaning& row : r.meanings) rows.insert(row.name);
        std::set<std::string> used;
        for (const RegisterReference& r : unit.registers) {
            used.emplace(r.name);
            for (const FieldReference& f : r.fields) {
                const std::string own = fmt::format("{}.{}", r.name, f.name);
                used.insert(rows.contains(own) ? own : fmt::format(".{}", f.name));
            }
        }
        for (const std::string_view row : rows)
            EXPECT_TRUE(used.contains(std::string(row))) << unit.title << " has no field for the meaning of " << row;
    }
}

TEST(RegisterReference, Documents) {
    const std::vector<UnitReference> units = register_references();
    const auto compare = [](const std::string& name, const std::string& expected) {
        const std::string path = WAYMARK_SOURCE_DIR "/docs/registers/" + name + ".md";
        if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path) << expected;
        std::ifstream in(path);
        std::ostringstream text;
        text << in.rdbuf();
        EXPECT_EQ(text.str(), expected) << path << ": run with WM_UPDATE_APPROVED=1, then read the difference";
    };
    compare("README", index_of(units));
    for (const UnitReference& unit : units) compare(std::string(unit.document), document_of(unit));
}

TEST(RegisterReference, Names) {
    const auto only = [](std::string_view name) {
        const auto found = registers_called(name);
        if (!found) return found.error().message;
        if (found->size() != 1) return std::to_string(found->size()) + " registers";
        const NamedRegister& one = found->front();
        std::string out(one.unit.registers.at(0).name);
        out += " at " + one.unit.registers[0].places.at(one.index.value_or(0));
        if (name.find('.') != name.npos)
            for (const FieldReference& f : one.fields) out += " " + std::string(f.name);
        return out;
    };
    constexpr std::string_view none = "no unit has a register with that name; docs/registers/ lists them";
    EXPECT_EQ(only("TRCCONFIGR"), "TRCCONFIGR at 0x010");
    EXPECT_EQ(only("trcconfig"), "TRCCONFIGR at 0x010");
    EXPECT_EQ(only("trcconfigr.bb"), "TRCCONFIGR at 0x010 BB");
    EXPECT_EQ(only("TRCVICTLR.EVENT"), "TRCVICTLR at 0x080 EVENT.TYPE EVENT.SEL");
    EXPECT_EQ(only("TRCACVR3"), "TRCACVR at 0x418");
    EXPECT_EQ(only("TRCACVR16"), "TRCACVR16: " + std::string(none));
    EXPECT_EQ(only("TRCRSCTLR31"), "TRCRSCTLR at 0x27c");
    EXPECT_EQ(only("TRCRSCTLR1"), "TRCRSCTLR1: " + std::string(none));
    EXPECT_EQ(only("ETMACVR16"), "2 registers");
    EXPECT_EQ(only("ETMTECR2"), "ETMTECR2 at register 0x07, offset 0x01c");
    EXPECT_EQ(only("ETMACVR0"), "ETMACVR0: " + std::string(none));
    EXPECT_EQ(only("trcidr5"), "TRCIDR5 at 0x1f4");
    EXPECT_EQ(only("TRCCONFIGR3"), "TRCCONFIGR3: " + std::string(none));
    EXPECT_EQ(only("TRCPRGCTLR.XY"), "TRCPRGCTLR.XY: TRCPRGCTLR has no such field; it has EN");
    EXPECT_EQ(only("PMBSR_EL1.COLL"), "PMBSR_EL1 at S3_0_C9_C10_3 COLL");
    EXPECT_EQ(only("DP_TC.TMODE"), "DP_TC at 0x7c TMODE");
    EXPECT_EQ(only("FFCR.StopOnFl"), "FFCR at 0x304 StopOnFl");
    EXPECT_EQ(only("ITM_TCR"), "ITMTCR at 0xe0000e80");
    EXPECT_EQ(only("ETMCR"), "2 registers");  // of a PTM and of an ETMv3
    EXPECT_EQ(only(""), ": " + std::string(none));
    EXPECT_EQ(only("R"), "R: " + std::string(none));
}

}  // namespace
}  // namespace waymark::doctor
