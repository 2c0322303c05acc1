// Meanings of exception types (docs/spec/etm4.md, section 9), for each profile.
#include "waymark/etm4/exceptions.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace waymark::etm4 {
namespace {

using flow::ExceptionClass;
using Names = std::map<std::uint32_t, std::string>;

/// The types that are not reserved.
Names known(const Config& config) {
    Names out;
    for (std::uint32_t type = 0; type < exception_types; ++type) {
        const flow::ExceptionType& e = exception_type(type, config);
        EXPECT_EQ(e.number, type);
        EXPECT_EQ(e.known(), e.name != "reserved") << type;
        if (e.known()) out[type] = e.name;
    }
    return out;
}

Config with(CoreProfile profile, std::uint8_t version) {
    Config config;
    config.profile = profile;
    config.version = version;
    return config;
}

TEST(Etm4Exceptions, OfTheAProfile) {
    const Config config = with(CoreProfile::a, 0x40);
    ASSERT_FALSE(config.ete());
    Names expected{{0x00, "PE reset"},     {0x01, "Debug halt"}, {0x02, "Call"},       {0x03, "Trap"},
                   {0x04, "System error"}, {0x06, "Inst debug"}, {0x07, "Data debug"}, {0x0a, "Alignment"},
                   {0x0b, "Inst fault"},   {0x0c, "Data fault"}, {0x0e, "IRQ"},        {0x0f, "FIQ"}};
    for (std::uint32_t n = 0; n < 8; ++n) expected[0x10 + n] = "implementation defined " + std::to_string(n);
    EXPECT_EQ(known(config), expected);
    EXPECT_EQ(exception_type(0x02, config).kind, ExceptionClass::call);
    EXPECT_EQ(exception_type(0x03, config).kind, ExceptionClass::trap);
    EXPECT_EQ(exception_type(0x04, config).kind, ExceptionClass::system_error);
    EXPECT_EQ(exception_type(0x0c, config).kind, ExceptionClass::data_abort);
    EXPECT_EQ(exception_type(0x0e, config).kind, ExceptionClass::irq);
    EXPECT_EQ(exception_type(0x12, config).kind, ExceptionClass::other);
    // An ETE has one more.
    const Config ete = with(CoreProfile::a, 0x50);
    ASSERT_TRUE(ete.ete());
    expected[0x18] = "Transaction failure";
    EXPECT_EQ(known(ete), expected);
    EXPECT_EQ(exception_type(0x18, ete).kind, ExceptionClass::transaction_failure);
}

TEST(Etm4Exceptions, OfTheMProfile) {
    const Config config = with(CoreProfile::m, 0x40);
    Names expected{{0x01, "PE reset"},     {0x02, "NMI"},        {0x03, "HardFault"},   {0x04, "MemManage"},
                   {0x05, "BusFault"},     {0x06, "UsageFault"}, {0x07, "SecureFault"}, {0x0b, "SVC"},
                   {0x0c, "DebugMonitor"}, {0x0e, "PendSV"},     {0x0f, "SysTick"},     {0x18, "Debug halt"},
                   {0x19, "Lazy FP push"}, {0x1a, "Lockup"}};
    for (std::uint32_t n = 0; n < 8; ++n) expected[0x10 + n] = "IRQ" + std::to_string(n);
    for (std::uint32_t type = 0x208; type <= 0x3ef; ++type) expected[type] = "IRQ" + std::to_string(type - 0x200);
    EXPECT_EQ(known(config), expected);
    EXPECT_EQ(exception_type(0x3ef, config).name, "IRQ495");
    EXPECT_EQ(exception_type(0x3ef, config).kind, ExceptionClass::external_interrupt);
    EXPECT_EQ(exception_type(0x01, config).kind, ExceptionClass::reset);
    EXPECT_EQ(exception_type(0x0b, config).kind, ExceptionClass::supervisor_call);
}

}  // namespace
}  // namespace waymark::etm4
