// Walks over known code: assembled by arm-linux-gnueabihf-as, listed by objdump.
#include "waymark/follow/walk.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/synthetic.h"

namespace waymark::follow {
namespace {

//  8000:  e92d4010  push {r4, lr}           801c:  b580       push {r7, lr}
//  8004:  e1a04000  mov r4, r0              801e:  f241 2334  movw r3, #4660
//  8008:  e3500000  cmp r0, #0              8022:  18c0       adds r0, r0, r3
//  800c:  0a000001  beq 8018                8024:  f000 f806  bl 8034
//  8010:  fa000001  blx 801c                8028:  f3bf 8f5b  dmb ish
//  8014:  e0800004  add r0, r0, r4          802c:  b100       cbz r0, 8030
//  8018:  e8bd8010  pop {r4, pc}            802e:  3801       subs r0, #1
//                                           8030:  de00       udf #0
//                                           8034:  e12fff1e   bx lr
constexpr std::uint64_t base = 0x8000;
const std::vector<std::uint8_t> code{0x10, 0x40, 0x2d, 0xe9, 0x00, 0x40, 0xa0, 0xe1, 0x00, 0x00, 0x50, 0xe3,  //
                                     0x01, 0x00, 0x00, 0x0a, 0x01, 0x00, 0x00, 0xfa, 0x04, 0x00, 0x80, 0xe0,  //
                                     0x10, 0x80, 0xbd, 0xe8, 0x80, 0xb5, 0x41, 0xf2, 0x34, 0x23, 0xc0, 0x18,  //
                                     0x00, 0xf0, 0x06, 0xf8, 0xbf, 0xf3, 0x5b, 0x8f, 0x00, 0xb1, 0x01, 0x38,  //
                                     0x00, 0xde, 0x00, 0x00, 0x1e, 0xff, 0x2f, 0xe1};

synthetic::Memory memory() {
    synthetic::Memory m;
    m.sections.push_back({0x100, {0}});
    m.sections.push_back({base, code});
    return m;
}

Walk from(std::uint64_t address, Isa isa, const WalkRules& rules = {}) {
    return walk(memory(), {}, {{address}, isa}, rules);
}
Walk up_to(std::uint64_t address, Isa isa, std::uint64_t to, Stop stop, const WalkRules& rules = {}) {
    return walk_to(memory(), {}, {{address}, isa}, {to}, stop, rules);
}

TEST(Walk, EndsBehindTheNextWaypoint) {
    const Walk a32 = from(0x8000, Isa::a32);
    EXPECT_EQ(a32.end, WalkEnd::waypoint);
    EXPECT_EQ(a32.last, Address{0x800c});
    EXPECT_EQ(a32.after, Address{0x8010});
    EXPECT_EQ(a32.instruction.target, Address{0x8018});
    EXPECT_EQ(a32.block(), (flow::Block{.start = 0x8000,
                                        .target = 0x8018,
                                        .bytes = 16,
                                        .instructions = 4,
                                        .section = 1,
                                        .isa = Isa::a32,
                                        .end = flow::End::direct,
                                        .last_bytes = 4,
                                        .flags = flow::Block::conditional}));

    const Walk t32 = from(0x801c, Isa::t32);
    EXPECT_EQ(t32.block(), (flow::Block{.start = 0x801c,
                                        .target = 0x8034,
                                        .bytes = 12,
                                        .instructions = 4,
                                        .section = 1,
                                        .isa = Isa::t32,
                                        .end = flow::End::direct,
                                        .last_bytes = 4,
                                        .flags = flow::Block::link}));
}

/// The branch at the end of a walk from the n-th of these halfwords on.
bool always(const std::vector<std::uint16_t>& halfwords, std::size_t first, Isa isa = Isa::t32) {
    synthetic::Memory m;
    auto& bytes = m.sections.emplace_back(synthetic::Memory::Section{base, {}}).bytes;
    for (const std::uint16_t h : halfwords) {
        bytes.push_back(static_cast<std::uint8_t>(h));
        bytes.push_back(static_cast<std::uint8_t>(h >> 8));
    }
    const Walk w = walk(m, {}, {{base + 2 * first}, isa}, {});
    EXPECT_EQ(w.end, WalkEnd::waypoint);
    return always_taken(w, m, {});
}

TEST(Walk, KnowsBranchesThatAreAlwaysTaken) {
    EXPECT_TRUE(always({0xff1e, 0xe12f}, 0, Isa::a32));   // bx lr
    EXPECT_FALSE(always({0xff1e, 0x112f}, 0, Isa::a32));  // bxne lr
    EXPECT_TRUE(always({0x0002, 0xea00}, 0, Isa::a32));   // b
    EXPECT_FALSE(always({0xffff, 0xeaff}, 0, Isa::a32));  // b to the next instruction
    EXPECT_TRUE(always({0x0002, 0x1400}, 0, Isa::a64));   // b
    EXPECT_FALSE(always({0x0040, 0x5400}, 0, Isa::a64));  // b.eq
    EXPECT_FALSE(always({0x3fdf, 0xd503}, 0, Isa::a64));  // isb
}

// An IT instruction covers up to four instructions of two or four bytes. A walk that begins after the IT instruction
// does not see it.
TEST(Walk, LooksForItInstructionsBeforeABranch) {
    constexpr std::uint16_t nop = 0xbf00, b = 0xe002, bx_lr = 0x4770, it_eq = 0xbf08, ite_eq = 0xbf0c, it_al = 0xbfe8;
    constexpr std::uint16_t itttt_eq = 0xbf01;
    const std::vector<std::uint16_t> nops(7, nop);
    const auto after = [&](std::size_t halfword, std::uint16_t it) {
        std::vector<std::uint16_t> all = nops;
        all[halfword] = it;
        all.push_back(b);
        return always(all, 7);
    };
    EXPECT_TRUE(after(0, nop));
    EXPECT_FALSE(after(6, it_eq));
    EXPECT_TRUE(after(5, it_eq)) << "it covers one instruction";
    EXPECT_FALSE(after(5, ite_eq));
    EXPECT_FALSE(after(4, ite_eq)) << "an instruction of four bytes may be between";
    EXPECT_TRUE(after(3, ite_eq));
    EXPECT_FALSE(after(0, itttt_eq));
    EXPECT_TRUE(after(6, it_al));
    EXPECT_FALSE(always({nop, nop, nop, nop, nop, nop, b}, 6)) << "what is before it is not known";
    EXPECT_FALSE(always({nop, nop, nop, nop, nop, nop, nop, bx_lr}, 7)) << "an indirect branch";
}

TEST(Walk, TakesBarriersAsTheUnitDoes) {
    EXPECT_EQ(from(0x8028, Isa::t32).last, Address{0x802c});
    const Walk barrier = from(0x8028, Isa::t32, {.decode = {.dmb_dsb_waypoints = true}});
    EXPECT_EQ(barrier.last, Address{0x8028});
    EXPECT_EQ(barrier.block().end, flow::End::barrier);
}

TEST(Walk, EndsInFrontOfWhatCannotBePassed) {
    const Walk undefined = from(0x802e, Isa::t32);
    EXPECT_EQ(undefined.end, WalkEnd::undefined);
    EXPECT_EQ(undefined.after, Address{0x8030});
    EXPECT_EQ(undefined.instructions, 1U);
    EXPECT_EQ(undefined.block().end, flow::End::not_a_waypoint);
    EXPECT_EQ(undefined.block().flags, 0U) << "the instruction that was looked at is not in the block";

    const Walk unknown = from(0x7ffc, Isa::a32);
    EXPECT_EQ(unknown.end, WalkEnd::no_memory);
    EXPECT_EQ(unknown.after, Address{0x7ffc});
    EXPECT_EQ(unknown.instructions, 0U);

    const Walk endless = from(0x8000, Isa::a32, {.most_bytes = 8});
    EXPECT_EQ(endless.end, WalkEnd::runaway);
    EXPECT_EQ(endless.after, Address{0x8008});

    EXPECT_EQ(from(0x8000, Isa::jazelle).end, WalkEnd::no_memory);
}

TEST(Walk, WrapsWhereAddressesHave32Bits) {
    synthetic::Memory m;
    m.sections.push_back({0, {0x1e, 0xff, 0x2f, 0xe1}});           // bx lr
    m.sections.push_back({0xfffffffc, {0x00, 0x40, 0xa0, 0xe1}});  // mov r4, r0
    const Walk w = walk(m, {}, {{0xfffffffc}, Isa::a32}, {});
    EXPECT_EQ(w.end, WalkEnd::waypoint);
    EXPECT_EQ(w.last, Address{0});
    EXPECT_EQ(w.instructions, 2U);
    EXPECT_EQ(w.section, 1U) << "of the first instruction";
    EXPECT_EQ(advance({0xfffffffc}, 4, Isa::a64), Address{0x100000000});
}

TEST(WalkTo, TakesInTheInstructionOrNot) {
    const Walk before = up_to(0x8000, Isa::a32, 0x8008, Stop::before);
    EXPECT_EQ(before.end, WalkEnd::arrived);
    EXPECT_EQ(before.after, Address{0x8008});
    EXPECT_EQ(before.instructions, 2U);

    const Walk after = up_to(0x8000, Isa::a32, 0x8008, Stop::after);
    EXPECT_EQ(after.end, WalkEnd::arrived);
    EXPECT_EQ(after.after, Address{0x800c});
    EXPECT_EQ(after.instructions, 3U);

    const Walk nothing = up_to(0x8000, Isa::a32, 0x8000, Stop::before);
    EXPECT_EQ(nothing.end, WalkEnd::arrived);
    EXPECT_EQ(nothing.instructions, 0U);
}

TEST(WalkTo, NeverTakesInAWaypoint) {
    for (const Stop stop : {Stop::before, Stop::after}) {
        const Walk there = up_to(0x8000, Isa::a32, 0x800c, stop);
        EXPECT_EQ(there.end, WalkEnd::arrived);
        EXPECT_EQ(there.after, Address{0x800c});
        EXPECT_EQ(there.block().end, flow::End::not_a_waypoint);

        const Walk beyond = up_to(0x8000, Isa::a32, 0x8010, stop);
        EXPECT_EQ(beyond.end, WalkEnd::passed);
        EXPECT_EQ(beyond.after, Address{0x800c});
        EXPECT_EQ(beyond.last, Address{0x800c});
    }
}

TEST(WalkTo, SaysWhenTheAddressLiesAmidAnInstruction) {
    for (const Stop stop : {Stop::before, Stop::after}) {
        const Walk amid = up_to(0x801c, Isa::t32, 0x8020, stop);
        EXPECT_EQ(amid.end, WalkEnd::passed);
        EXPECT_EQ(amid.after, Address{0x8022});
    }
}

TEST(WalkTo, PassesAnUndefinedInstructionThatRaisedItsException) {
    const Walk raised = up_to(0x802e, Isa::t32, 0x8030, Stop::after);
    EXPECT_EQ(raised.end, WalkEnd::arrived);
    EXPECT_EQ(raised.after, Address{0x8032});
    const Walk stopped = up_to(0x802e, Isa::t32, 0x8032, Stop::after);
    EXPECT_EQ(stopped.end, WalkEnd::undefined);
    EXPECT_EQ(stopped.after, Address{0x8030});
    EXPECT_EQ(up_to(0x802e, Isa::t32, 0x8030, Stop::before).end, WalkEnd::arrived);
}

// The generator of random programs knows the blocks of its programs.
TEST(Walk, FindsTheBlocksOfPrograms) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const synthetic::Program program = synthetic::make_program({.seed = seed, .tee = true});
        for (const synthetic::ProgramBlock& block : program.blocks) {
            if (block.trap != synthetic::ProgramBlock::none) continue;
            const Walk w = walk(program.memory, {}, {{block.block.start}, block.block.isa}, {});
            ASSERT_EQ(w.end, WalkEnd::waypoint) << std::hex << block.block.start;
            ASSERT_EQ(w.block(), block.block) << std::hex << block.block.start;
        }
    }
}

}  // namespace
}  // namespace waymark::follow
