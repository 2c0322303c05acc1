/// Registers: places of fields, offsets, unwritable values; programs as text.
#include "waymark/dpu/registers.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "waymark/dpu/events.h"
#include "waymark/dpu/register_program.h"

namespace waymark::dpu {
namespace {

/// `TIDCM 29:28` and so on, as section 3 draws the register.
std::string drawn(std::uint32_t offset) {
    std::string out;
    for (const Field& f : Registers().fields(offset)) {
        if (f.reserved()) continue;
        if (!out.empty()) out += ", ";
        out += std::string(f.name) + " " + std::to_string(f.hi);
        if (f.hi != f.lo) out += "-" + std::to_string(f.lo);
    }
    return out;
}

// Requirements: R79 R81 R82 R83 R84 R85 R86 R87 R88 R89 R90 R91 R92 R93 R94 R95 R96
TEST(DpuRegisters, FieldsStandWhereTheSpecificationHasThem) {
    EXPECT_EQ(drawn(DpCr::offset),
              "TIDCM 29-28, ISEDCA5 27-26, ISEDCA4 25-24, ISEDCA3 23-22, ISEDCA2 21-20, ISEDCA1 19-18, ISEDCA0 17-16, "
              "EIS 15-14, DETB 13-12, DECB2 11-10, DECB1 9-8, DECB0 7-6, DECA2 5-4, DECA1 3-2, DECA0 1-0");
    EXPECT_EQ(drawn(DpSr::offset), "TWBA 6, ENCB2 5, ENCB1 4, ENCB0 3, ENCA2 2, ENCA1 1, ENCA0 0");
    EXPECT_EQ(drawn(DpMr::offset),
              "TLOST 11, TWRAP 10, TBF 9, DRA 8, DRN 7, DRTB 6, DRCB2 5, DRCB1 4, DRCB0 3, DRCA2 2, DRCA1 1, DRCA0 0");
    for (const std::uint32_t offset : {DpRpid::offset, DpRdid::offset}) EXPECT_EQ(drawn(offset), "value 7-0");
    for (const std::uint32_t offset : {DpTac::offset, DpTbc::offset})
        EXPECT_EQ(drawn(offset),
                  "TDMP 29-28, TDM 27-24, TENMP 21-20, TENM 19-16, CEGP 13-12, CEG 8-4, CMODE 2-1, TCEN 0");
    for (const std::uint32_t offset : {0x2cU, 0x34U, 0x3cU, 0x54U, 0x5cU, 0x64U}) {
        EXPECT_EQ(drawn(offset), "DMP 29-28, DM 27-24, ENMP 21-20, ENM 19-16, CEGP 13-12, CEG 8-4, CMODE 2-1");
        EXPECT_EQ(drawn(offset + 4), "value 30-0");
    }
    EXPECT_EQ(
        drawn(DpTc::offset),
        "NXMODE 25-24, PROV 21, GLOBAL 20-19, BURST-SIZE 17-16, TMPDIS 12, IDFLT 11, CTXEN 10, VTBWM 9-8, UDEN 7, "
        "SAMPLE 6, TIDS 5, TMODE 4-1, EN 0");
    for (const std::uint32_t offset : {DpTsa::offset, DpTea::offset, DpTw::offset})
        EXPECT_EQ(drawn(offset), "value 31-5");
    for (const std::uint32_t offset : {DpTer::offset, DpTd::offset}) EXPECT_EQ(drawn(offset), "value 31-0");
}

TEST(DpuRegisters, OffsetsNamesAndValues) {
    std::string all;
    std::set<std::uint32_t> offsets;
    for (std::uint32_t offset = 0; offset < 0x300; ++offset) {
        const auto about = Registers::find(offset);
        if (!about) continue;
        offsets.insert(offset);
        EXPECT_EQ(Registers::find(about->name)->offset, offset);
        EXPECT_EQ(Registers::find(about->name.substr(3))->offset, offset);
        Registers r;
        EXPECT_EQ(r.get(offset), 0U) << about->name;
        EXPECT_TRUE(r.set(offset, 0xffffffff));
        EXPECT_EQ(r.get(offset), 0xffffffffU) << about->name;
    }
    EXPECT_EQ(offsets,
              (std::set<std::uint32_t>{0x00, 0x04, 0x08, 0x0c, 0x10, 0x20, 0x24, 0x2c, 0x30, 0x34, 0x38, 0x3c, 0x40,
                                       0x54, 0x58, 0x5c, 0x60, 0x64, 0x68, 0x7c, 0x80, 0x84, 0x88, 0x8c, 0x90}));
    EXPECT_FALSE(Registers::find("DP_NONE"));
    EXPECT_TRUE(Registers::find("dp_tc"));
}

TEST(DpuRegisters, WrongValuesAreNamed) {
    EXPECT_EQ(wrong_value(DpTc::offset, 0x00200085), "");
    const auto says = [](std::uint32_t offset, std::uint32_t value, std::string_view part) {
        const std::string wrong = wrong_value(offset, value);
        EXPECT_NE(wrong.find(part), wrong.npos) << wrong;
    };
    says(DpTc::offset, 1U << 13, "DP_TC has reserved[15:13] = 0x1; write 0 there");
    says(DpTc::offset, 9U << 1, "TMODE 9 is reserved");
    says(DpTc::offset, 3U << 8, "VTBWM 3 is reserved");
    says(DpTac::offset, 21U << 4, "CEG 21 is reserved");
    says(DpCa0c::offset, 2U << 1, "CMODE 2 is reserved");
    says(DpCa0c::offset, 10U << 16, "ENM 10 is reserved");
    says(DpCa0c::offset, 1, "reserved[0]");
    says(DpTw::offset, 0x20000004, "write 0x20000000");
    says(DpSr::offset, 0, "can only be read");
    says(0x14, 0, "there is no register at 0x14");
    says(0x7e, 0, "multiples of 4");
}

// Requirements: R4 R97 R107 R118
TEST(DpuEvents, SetsAreThoseOfSectionEight) {
    std::string all;
    for (unsigned ceg = 0; ceg < event_sets; ++ceg) {
        all += std::to_string(ceg);
        for (const EventWire wire : event_set(ceg)) {
            all += " " + std::string(name(wire));
            if (wire != EventWire::none) {
                EXPECT_EQ(event_wire(name(wire)), wire);
            }
        }
        all += "\n";
    }
    EXPECT_EQ(all,
              "0 – – –\n1 CYCLES VLES WAIT\n2 CYCLES STALL_ALL WAIT\n3 STALL_PROG STALL_DATA STALL_INTERLOCK\n"
              "4 STALL_COF STALL_WB STALL_BANK\n5 IC_HIT IC_MISS IC_THRASH\n6 IC_HIT IC_PFHIT IC_MISS\n"
              "7 DC_HIT DC_MISS DC_THRASH\n8 DC_HIT DC_PFHIT DC_MISS\n9 DC_MISS DC_WBACK STALL_WB\n"
              "10 BUS_BUSY BUS_WAIT BUS_IDLE\n11 CONT_XAXB CONT_PD CONT_EXT\n12 TASK_ACTIVE TASK_TOTAL TASK_IN\n"
              "13 INT EXC TASKSW\n14 CYCLES INT WAIT\n15 TWB_LOW TWB_HIGH TRACE_LOST\n16 EDCA0 EDCA1 EDCA2\n"
              "17 EDCA3 EDCA4 EDCA5\n18 MARK DEBUGEV CYCLES\n19 L2_HIT L2_MISS L2_STALL\n20 EXT0 EXT1 CYCLES\n");
    EXPECT_EQ(event_set(31), event_set(0));
    EXPECT_FALSE(event_wire("NOTHING"));
}

std::string error_of(std::string_view text) {
    const auto program = read_program(text);
    return program ? "none" : program.error().message;
}

TEST(DpuRegisterProgram, LinesOfBothKinds) {
    const auto program = read_program(
        "# set-up\n\nDP_TSA 0x20000000\r\n  tea = 0x20000060\nDP_TW: 0b100000\n"
        "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1  # as 0x000f0023\n0x24 0x000F0073\n"
        "@5000 DP_TC PROV=1 UDEN=1 TMODE=task EN=1\n"
        R"({"register": "DP_TD", "value": "0xcafe0001"})"
        "\n"
        R"({"at": 6000, "register": "DP_TC", "fields": {"TMPDIS": true, "BURST-SIZE": 3}})"
        "\n");
    ASSERT_TRUE(program) << program.error().message;
    const RegisterProgram expected{{0, DpTsa::offset, 0x20000000, 3},   {0, DpTea::offset, 0x20000060, 4},
                                   {0, DpTw::offset, 0x20, 5},          {0, DpTac::offset, 0x000f0023, 6},
                                   {0, DpTbc::offset, 0x000f0073, 7},   {5000, DpTc::offset, 0x00200085, 8},
                                   {5000, DpTd::offset, 0xcafe0001, 9}, {6000, DpTc::offset, 0x00031000, 10}};
    EXPECT_EQ(*program, expected);
    EXPECT_EQ(*read_program(to_text(*program)), expected);
}

TEST(DpuRegisterProgram, WrongLinesAreExplained) {
    EXPECT_EQ(error_of("\nDP_XX 1"), "line 2: 'DP_XX' is not a register of the unit; it has " + Registers::names());
    EXPECT_EQ(error_of("DP_SR 1"), "line 1: DP_SR can only be read");
    EXPECT_EQ(error_of("DP_TC"), "line 1: 'DP_TC' has no value");
    EXPECT_EQ(error_of("DP_TC 0x100000000"),
              "line 1: DP_TC needs a number of 32 bits, such as 0x00200085, or fields such as NXMODE=1, not "
              "'0x100000000'");
    EXPECT_EQ(error_of("DP_TC EN=2"), "line 1: DP_TC.EN has 1 bit, which cannot contain '2'");
    EXPECT_EQ(error_of("DP_TC EN=1 EN=0"), "line 1: DP_TC.EN is given twice");
    EXPECT_EQ(error_of("DP_TC EN=1 7"), "line 1: a field is written as in EN=1, not '7'");
    EXPECT_EQ(error_of("DP_TC 7 EN=1"), "line 1: 'EN=1' follows the value; write one register on a line");
    EXPECT_EQ(error_of("DP_TAC ENABLE=1"),
              "line 1: DP_TAC has no field 'ENABLE'; it has TDMP, TDM, TENMP, TENM, CEGP, CEG, CMODE, TCEN");
    EXPECT_EQ(error_of("DP_TAC CMODE=wrap"),
              "line 1: DP_TAC.CMODE wants a number, or one of one-shot, trace, not 'wrap'");
    EXPECT_EQ(error_of("@9 DP_TD 1\n@8 DP_TD 1"),
              "line 2: cycle 8 lies before cycle 9 of an earlier write; put writes in order of their cycles");
    EXPECT_EQ(error_of("@x DP_TD 1"), "line 1: a cycle is written as in @5000, not '@x'");
    EXPECT_EQ(error_of("{"), "line 1: the line begins with a brace but is no JSON object");
    EXPECT_EQ(error_of(R"({"register": "DP_TD"})"), "line 1: a write has either 'value' or 'fields'");
    EXPECT_EQ(error_of(R"({"register": "DP_TD", "register": "DP_TC", "value": 1})"),
              "line 1: 'register' is given twice");
    EXPECT_EQ(error_of(R"({"name": "DP_TD"})"),
              "line 1: 'name' is not a key of a write; the keys are at, register, value, fields");
    EXPECT_EQ(error_of(R"({"register": "DP_TD", "value": -1})"),
              "line 1: 'value' is neither a number from 0 up nor text");
}

std::vector<std::string> diagnosed(std::string_view text, TraceMode eonce_for = TraceMode::flow) {
    const auto program = read_program(text);
    EXPECT_TRUE(program);
    ModelConfig config;
    config.eonce = EonceSetup::for_mode(eonce_for);
    std::vector<std::string> out;
    if (program)
        for (const Diagnosis& d : diagnose(*program, config))
            out.push_back((d.doubtful ? "doubtful " : "") + std::to_string(d.line) + ": " + d.message.substr(0, 50));
    return out;
}

TEST(DpuRegisterProgram, ProgramsThatCannotWorkAreDiagnosed) {
    const std::string buffer = "DP_TSA 0x1000\nDP_TEA 0x1fe0\nDP_TW 0x1000\n";
    const std::string counters = "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n";
    EXPECT_TRUE(diagnosed(buffer + counters + "DP_TC TMODE=FLOW EN=1").empty());
    EXPECT_EQ(diagnosed(buffer + counters + "DP_TC TMODE=FLOW EN=1", TraceMode::task),
              std::vector<std::string>{"5: TMODE FLOW traces interrupts, calls and returns; t"});
    EXPECT_EQ(diagnosed("DP_TSA 0x2000\nDP_TEA 0x1fe0\nDP_TC TMODE=FLOW EN=1").at(0),
              "3: EN stays 0: the trace buffer ends at DP_TEA 0x1fe0");
    EXPECT_EQ(diagnosed("DP_TSA 0x1000\nDP_TEA 0x1fe0\nDP_TC TMODE=FLOW EN=1").at(0),
              "3: EN stays 0: DP_TW 0x0 lies outside the trace buffe");
    EXPECT_EQ(diagnosed(buffer + "DP_TC TMODE=FLOW EN=1\n@100000000000 DP_TC TMODE=TASK EN=1").at(0),
              "5: TMODE, VTBWM, TIDS and NXMODE cannot change while ");
    EXPECT_EQ(diagnosed(buffer + "DP_TC TMODE=FLOW EN=1\n@5 DP_TC 0\nDP_TC TMODE=FLOW EN=1").at(0),
              "6: tracing is still being closed; wait for DP_SR.TWBA");
    EXPECT_EQ(diagnosed(buffer + "DP_TC TMODE=FLOW SAMPLE=1\nDP_TAC TENM=immediate").at(0),
              "4: SAMPLE does nothing now: it needs EN = 1, TMPDIS =");
    EXPECT_EQ(diagnosed(buffer + "DP_CA0C ENM=immediate CEG=1\nDP_CA0V 5\nDP_TC TMODE=FLOW EN=1\n@2 DP_CA0V 7").at(0),
              "7: counter A0 is counting and traced; differences acr");
    EXPECT_EQ(diagnosed("DP_TAC CEG=1").at(0), "0: the program turns on neither counters nor tracing;");
    EXPECT_EQ(diagnosed("").at(0), "0: the program turns on neither counters nor tracing;");
}

TEST(DpuRegisterProgram, ProgramsThatHardlyMeanItAreDiagnosed) {
    const std::string buffer = "DP_TSA 0x1000\nDP_TEA 0x1fe0\nDP_TW 0x1000\n";
    const std::string counters = "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n";
    const std::vector<std::string> none{"doubtful 0: no counter is enabled, so every reading in the tra"};
    EXPECT_EQ(diagnosed(buffer + "DP_TC TMODE=FLOW EN=1"), none);
    EXPECT_EQ(diagnosed(buffer + "DP_TAC CEG=2 CMODE=trace TCEN=1\nDP_TC TMODE=FLOW EN=1"), none) << "no TENM";
    EXPECT_EQ(diagnosed(buffer + "DP_TAC TENM=immediate TCEN=1\nDP_TC TMODE=FLOW EN=1"), none) << "no event set";
    EXPECT_EQ(diagnosed(buffer + "DP_TAC TENM=immediate CEG=2\nDP_TC TMODE=FLOW EN=1"), none)
        << "without TCEN each counter has its own register";
    EXPECT_TRUE(diagnosed(buffer + "DP_CA0C ENM=immediate CEG=2\nDP_TC TMODE=FLOW EN=1").empty());
    EXPECT_TRUE(diagnosed(buffer + "DP_TC TMODE=USER EN=1").empty()) << "entries without counters";
    EXPECT_EQ(diagnosed(counters + "DP_TC TMODE=FLOW EN=1").at(0),
              "2: EN is written 1 before DP_TEA and DP_TW, so the tr");
    EXPECT_EQ(diagnosed(counters + "DP_TC TMODE=FLOW EN=1\n" + buffer).at(0),
              "2: EN is written 1 before DP_TEA and DP_TW, so the tr");
    EXPECT_EQ(diagnosed(counters + "DP_TC TMODE=FLOW VTBWM=single-address EN=1").at(0),
              "2: EN is written 1 before DP_TW, so every line goes t");
    EXPECT_TRUE(diagnosed(counters + "DP_TC TMODE=FLOW NXMODE=only EN=1").empty()) << "nothing goes to the buffer";
    EXPECT_EQ(diagnosed(buffer + counters + "DP_TER 0x3000\nDP_TC TMODE=FLOW VTBWM=trace-event-request EN=1").at(0),
              "doubtful 6: DP_TER 0x3000 lies outside the trace buffer of 0x1");
    EXPECT_EQ(diagnosed("DP_TSA 0x1000\nDP_TEA 0x1fff\nDP_TW 0x1000\n" + counters + "DP_TC TMODE=FLOW EN=1").at(0),
              "2: DP_TEA is the address of a line of 32 bytes; bits ");
}

}  // namespace
}  // namespace waymark::dpu
