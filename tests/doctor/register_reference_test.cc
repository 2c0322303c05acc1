#include "waymark/doctor/register_reference.h"

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
            EXPECT_FALSE(r.place.empty()) << r.name;
            for (const FieldReference& f : r.fields) {
                EXPECT_FALSE(f.meaning.empty()) << unit.title << ": " << r.name << "." << f.name;
                EXPECT_TRUE(f.lo <= f.hi && f.hi < r.bits) << r.name << "." << f.name;
            }
        }
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
        const std::vector<NamedRegister> found = registers_called(name);
        return found.size() == 1 ? std::string(found[0].unit.registers.at(0).name) + "." + std::string(found[0].field)
                                 : std::to_string(found.size()) + " registers";
    };
    EXPECT_EQ(only("TRCCONFIGR"), "TRCCONFIGR.");
    EXPECT_EQ(only("trcconfig"), "TRCCONFIGR.");
    EXPECT_EQ(only("trcconfigr.bb"), "TRCCONFIGR.BB");
    EXPECT_EQ(only("TRCACVR3"), "TRCACVR.");
    EXPECT_EQ(only("trcidr5"), "TRCIDR5.");
    EXPECT_EQ(only("TRCCONFIGR3"), "0 registers");
    EXPECT_EQ(only("TRCCONFIGR.XY"), "0 registers");
    EXPECT_EQ(only("PMBSR_EL1.COLL"), "PMBSR_EL1.COLL");
    EXPECT_EQ(only("DP_TC.TMODE"), "DP_TC.TMODE");
    EXPECT_EQ(only("FFCR.StopOnFl"), "FFCR.StopOnFl");
    EXPECT_EQ(only("ETMCR"), "2 registers");  // of a PTM and of an ETMv3
    EXPECT_EQ(only(""), "0 registers");
    EXPECT_EQ(only("R"), "0 registers");
}

}  // namespace
}  // namespace waymark::doctor
