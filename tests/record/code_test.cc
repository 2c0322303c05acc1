#include "waymark/record/code.h"

#include <gtest/gtest.h>

#include "waymark/record/checks.h"

namespace waymark::record {
namespace {

using isa::Isa;

Definition definition(std::uint64_t address, std::vector<std::uint8_t> bytes, std::uint32_t instructions,
                      std::string text = {}, std::optional<Address> second = {}) {
    return {{address}, std::move(bytes), instructions, second, std::move(text)};
}

TEST(InstructionSet, OddHalfwordIsThumb) {
    EXPECT_EQ(instruction_set(definition(0x8002, {0x00, 0xf0, 0x00, 0xf8}, 1)), Isa::t32);
}

TEST(InstructionSet, TwoByteInstructionIsThumb) {
    EXPECT_EQ(instruction_set(definition(0x8000, {0x00, 0xbf, 0x00, 0xbf}, 2, "nop ", {{0x8002}})), Isa::t32);
}

// b #0x8008 in A32 is 0xea000000; the same bytes in Thumb are two instructions.
TEST(InstructionSet, TextTells) {
    EXPECT_EQ(instruction_set(definition(0x8000, {0x00, 0x00, 0x00, 0xea}, 1, "b #0x8008")), Isa::a32);
    EXPECT_EQ(instruction_set(definition(0x8000, {0x00, 0xf0, 0x02, 0xf8}, 1, "bl #0x8008")), Isa::t32);
}

TEST(InstructionSet, UnknownWithoutText) {
    EXPECT_EQ(instruction_set(definition(0x8000, {0x00, 0xf0, 0x02, 0xf8}, 1)), std::nullopt);
}

TEST(Understand, WaypointsAndSystemCalls) {
    // mov r7, #1; svc #0
    const Code code = understand(definition(0x8000, {0x01, 0x70, 0xa0, 0xe3, 0, 0, 0, 0xef}, 2), Isa::a32, {});
    ASSERT_EQ(code.instructions.size(), 2U);
    EXPECT_EQ(code.instructions[1].special, Special::system_call);
    EXPECT_TRUE(code.waypoints.empty());
    EXPECT_EQ(code.end(), Address{0x8008});
}

// QEMU gives the 16-bit instruction at 0x8ffc (bx lr) with the two bytes after it.
TEST(Understand, SizeBeforePageEnd) {
    const Code code = understand(definition(0x8ffc, {0x70, 0x47, 0x00, 0xbf}, 1), Isa::t32, {});
    ASSERT_EQ(code.instructions.size(), 1U);
    EXPECT_EQ(code.instructions[0].bytes, 2);
    EXPECT_EQ(code.end(), Address{0x8ffe});
    ASSERT_EQ(code.waypoints.size(), 1U);
    EXPECT_EQ(code.waypoints[0].instruction.waypoint, isa::Waypoint::indirect);
}

TEST(Understand, CutShortCodeEndsBefore) {
    EXPECT_TRUE(understand(definition(0x8000, {0x00, 0xf0}, 1), Isa::t32, {}).instructions.empty());
    EXPECT_TRUE(understand(definition(0x8000, {}, 1), Isa::a32, {}).instructions.empty());
}

TEST(Checks, WhatMayStop) {
    EXPECT_TRUE(may_stop_arm(0xe5912000));     // ldr r2, [r1]
    EXPECT_TRUE(may_stop_arm(0xe8bd8010));     // pop {r4, pc}
    EXPECT_TRUE(may_stop_arm(0xe1d100b0));     // ldrh r0, [r1]
    EXPECT_TRUE(may_stop_arm(0xed910a00));     // vldr s0, [r1]
    EXPECT_FALSE(may_stop_arm(0xe0810002));    // add r0, r1, r2
    EXPECT_FALSE(may_stop_arm(0xe6ef0071));    // uxtb r0, r1
    EXPECT_FALSE(may_stop_arm(0xea000000));    // b
    EXPECT_TRUE(may_stop_thumb(0x6808));       // ldr r0, [r1]
    EXPECT_TRUE(may_stop_thumb(0xbd10));       // pop {r4, pc}
    EXPECT_TRUE(may_stop_thumb(0x4b67));       // ldr r3, [pc]
    EXPECT_TRUE(may_stop_thumb(0x3b04f850));   // ldr r3, [r0], #4
    EXPECT_FALSE(may_stop_thumb(0xf838f019));  // bl
    EXPECT_FALSE(may_stop_thumb(0x4288));      // cmp
    EXPECT_FALSE(may_stop_thumb(0xb083));      // sub sp
}

TEST(Checks, Accesses) {
    EXPECT_EQ(accesses_of(0xe8bd8010, false), 2U);  // pop {r4, pc}
    EXPECT_EQ(accesses_of(0xe59ff000, false), 1U);  // ldr pc
    EXPECT_EQ(accesses_of(0xbd13, true), 4U);       // pop {r0, r1, r4, pc}
    EXPECT_EQ(accesses_of(0x81f0e8bd, true), 6U);   // pop.w {r4-r8, pc}
    EXPECT_EQ(accesses_of(0x6808, true), 1U);
}

TEST(Checks, AtomicAccesses) {
    EXPECT_TRUE(may_be_atomic(0xe1812f90, false));   // strex r2, r0, [r1]
    EXPECT_TRUE(may_be_atomic(0xe1912f9f, false));   // ldrex r2, [r1]
    EXPECT_TRUE(may_be_atomic(0xe1a12f90, false));   // strexd r2, r0, r1, [r1]
    EXPECT_TRUE(may_be_atomic(0xe1012090, false));   // swp r2, r0, [r1]
    EXPECT_FALSE(may_be_atomic(0xe1d100b0, false));  // ldrh r0, [r1]
    EXPECT_FALSE(may_be_atomic(0xe0010192, false));  // mul r1, r2, r1
    EXPECT_TRUE(may_be_atomic(0x0200e841, true));    // strex r2, r0, [r1]
    EXPECT_TRUE(may_be_atomic(0x0f42e8c1, true));    // strexb r2, r0, [r1]
    EXPECT_FALSE(may_be_atomic(0x0102e9c1, true));   // strd r0, r1, [r1, #8]
    EXPECT_FALSE(may_be_atomic(0x41f0e8bd, true));   // pop.w
}

}  // namespace
}  // namespace waymark::record
