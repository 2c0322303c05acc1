/// The text of instructions, and the bytes that they are made of.
#include "waymark/image/disassembly.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "waymark/image/memory_map.h"

namespace waymark::image {
namespace {

std::string disassembled(const std::vector<std::uint8_t>& code, isa::Isa isa, std::uint64_t bytes = 0) {
    MemoryMap map;
    EXPECT_TRUE(map.add_bytes(code, Address{0x8000}).has_value());
    Disassembler disassembler;
    std::string out;
    for (const std::string& line : disassembler.lines(map, {}, 0x8000, bytes != 0 ? bytes : code.size(), isa))
        out += line + "\n";
    return out;
}

TEST(Disassembly, HasAnOpcodeAndATextOfEachInstruction) {
    EXPECT_EQ(disassembled({0xfe, 0xff, 0xff, 0xeb, 0x01, 0x00, 0xa0, 0xe3}, isa::Isa::a32),
              "00008000  ebfffffe   bl #0x8000\n00008004  e3a00001   mov r0, #1\n");
    EXPECT_EQ(disassembled({0x00, 0xbf, 0xff, 0xf7, 0xfe, 0xff, 0x70, 0x47}, isa::Isa::t32),
              "00008000  bf00       nop\n00008002  f7ff fffe  bl #0x8002\n00008006  4770       bx lr\n");
    EXPECT_EQ(disassembled({0x1f, 0x20, 0x03, 0xd5, 0xff, 0xff, 0xff, 0x97}, isa::Isa::a64),
              "00008000  d503201f   nop\n00008004  97ffffff   bl #0x8000\n");
    EXPECT_EQ(disassembled({0x90, 0x48, 0x89, 0xc3, 0xc3}, isa::Isa::x86_64),
              "00008000  90         nop\n00008001  48 89 c3   mov rbx, rax\n00008004  c3         ret\n");
}

TEST(Disassembly, EndsWhereTheCodeEnds) {
    const std::vector<std::uint8_t> two{0x1f, 0x20, 0x03, 0xd5, 0x1f, 0x20, 0x03, 0xd5};
    EXPECT_EQ(disassembled(two, isa::Isa::a64, 4), "00008000  d503201f   nop\n");
    EXPECT_EQ(disassembled(two, isa::Isa::a64, 5), disassembled(two, isa::Isa::a64));
    EXPECT_EQ(disassembled(two, isa::Isa::a64, 100), disassembled(two, isa::Isa::a64)) << "no code is behind it";
    EXPECT_EQ(disassembled({0x1f, 0x20, 0x03}, isa::Isa::a64), "");
    EXPECT_EQ(disassembled({0x48, 0x89}, isa::Isa::x86_64), "");
}

TEST(Disassembly, WhatIsNoInstructionIsItsOpcode) {
    EXPECT_EQ(disassembled({0, 0, 0, 0}, isa::Isa::a64).substr(0, 18), "00008000  00000000");
    MemoryMap map;
    ASSERT_TRUE(map.add_bytes({0x00, 0xbf, 0xff, 0xff, 0xff, 0xff}, Address{0x8000}).has_value());
    Disassembler disassembler;
    EXPECT_EQ(disassembler.text(map, {}, 0x8000, isa::Isa::t32), "nop");
    EXPECT_EQ(disassembler.text(map, {}, 0x8002, isa::Isa::t32), "ffff ffff");
    EXPECT_EQ(disassembler.text(map, {}, 0x9000, isa::Isa::t32), "");
}

}  // namespace
}  // namespace waymark::image
