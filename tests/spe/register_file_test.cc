/// Registers as text.
#include "waymark/spe/register_file.h"

#include <gtest/gtest.h>

#include "waymark/spe/registers.h"

namespace waymark::spe::test {
namespace {

using List = std::vector<NamedValue>;

TEST(RegisterFile, values) {
    const std::pair<const char*, std::uint64_t> good[] = {
        {"0", 0},
        {"10", 10},
        {"0x10", 16},
        {"0XfF", 255},
        {"0b101", 5},
        {"0xffff_0000", 0xffff0000},
        {"000000000000006b", 0x6b},
        {"18446744073709551615", ~std::uint64_t{0}},
        {"6b", 0x6b},
        {"ffff000080101000", 0xffff000080101000},
        {"80101001", 80101001},
    };
    for (const auto& [text, value] : good) {
        const auto read = read_value(text);
        ASSERT_TRUE(read) << text << ": " << read.error().message;
        EXPECT_EQ(*read, value) << text;
    }
    for (const char* const text : {"", "x", "0x", "0b2", "-1", "+1", "1.5", "6g", "0x1ffffffffffffffff", " 1"})
        EXPECT_FALSE(read_value(text)) << text;
}

TEST(RegisterFile, settings) {
    EXPECT_EQ(read_setting("pmscr_el12", "0x3").value(), (NamedValue{"PMSCR_EL1", 3}));
    EXPECT_EQ(read_setting("mdcr_el2.e2pb", "0b11").value(), (NamedValue{"MDCR_EL2.E2PB", 3}));
    EXPECT_EQ(read_setting("PMSCR", "1").error().message, "'PMSCR' is not a register that profiling depends on");
    EXPECT_EQ(read_setting("HCR_EL2.TEG", "1").error().message, "HCR_EL2 has no field 'TEG'; it has E2H, TGE");
    EXPECT_EQ(read_setting("MDCR_EL2.E2PB", "4").error().message, "MDCR_EL2.E2PB has 2 bits and does not hold '4'");
    EXPECT_EQ(read_setting("PMBSR_EL1.S", "2").error().message, "PMBSR_EL1.S has 1 bit and does not hold '2'");
    EXPECT_EQ(read_setting("PMBSR_EL1", "on").error().message,
              "PMBSR_EL1: 'on' is not a number of 64 bits (0x for hexadecimal, 0b for binary)");
}

TEST(RegisterFile, dumps) {
    const auto read = read_settings(
        "# a dump\n"
        "PMSCR_EL1.CX = 1\r\n"
        "\n"
        "  PMSCR_EL1\t0x13   [ PA E1SPE E0SPE ]\n"
        "PMBLIMITR_EL1: 0000000000100001\n"
        "x0 0x1234\n"
        "PMBSR_EL1=0; # clear");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->settings,
              (List{{"PMSCR_EL1", 0x13}, {"PMBLIMITR_EL1", 0x100001}, {"PMBSR_EL1", 0}, {"PMSCR_EL1.CX", 1}}));
    EXPECT_EQ(read->unknown, (std::vector<std::string>{"x0"}));
    EXPECT_TRUE(read_settings("").value().settings.empty());
}

TEST(RegisterFile, base) {
    EXPECT_EQ(read_value("80101001", true).value(), 0x80101001U);
    EXPECT_EQ(read_value("0b11", true).value(), 3U);
    EXPECT_EQ(read_value("0x11", true).value(), 0x11U);
    EXPECT_EQ(read_value("0b00000000000001", true).value(), 0xb00000000000001U);
    for (const char* const text : {"10", "80101001", "1_0"}) EXPECT_TRUE(base_unclear(text)) << text;
    for (const char* const text : {"", "0", "9", "09", "0x10", "0b10", "6b", "0000000080101001"})
        EXPECT_FALSE(base_unclear(text)) << text;

    // One unambiguous value determines the radix of all values, wherever it stands.
    const auto dump = read_settings("PMBLIMITR_EL1 80101001\nPMSCR_EL1 3\nPMSIRR_EL1.INTERVAL 10\nPMBPTR_EL1 6b");
    ASSERT_TRUE(dump) << dump.error().message;
    EXPECT_EQ(
        dump->settings,
        (List{{"PMBLIMITR_EL1", 0x80101001}, {"PMSCR_EL1", 3}, {"PMBPTR_EL1", 0x6b}, {"PMSIRR_EL1.INTERVAL", 0x10}}));
    EXPECT_EQ(
        dump->notes,
        (std::vector<std::string>{
            "numbers without 0x are read as hexadecimal, because '6b' can be nothing else: PMBLIMITR_EL1 80101001"}));
    EXPECT_EQ(read_settings("x0 00000000deadbeef\nPMBLIMITR_EL1 10").value().settings[0].value, 0x10U);
    EXPECT_EQ(read_settings("bad bad\nPMBLIMITR_EL1 10").value().settings[0].value, 10U);
    const auto unclear = read_settings("PMBLIMITR_EL1 80101001\nPMSCR_EL1 3\nPMBPTR_EL1 0x80");
    EXPECT_EQ(unclear.value().settings[0].value, 80101001U);
    EXPECT_EQ(unclear.value().notes,
              (std::vector<std::string>{"numbers without 0x are decimal: PMBLIMITR_EL1 80101001"}));
    // JSON's own numbers are decimal.
    const auto json = read_settings(R"({"PMSCR_EL1": "6b", "PMSIRR_EL1": 256, "PMBPTR_EL1": 1000000000000000})");
    EXPECT_EQ(json.value().settings,
              (List{{"PMBPTR_EL1", 1000000000000000}, {"PMSCR_EL1", 0x6b}, {"PMSIRR_EL1", 256}}));
    EXPECT_TRUE(json.value().notes.empty());
}

TEST(RegisterFile, json) {
    const auto read = read_settings(
        R"( {"registers": {"PMSCR_EL1": "0x3", "MDCR_EL2": {"E2PB": "0b11", "TPMS": 0}}, "PSTATE": {"EL": 1}, "TCR_EL1": 5} )");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->settings, (List{{"PMSCR_EL1", 3}, {"PSTATE.EL", 1}, {"MDCR_EL2.E2PB", 3}, {"MDCR_EL2.TPMS", 0}}))
        << read->settings.size();
    EXPECT_EQ(read->unknown, (std::vector<std::string>{"TCR_EL1"}));
}

TEST(RegisterFile, errors) {
    const std::pair<const char*, const char*> wrong[] = {
        {"PMSCR_EL1", "line 1: a name and a value are needed, such as 'PMSCR_EL1 0x6b', not 'PMSCR_EL1'"},
        {"\n= 5", "line 2: a name and a value are needed, such as 'PMSCR_EL1 0x6b', not '5'"},
        {"PMSCR_EL1 6g", "line 1: PMSCR_EL1: '6g' is not a number of 64 bits (0x for hexadecimal, 0b for binary)"},
        {"PMSCR_EL1 1\nPMSCR_EL12 2", "line 2: PMSCR_EL1 is given twice"},
        {"PMBSR_EL1.Q 1", "line 1: PMBSR_EL1 has no field 'Q'; it has MSS2, EC, DL, EA, S, COLL, MSS"},
        {"{", "it begins with a brace but is not JSON"},
        {R"({"PMSCR_EL1": 1, "PMSCR_EL1": 2})", "'PMSCR_EL1' is given twice"},
        {R"({"PMSCR_EL1": 1, "pmscr_el1": 2})", "PMSCR_EL1 is given twice"},
        {R"({"PMSCR_EL1": -1})",
         "the value of 'PMSCR_EL1' is neither a number from 0 up, nor such a number in quotes, nor an object of "
         "fields"},
        {R"({"PMSCR_EL1": [1]})",
         "the value of 'PMSCR_EL1' is neither a number from 0 up, nor such a number in quotes, nor an object of "
         "fields"},
        {R"({"PMSCR_EL1": {"CX": {}}})",
         "the value of 'CX' is neither a number from 0 up, nor such a number in quotes, nor an object of fields"},
        {R"({"PMSCR_EL1": "\u0007"})", "PMSCR_EL1: '?' is not a number of 64 bits (0x for hexadecimal, 0b for binary)"},
    };
    for (const auto& [text, message] : wrong) {
        const auto read = read_settings(text);
        ASSERT_FALSE(read) << text;
        EXPECT_EQ(read.error().code, Errc::bad_format) << text;
        EXPECT_EQ(read.error().message, message) << text;
    }
    EXPECT_EQ(read_settings("\x1f\x8b\x08").error().message, "it is compressed (gzip): unpack it first");
    EXPECT_EQ(read_settings(std::string_view("PMSCR_EL1\0 1", 12)).error().message, "it is not text");
    EXPECT_EQ(read_settings(std::string((1 << 20) + 1, ' ')).error().code, Errc::unsupported);
}

}  // namespace
}  // namespace waymark::spe::test
