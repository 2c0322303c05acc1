// The names of cores: each gives its profile in any spelling, and no misspelt name gives one.
#include "waymark/isa/cores.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace waymark::isa {
namespace {

TEST(Cores, GiveTheirProfileHoweverTheyAreWritten) {
    EXPECT_EQ(core_profile("Cortex-M33"), CoreProfile::m);
    EXPECT_EQ(core_profile("cortex_m33"), CoreProfile::m);
    EXPECT_EQ(core_profile("arm,cortex-m0+"), CoreProfile::m);
    EXPECT_EQ(core_profile("CORTEX-R52"), CoreProfile::r);
    EXPECT_EQ(core_profile("Cortex-A53"), CoreProfile::a);
    EXPECT_EQ(core_profile("Cortex-A53_0"), CoreProfile::a) << "one core of several";
    EXPECT_EQ(core_profile("Neoverse-N1"), CoreProfile::a);
    EXPECT_EQ(core_profile("STAR-MC2"), CoreProfile::m) << "the family gives the profile";
    EXPECT_EQ(core_profile("ARMv8.1-M"), CoreProfile::m);
    EXPECT_EQ(core_profile("ARMv7E-M"), CoreProfile::m);
    EXPECT_EQ(core_profile("ARMv8-M.main"), CoreProfile::m);
    EXPECT_EQ(core_profile("armv8-r"), CoreProfile::r);
    EXPECT_EQ(core_profile("ARM-AA64"), CoreProfile::a);
}

TEST(Cores, WithAnUnknownNameHaveNoProfile) {
    for (const char* name :
         {"", "Cortx-M33", "Cortex-N33", "Cortex", "Cortex-M", "M33", "ARMv8", "ARMv-M", "ARMv8-X", "Z80"})
        EXPECT_FALSE(core_profile(name)) << name;
    EXPECT_FALSE(core_profile(std::string(std::size_t{1} << 20, '-')));
}

TEST(Cores, AreEachNamedOnceAndIdentifiedOnce) {
    EXPECT_EQ(core_name(0x41, 0xd0c), "Neoverse N1");
    EXPECT_EQ(core_name(0x41, 0xd21), "Cortex-M33");
    EXPECT_EQ(core_name(0x41, 0xfff), "");
    EXPECT_EQ(core_name(0, 0), "") << "an architecture has no MIDR";
    const std::set<std::string_view> names(core_names().begin(), core_names().end());
    EXPECT_EQ(names.size(), core_names().size());
    std::size_t identified = 0;
    for (std::uint32_t implementer = 0; implementer < 0x100; ++implementer)
        for (std::uint32_t part = 0; part < 0x1000; ++part)
            identified += !core_name(static_cast<std::uint8_t>(implementer), static_cast<std::uint16_t>(part)).empty();
    std::size_t architectures = 0;
    for (const std::string_view name : core_names()) architectures += name.starts_with("ARM");
    EXPECT_EQ(identified + architectures, names.size()) << "two cores have one MIDR";
}

TEST(Cores, AreListedNearestFirstWhereAnotherIsNamed) {
    EXPECT_TRUE(check_core("--core", "cortex-m33").has_value());
    const Status status = check_core("--core", "Cortx-M33");
    ASSERT_FALSE(status.has_value());
    const std::string& message = status.error().message;
    EXPECT_TRUE(
        message.starts_with("--core 'Cortx-M33': no core of that name is known. Known cores, the nearest names first: "
                            "Cortex-M33, "))
        << message;
    for (const std::string_view name : core_names()) EXPECT_NE(message.find(name), message.npos) << name;
}

}  // namespace
}  // namespace waymark::isa
