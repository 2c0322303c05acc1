// The effects of register programs, in words. docs/spec/dpu.md, section 3.
#include "waymark/dpu/program_effects.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace waymark::dpu {
namespace {

RegisterProgram read(const char* text) {
    auto program = read_program(text);
    EXPECT_TRUE(program.has_value()) << program.error().message;
    return program ? std::move(*program) : RegisterProgram();
}

TEST(ProgramEffects, CountingAndTracing) {
    const std::vector<std::string> effects =
        effects_of(read("DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW 0x20000000\n"
                        "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n@5000 DP_TC TMODE=TASK EN=1\n"));
    ASSERT_GE(effects.size(), 3U);
    EXPECT_TRUE(effects[0].starts_with("triad A counts ")) << effects[0];
    EXPECT_TRUE(effects[1].starts_with("trace mode ")) << effects[1];
    EXPECT_TRUE(effects[2].starts_with("the buffer is 0x20000000 to 0x20000fff, 4,096 bytes")) << effects[2];
}

TEST(ProgramEffects, WhatTheProgramChangesLater) {
    EXPECT_EQ(effects_of(read("DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW 0x20000000\n"
                              "DP_TAC TENM=immediate CEG=2 CMODE=trace TCEN=1\n@100 DP_TC TMODE=TASK EN=1\n"
                              "@5000 DP_TAC TENM=immediate CEG=7 CMODE=trace TCEN=1\n@9000 DP_TC TMODE=TASK EN=0\n")),
              (std::vector<std::string>{
                  "from cycle 0 on: triad A counts CYCLES, STALL_ALL, WAIT (stall and wait cycles) and wraps",
                  "from cycle 5000 on: triad A counts DC_HIT, DC_MISS, DC_THRASH (data cache) and wraps",
                  "from cycle 100 on: trace mode TASK",
                  "from cycle 100 on: the buffer is 0x20000000 to 0x20000fff, 4,096 bytes; it wraps",
                  "from cycle 9000 on: tracing is off"}));
}

TEST(ProgramEffects, NothingAtAll) {
    EXPECT_EQ(effects_of(read("DP_TSA 0x20000000\n")),
              (std::vector<std::string>{"no counter has an event set", "tracing is off"}));
}

TEST(ProgramEffects, TheEonceTracesWhatTheModesNeedUnlessItIsSaid) {
    const RegisterProgram program = read("DP_TC TMODE=EONCE_RAW EN=1\n");
    const EonceSetup needed = EonceSetup::for_mode(from_value<DpTc>(program.front().value).mode());
    EXPECT_EQ(config_for(program, {}).eonce.tchof, needed.tchof);
    EXPECT_EQ(config_for(program, {}).eonce.tint, needed.tint);
    const EonceSetup asked = config_for(program, {"TMARK", "TSUB"}).eonce;
    EXPECT_TRUE(asked.tmark && asked.tsub);
    EXPECT_FALSE(asked.tchof || asked.tint || asked.tloop);
}

}  // namespace
}  // namespace waymark::dpu
