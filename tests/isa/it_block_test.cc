// IT blocks: the instructions that depend on them, by the definition of ITSTATE (the mask's lowest set bit ends the
// block).
#include "waymark/isa/it_block.h"

#include <gtest/gtest.h>

#include <string>

namespace waymark::isa {
namespace {

constexpr Fetched plain{.opcode = 0x4408, .bytes = 2, .section = 7};  // add r0, r1

/// How many of the six instructions after an IT instruction are conditional: `yyy...` for an IT block of three.
std::string after(const Fetched& first, Isa isa = Isa::t32) {
    ItBlock block;
    EXPECT_FALSE(block.next(first, isa));
    std::string out;
    for (int i = 0; i < 6; ++i) out += block.next(plain, isa) ? 'y' : '.';
    return out;
}

TEST(ItBlock, CoversOneToFourInstructions) {
    for (unsigned condition = 0; condition < 16; ++condition)
        for (unsigned mask = 0; mask < 16; ++mask) {
            unsigned length = 0;  // the number of shifts of ITSTATE until its mask is 1000 is the length minus one
            for (unsigned m = mask; m != 0; m = m << 1 & 0xf) ++length;
            const std::string covered(condition >= 14 ? 0 : length, 'y');  // AL: no instruction is ever skipped
            EXPECT_EQ(after({.opcode = 0xbf00 | condition << 4 | mask, .bytes = 2, .section = 3}),
                      covered + std::string(6 - covered.size(), '.'))
                << condition << ' ' << mask;
        }
}

TEST(ItBlock, AnItInstructionInsideDoesNotBeginAnother) {
    ItBlock block;
    const Fetched it{.opcode = 0xbf0c, .bytes = 2, .section = 0};  // ite eq
    EXPECT_FALSE(block.next(it, Isa::t32));
    EXPECT_TRUE(block.next(plain, Isa::t32));
    EXPECT_TRUE(block.next(it, Isa::t32));  // which has no defined meaning there
    EXPECT_FALSE(block.next(plain, Isa::t32));
    EXPECT_FALSE(block.next(it, Isa::t32));
    EXPECT_TRUE(block.next(plain, Isa::t32));
}

TEST(ItBlock, OnlyItInstructionsBeginOne) {
    EXPECT_EQ(after({.opcode = 0xbe08, .bytes = 2, .section = 0}), "......");      // bkpt
    EXPECT_EQ(after({.opcode = 0xf3afbf08, .bytes = 4, .section = 0}), "......");  // a 32-bit instruction
    EXPECT_EQ(after({.opcode = 0xbf08, .bytes = 4, .section = 0}), "......");      // only its size is wrong
    EXPECT_EQ(after({.opcode = 0xbf08, .bytes = 2, .section = 0}, Isa::a32), "......");
    EXPECT_EQ(after({.opcode = 0xbf08, .bytes = 2, .section = 0}, Isa::a64), "......");
    EXPECT_EQ(after({.opcode = 0xbf08, .bytes = 2, .section = 0}, Isa::tee), "y.....");
}

}  // namespace
}  // namespace waymark::isa
