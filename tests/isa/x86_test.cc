#include "waymark/isa/x86.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace waymark::isa {
namespace {

using Code = std::vector<std::uint8_t>;

Instruction decoded(const Code& code, std::uint64_t address = 0x1000) {
    const auto found = decode_x86_instr({address}, code);
    EXPECT_TRUE(found.has_value());
    return found.value_or(Instruction{});
}

TEST(X86, Lengths) {
    // By the opcode maps of the architecture: prefixes, ModRM, SIB, displacements, constants; VEX, EVEX, XOP.
    const std::vector<Code> codes{
        {0x90},                                                                       // nop
        {0x48, 0x89, 0xe5},                                                           // mov %rsp,%rbp
        {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},                                // nopw %cs:0(%rax,%rax)
        {0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8},                                         // movabs $…,%rax
        {0x66, 0xb8, 1, 2},                                                           // mov $…,%ax
        {0xa1, 1, 2, 3, 4, 5, 6, 7, 8},                                               // movabs …,%eax
        {0x67, 0xa1, 1, 2, 3, 4},                                                     // addr32 mov
        {0x8b, 0x04, 0x25, 1, 2, 3, 4},                                               // mov 0x…,%eax
        {0x8b, 0x05, 1, 2, 3, 4},                                                     // mov …(%rip),%eax
        {0x8b, 0x44, 0x24, 8},                                                        // mov 8(%rsp),%eax
        {0x81, 0x7d, 0xfc, 1, 2, 3, 4},                                               // cmpl $…,-4(%rbp)
        {0x66, 0x81, 0x7d, 0xfc, 1, 2},                                               // cmpw
        {0xf6, 0x45, 0xff, 1},                                                        // testb $1,-1(%rbp)
        {0xf6, 0xd8},                                                                 // neg %al
        {0xf7, 0xc1, 1, 2, 3, 4},                                                     // test $…,%ecx
        {0xf7, 0xf9},                                                                 // idiv %ecx
        {0xc8, 1, 2, 3},                                                              // enter
        {0x0f, 0x05},                                                                 // syscall
        {0x0f, 0xa2},                                                                 // cpuid
        {0x0f, 0xc8},                                                                 // bswap
        {0x0f, 0x22, 0xc0},                                                           // mov %rax,%cr0
        {0x0f, 0xba, 0xe0, 3},                                                        // bt $3,%eax
        {0x66, 0x0f, 0x3a, 0x0f, 0xc1, 8},                                            // palignr $8
        {0x66, 0x0f, 0x38, 0x00, 0xc1},                                               // pshufb
        {0xc5, 0xf8, 0x77},                                                           // vzeroupper
        {0xc5, 0xf9, 0x70, 0xc1, 0x4e},                                               // vpshufd $78
        {0xc4, 0xe2, 0x71, 0x00, 0xc1},                                               // vpshufb
        {0xc4, 0xe3, 0x71, 0x0f, 0xc1, 8},                                            // vpalignr $8
        {0x62, 0xf1, 0x7c, 0x48, 0x10, 0x40, 1},                                      // vmovups 64(%rax),%zmm0
        {0x62, 0xf3, 0x75, 0x48, 0x25, 0xc2, 0xff},                                   // vpternlogd $255
        {0x8f, 0xe8, 0x78, 0xc2, 0xc1, 3},                                            // vprotd $3 (XOP)
        {0x8f, 0x00},                                                                 // pop (%rax)
        {0xf3, 0x0f, 0x1e, 0xfa},                                                     // endbr64
        {0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0},                                // mov %fs:0x28,%rax
        {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},  // the longest
    };
    for (const Code& code : codes) {
        Code more = code;
        more.resize(more.size() + 16, 0x90);
        EXPECT_EQ(decoded(more).bytes, code.size()) << std::hex << +code[0] << ' ' << +code.back();
        EXPECT_EQ(decoded(more).waypoint, Waypoint::none);
        for (std::size_t n = 0; n < code.size(); ++n)
            if (const auto cut = decode_x86_instr({0}, Bytes(code).first(n))) {
                EXPECT_LE(cut->bytes, n);
            }
    }
}

TEST(X86, Branches) {
    const auto is_direct = [](const Code& code, std::uint64_t target, bool conditional, bool link) {
        const Instruction i = decoded(code);
        EXPECT_EQ(i.bytes, code.size());
        EXPECT_EQ(i.waypoint, Waypoint::direct);
        EXPECT_EQ(i.target.value, target);
        EXPECT_EQ(i.target_isa, Isa::x86_64);
        EXPECT_EQ(i.conditional, conditional);
        EXPECT_EQ(i.link, link);
    };
    is_direct({0x74, 0xfe}, 0x1000, true, false);
    is_direct({0xe3, 0x02}, 0x1004, true, false);
    is_direct({0x0f, 0x85, 0xfa, 0xff, 0xff, 0xff}, 0x1000, true, false);
    is_direct({0xeb, 0x10}, 0x1012, false, false);
    is_direct({0xe9, 0, 1, 0, 0}, 0x1105, false, false);
    is_direct({0xf2, 0xe9, 0, 1, 0, 0}, 0x1106, false, false);
    is_direct({0xe8, 0xfb, 0xff, 0xff, 0xff}, 0x1000, false, true);
    const auto is_indirect = [](const Code& code, bool link, bool returns, bool from_kernel) {
        const Instruction i = decoded(code);
        EXPECT_EQ(i.bytes, code.size());
        EXPECT_EQ(i.waypoint, Waypoint::indirect);
        EXPECT_EQ(i.link, link);
        EXPECT_EQ(i.function_return, returns);
        EXPECT_EQ(i.exception_return, from_kernel);
    };
    is_indirect({0xc3}, false, true, false);
    is_indirect({0xc2, 8, 0}, false, true, false);
    is_indirect({0xf3, 0xc3}, false, true, false);
    is_indirect({0xff, 0xd0}, true, false, false);
    is_indirect({0xff, 0x25, 1, 2, 3, 4}, false, false, false);
    is_indirect({0x3e, 0xff, 0xe0}, false, false, false);
    is_indirect({0x48, 0x0f, 0x07}, false, false, true);
    is_indirect({0x48, 0xcf}, false, false, true);
    EXPECT_TRUE(decoded({0x0f, 0x0b}).undefined);
    EXPECT_EQ(decode_x86_instr({0}, Code{0x06}), std::nullopt);
    EXPECT_EQ(decode_x86_instr({0}, Code{}), std::nullopt);
}

TEST(X86, AnyBytesEnd) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 200'000; ++round) {
        Code code(random() % 20);
        for (std::uint8_t& byte : code) byte = static_cast<std::uint8_t>(random());
        if (const auto found = decode_x86_instr({0}, code)) {
            EXPECT_GE(found->bytes, 1);
            EXPECT_LE(found->bytes, std::min(code.size(), longest_x86_instr));
        }
    }
}

}  // namespace
}  // namespace waymark::isa
