/// Vectors for every row of docs/spec/pft.md, section 1.3, in tests named after its tables, encoded by hand. Whole
/// encoding spaces are compared with objdump in tests/differential.
#include "waymark/isa/decode_instr.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "support/random.h"

namespace waymark::isa {

std::ostream& operator<<(std::ostream& out, const Instruction& i) {
    constexpr std::array<std::string_view, 4> waypoints{"none", "direct", "indirect", "barrier"};
    out << unsigned{i.bytes} << " bytes, " << waypoints.at(static_cast<std::size_t>(i.waypoint)) << " to 0x" << std::hex
        << i.target.value << std::dec << ' ' << name(i.target_isa);
    for (const auto& [set, flag] :
         {std::pair{i.link, " link"}, std::pair{i.conditional, " conditional"},
          std::pair{i.exception_return, " exception return"}, std::pair{i.function_return, " function return"},
          std::pair{i.undefined, " undefined"}})
        if (set) out << flag;
    return out;
}

namespace {

using enum Waypoint;

constexpr std::uint64_t at = 0x8000;
constexpr DecodeOptions barriers{.dmb_dsb_waypoints = true};

struct Vector {
    std::string_view text;
    std::uint32_t opcode;
    Instruction expected;  // `bytes` is filled in
};

Instruction decode(Isa isa, std::uint32_t opcode, std::uint64_t address = at, const DecodeOptions& options = {}) {
    return decode_instr({address}, isa, opcode, isa != Isa::a32 && opcode > 0xffff, options);
}

void check(Isa isa, std::span<const Vector> vectors, const DecodeOptions& options = {}) {
    for (Vector v : vectors) {
        v.expected.bytes = isa == Isa::a32 || v.opcode > 0xffff ? 4 : 2;
        EXPECT_EQ(decode(isa, v.opcode, at, options), v.expected) << name(isa) << ' ' << v.text;
    }
}

constexpr Instruction nothing{};
constexpr Instruction nothing_conditional{.conditional = true};
constexpr Instruction branches{.waypoint = indirect};
constexpr Instruction calls{.waypoint = indirect, .link = true};
constexpr Instruction returns{.waypoint = indirect, .function_return = true};
constexpr Instruction returns_from_exception{.waypoint = indirect, .exception_return = true};
constexpr Instruction undefined{.undefined = true};

constexpr Instruction to(std::uint64_t target, Isa isa) {
    return {.target = {target}, .waypoint = direct, .target_isa = isa};
}
constexpr Instruction to_if(std::uint64_t target, Isa isa) {
    return {.target = {target}, .waypoint = direct, .target_isa = isa, .conditional = true};
}
constexpr Instruction calls_to(std::uint64_t target, Isa isa) {
    return {.target = {target}, .waypoint = direct, .target_isa = isa, .link = true};
}
constexpr Instruction barrier_before(std::uint64_t target, Isa isa) {
    return {.target = {target}, .waypoint = barrier, .target_isa = isa};
}

TEST(DecodeInstr, A32Conditional_1_3_1) {
    check(Isa::a32, std::to_array<Vector>({
                        {"b .+16", 0xea000002, to(0x8010, Isa::a32)},
                        {"b .", 0xeafffffe, to(0x8000, Isa::a32)},
                        {"bne .+16", 0x1a000002, to_if(0x8010, Isa::a32)},
                        {"bl .-4", 0xebfffffd, calls_to(0x7ffc, Isa::a32)},
                        {"bx r3", 0xe12fff13, branches},
                        {"bx lr", 0xe12fff1e, returns},
                        {"bxj r3", 0xe12fff23, branches},
                        {"blx r3", 0xe12fff33, calls},
                        {"blx lr", 0xe12fff3e, calls},
                        {"eret", 0xe160006e, returns_from_exception},
                        {"ldm r0, {r1, pc}", 0xe8908002, branches},
                        {"ldmdb r11, {r11, sp, pc}", 0xe91ba800, branches},
                        {"pop {r4, pc}", 0xe8bd8010, returns},
                        {"ldm sp!, {r0, pc}^", 0xe8fd8001, returns_from_exception},
                        {"ldm r0, {r1, lr}^ (user registers)", 0xe8d04002, nothing},
                        {"stm r0, {pc}", 0xe8808000, nothing},
                        {"ldr pc, [r0, #4]", 0xe590f004, branches},
                        {"ldr pc, [r0, #-4]!", 0xe530f004, branches},
                        {"ldr pc, [pc, #0]", 0xe59ff000, branches},
                        {"ldr pc, [sp], #4", 0xe49df004, returns},
                        {"ldr pc, [sp, #4]", 0xe59df004, branches},
                        {"ldrb r15, [r0] (UNPREDICTABLE)", 0xe5d0f000, nothing},
                        {"str pc, [r0]", 0xe580f000, nothing},
                        {"ldr pc, [pc, r0, lsl #2]", 0xe79ff100, branches},
                        {"usad8, in the space of ldr register with bit 4 set", 0xe780f010, nothing},
                        {"mov pc, #0", 0xe3a0f000, branches},
                        {"add pc, pc, #16", 0xe28ff010, branches},
                        {"subs pc, lr, #4", 0xe25ef004, returns_from_exception},
                        {"cmp pc, #0 with Rd=15", 0xe35ff000, nothing},
                        {"tst r0, #1, Rd=15", 0xe310f001, nothing},
                        {"msr cpsr_c, #0x13", 0xe321f013, nothing},
                        {"movw pc (UNPREDICTABLE)", 0xe300f000, nothing},
                        {"wfi", 0xe320f003, nothing},
                        {"mov pc, r3", 0xe1a0f003, branches},
                        {"mov pc, lr", 0xe1a0f00e, returns},
                        {"movs pc, lr", 0xe1b0f00e, returns_from_exception},
                        {"add pc, pc, r0, lsl #2", 0xe08ff100, branches},
                        {"mvns pc, r0", 0xe1f0f000, returns_from_exception},
                        {"cmp r0, r1", 0xe1500001, nothing},
                        {"clz", 0xe16f0f11, nothing},
                        {"msr cpsr_fsxc, r0", 0xe12ff000, nothing},
                        {"mov pc, r1, lsl r0 (UNPREDICTABLE)", 0xe1a0f011, nothing},
                        {"mul, Rn=15", 0xe00f0091, nothing},
                        {"ldrh r15 (UNPREDICTABLE)", 0xe1d0f0b0, nothing},
                        {"add r0, r1, r2", 0xe0810002, nothing},
                        {"addeq r0, r1, r2", 0x00810002, nothing_conditional},
                        {"mcr p15, 0, r3, c7, c5, 4 (ISB)", 0xee073f95, barrier_before(0x8004, Isa::a32)},
                        {"mrc p15, 0, r3, c7, c5, 4", 0xee173f95, nothing},
                        {"mcr p15, 0, r0, c7, c5, 0", 0xee070f15, nothing},
                        {"svc", 0xef000000, nothing},
                        {"smc", 0xe1600070, nothing},
                        {"hvc", 0xe1400070, nothing},
                        {"bkpt", 0xe1200070, nothing},
                        {"udf #0", 0xe7f000f0, undefined},
                        {"udf #18 (Linux BUG)", 0xe7f001f2, undefined},
                        {"unallocated, not UDF: condition NE", 0x17f000f0, nothing_conditional},
                    }));
}

TEST(DecodeInstr, A32Unconditional_1_3_2) {
    check(Isa::a32, std::to_array<Vector>({
                        {"blx .+8", 0xfa000000, calls_to(0x8008, Isa::t32)},
                        {"blx .+10 (H)", 0xfb000000, calls_to(0x800a, Isa::t32)},
                        {"blx .-8, H", 0xfbfffffb, calls_to(0x7ff6, Isa::t32)},
                        {"rfeia r0", 0xf8900a00, returns_from_exception},
                        {"rfedb r13!", 0xf93d0a00, returns_from_exception},
                        {"srsia sp!, #19", 0xf8ed0513, nothing},
                        {"isb", 0xf57ff06f, barrier_before(0x8004, Isa::a32)},
                        {"clrex", 0xf57ff01f, nothing},
                        {"cps #19", 0xf1020013, nothing},
                        {"pld [r0]", 0xf5d0f000, nothing},
                        {"pld [r0, r1]", 0xf7d0f001, nothing},
                    }));
}

TEST(DecodeInstr, T16_1_3_3) {
    check(Isa::t32, std::to_array<Vector>({
                        {"beq .+4", 0xd000, to_if(0x8004, Isa::t32)},
                        {"ble .", 0xddfe, to_if(0x8000, Isa::t32)},
                        {"svc", 0xdf00, nothing},
                        {"udf #0", 0xde00, undefined},
                        {"udf #2 (Linux BUG)", 0xde02, undefined},
                        {"b .", 0xe7fe, to(0x8000, Isa::t32)},
                        {"cbz r1, .+4", 0xb101, to_if(0x8004, Isa::t32)},
                        {"cbz r0, .+130", 0xb3f8, to_if(0x8082, Isa::t32)},
                        {"cbnz r7, .+6", 0xb90f, to_if(0x8006, Isa::t32)},
                        {"bx r3", 0x4718, branches},
                        {"bx lr", 0x4770, returns},
                        {"blx r3", 0x4798, calls},
                        {"blx lr", 0x47f0, calls},
                        {"mov pc, r3", 0x469f, branches},
                        {"mov pc, lr", 0x46f7, returns},
                        {"mov r8, r3", 0x4698, nothing},
                        {"add pc, r3", 0x449f, branches},
                        {"cmp pc, r3", 0x459f, nothing},
                        {"pop {pc}", 0xbd00, returns},
                        {"pop {r4, pc}", 0xbd10, returns},
                        {"pop {r4}", 0xbc10, nothing},
                        {"push {lr}", 0xb500, nothing},
                        {"ldmia r0!, {r1}", 0xc802, nothing},
                        {"bkpt", 0xbe00, nothing},
                        {"it eq", 0xbf08, nothing},
                        {"wfi", 0xbf30, nothing},
                    }));
}

TEST(DecodeInstr, T32_1_3_4) {
    check(Isa::t32, std::to_array<Vector>({
                        {"beq.w .+4", 0xf0008000, to_if(0x8004, Isa::t32)},
                        {"bne.w ., S J2 J1 all set", 0xf47faffe, to_if(0x8000, Isa::t32)},
                        {"beq.w, J1 alone is bit 18", 0xf000a000, to_if(0x48004, Isa::t32)},
                        {"beq.w, J2 alone is bit 19", 0xf0008800, to_if(0x88004, Isa::t32)},
                        {"b.w .+4", 0xf000b800, to(0x8004, Isa::t32)},
                        {"b.w .", 0xf7ffbffe, to(0x8000, Isa::t32)},
                        {"b.w, I1 set by J1 clear", 0xf0009800, to(0x808004, Isa::t32)},
                        {"b.w, I2 set by J2 clear", 0xf000b000, to(0x408004, Isa::t32)},
                        {"bl .+4", 0xf000f800, calls_to(0x8004, Isa::t32)},
                        {"bl .-4", 0xf7fffffc, calls_to(0x7ffc, Isa::t32)},
                        {"blx .+4", 0xf000e800, calls_to(0x8004, Isa::a32)},
                        {"blx, H=1 (UNDEFINED)", 0xf000e801, nothing},
                        {"bxj r3", 0xf3c38f00, branches},
                        {"eret", 0xf3de8f00, returns_from_exception},
                        {"subs pc, lr, #4", 0xf3de8f04, returns_from_exception},
                        {"tbb [pc, r0]", 0xe8dff000, branches},
                        {"tbh [r1, r0, lsl #1]", 0xe8d1f010, branches},
                        {"ldrexb, beside tbb", 0xe8d10f4f, nothing},
                        {"rfedb sp!", 0xe83dc000, returns_from_exception},
                        {"rfeia r0", 0xe990c000, returns_from_exception},
                        {"srsia sp!, #19", 0xe9adc013, nothing},
                        {"pop.w {r4, pc}", 0xe8bd8010, returns},
                        {"ldmia.w r0, {r1, pc}", 0xe8908002, branches},
                        {"ldmdb r0!, {r1, pc}", 0xe9308002, branches},
                        {"clrm {r0, r1, apsr}", 0xe89f8003, nothing},
                        {"bxaut r12, lr, sp", 0xfb5ecf1d, returns},
                        {"bxaut r1, r2, r3", 0xfb521f13, branches},
                        {"autg r1, r2, r3", 0xfb521f03, nothing},
                        {"ldmia.w r0, {r1, lr}", 0xe8904002, nothing},
                        {"stmdb sp!, {r4, lr}", 0xe92d4010, nothing},
                        {"ldr.w pc, [r0, #4]", 0xf8d0f004, branches},
                        {"ldr.w pc, [pc, #4]", 0xf8dff004, branches},
                        {"ldr.w pc, [pc, #-324]", 0xf85ff144, branches},
                        {"ldr.w pc, [pc, #-2052]", 0xf85ff804, branches},
                        {"ldr.w pc, [r0, #-4]", 0xf850fc04, branches},
                        {"ldr.w pc, [r0], #4", 0xf850fb04, branches},
                        {"ldr.w pc, [r0, #4]!", 0xf850ff04, branches},
                        {"ldr.w pc, [sp], #4", 0xf85dfb04, returns},
                        {"ldr, P=0 W=0 (UNDEFINED)", 0xf850f804, nothing},
                        {"ldr.w pc, [pc, r0, lsl #2] as literal", 0xf85ff020, branches},
                        {"ldr.w pc, [r1, r0, lsl #2]", 0xf851f020, branches},
                        {"ldr register, bit 6 set (UNDEFINED)", 0xf851f040, nothing},
                        {"ldr.w r0, [r1]", 0xf8d10000, nothing},
                        {"pld [r0]", 0xf890f000, nothing},
                        {"str.w", 0xf8c1f000, nothing},
                        {"isb", 0xf3bf8f6f, barrier_before(0x8004, Isa::t32)},
                        {"clrex", 0xf3bf8f2f, nothing},
                        {"mcr p15, 0, r3, c7, c5, 4 (ISB)", 0xee073f95, barrier_before(0x8004, Isa::t32)},
                        {"mcr2", 0xfe073f95, nothing},
                        {"enterx", 0xf3bf8f1f, to(0x8004, Isa::tee)},
                        {"leavex", 0xf3bf8f0f, to(0x8004, Isa::t32)},
                        {"hvc", 0xf7e08000, nothing},
                        {"smc", 0xf7f08000, nothing},
                        {"msr cpsr_c, r0", 0xf3808100, nothing},
                        {"cps #19", 0xf3af8113, nothing},
                        {"wfi.w", 0xf3af8003, nothing},
                        {"udf.w #0", 0xf7f0a000, undefined},
                        {"udf.w #0xffff", 0xf7ffafff, undefined},
                        {"add.w pc, r0, r1 (UNPREDICTABLE)", 0xeb000f01, nothing},
                        {"cmp.w r0, r1", 0xebb00f01, nothing},
                        {"movw pc (UNPREDICTABLE)", 0xf2400f00, nothing},
                    }));
}

TEST(DecodeInstr, ThumbEe_1_3_5) {
    check(Isa::tee, std::to_array<Vector>({
                        {"hbp #0, #0", 0xc000, branches},
                        {"hbp #7, #31", 0xc0ff, branches},
                        {"UNDEFINED", 0xc100, nothing},
                        {"hb #255", 0xc2ff, branches},
                        {"hbl #0", 0xc300, calls},
                        {"hblp #0, #0", 0xc400, calls},
                        {"hblp #31, #31", 0xc7ff, calls},
                        {"ldr r0, [r1]", 0xc808, nothing},
                        {"chka r0, r1", 0xca08, nothing},
                        {"str", 0xcfff, nothing},
                        {"bx lr", 0x4770, returns},
                        {"b .", 0xe7fe, to(0x8000, Isa::tee)},
                        {"bl .+4", 0xf000f800, calls_to(0x8004, Isa::tee)},
                        {"blx .+4 (UNDEFINED in ThumbEE)", 0xf000e800, nothing},
                        {"isb", 0xf3bf8f6f, barrier_before(0x8004, Isa::tee)},
                        {"enterx, without effect", 0xf3bf8f1f, to(0x8004, Isa::tee)},
                        {"leavex", 0xf3bf8f0f, to(0x8004, Isa::t32)},
                    }));
}

// DSB and DMB are waypoint instructions where ETMCCER[24] says so; ISB always.
TEST(DecodeInstr, BarriersDependOnTheImplementation) {
    const auto a32 = std::to_array<std::uint32_t>({0xf57ff04f, 0xf57ff05b, 0xee070f9a, 0xee073fba});
    const auto t32 = std::to_array<std::uint32_t>({0xf3bf8f4f, 0xf3bf8f5b, 0xee070f9a, 0xee073fba});
    const auto expect = [](Isa isa, std::uint32_t opcode) {
        EXPECT_EQ(decode(isa, opcode), (Instruction{.bytes = 4})) << std::hex << opcode;
        Instruction expected = barrier_before(0x8004, isa);
        expected.bytes = 4;
        EXPECT_EQ(decode(isa, opcode, at, barriers), expected) << std::hex << opcode;
    };
    for (const std::uint32_t opcode : a32) expect(Isa::a32, opcode);
    for (const std::uint32_t opcode : t32) expect(Isa::t32, opcode);
    for (const std::uint32_t opcode : t32) expect(Isa::tee, opcode);

    const auto isb = std::to_array<std::pair<Isa, std::uint32_t>>(
        {{Isa::a32, 0xf57ff06f}, {Isa::a32, 0xee070f95}, {Isa::t32, 0xf3bf8f6f}, {Isa::t32, 0xee070f95}});
    for (const auto& [isa, opcode] : isb) EXPECT_EQ(decode(isa, opcode), decode(isa, opcode, at, barriers));
}

// A conditional CP15 barrier: the atom says whether it passed.
TEST(DecodeInstr, ConditionsOfA32) {
    for (std::uint32_t condition = 0; condition < 15; ++condition) {
        for (const std::uint32_t opcode : {0x0a000000U, 0x012fff1eU, 0x08bd8000U, 0x0e070f95U, 0x0281f001U}) {
            const Instruction i = decode(Isa::a32, condition << 28 | opcode);
            EXPECT_EQ(i.conditional, condition != 14) << condition << ' ' << opcode;
            EXPECT_NE(i.waypoint, none) << condition << ' ' << opcode;
        }
    }
}

struct Reach {
    std::string_view text;
    Isa isa;
    std::uint64_t address;
    std::uint32_t opcode;
    std::uint64_t target;
};

TEST(DecodeInstr, TargetsAtTheExtremes) {
    for (const Reach& r : std::to_array<Reach>({
             {"b, furthest forward", Isa::a32, 0x10000000, 0xea7fffff, 0x12000004},
             {"b, furthest back", Isa::a32, 0x10000000, 0xea800000, 0x0e000008},
             {"blx, furthest forward", Isa::a32, 0x10000000, 0xfb7fffff, 0x12000006},
             {"blx, furthest back", Isa::a32, 0x10000000, 0xfa800000, 0x0e000008},
             {"b<c>, furthest forward", Isa::t32, 0x10000000, 0xd07f, 0x10000102},
             {"b<c>, furthest back", Isa::t32, 0x10000000, 0xd080, 0x0fffff04},
             {"b, furthest forward", Isa::t32, 0x10000000, 0xe3ff, 0x10000802},
             {"b, furthest back", Isa::t32, 0x10000000, 0xe400, 0x0ffff804},
             {"cbz, nearest", Isa::t32, 0x10000000, 0xb100, 0x10000004},
             {"cbz, furthest", Isa::t32, 0x10000000, 0xb3f8, 0x10000082},
             {"b<c>.w, furthest forward", Isa::t32, 0x10000000, 0xf03fafff, 0x10100002},
             {"b<c>.w, furthest back", Isa::t32, 0x10000000, 0xf4008000, 0x0ff00004},
             {"bl, furthest forward", Isa::t32, 0x10000000, 0xf3ffd7ff, 0x11000002},
             {"bl, furthest back", Isa::t32, 0x10000000, 0xf400d000, 0x0f000004},
             {"b.w, furthest forward", Isa::t32, 0x10000000, 0xf3ff97ff, 0x11000002},
             {"b.w, furthest back", Isa::t32, 0x10000000, 0xf4009000, 0x0f000004},
             {"blx, furthest forward", Isa::t32, 0x10000000, 0xf3ffc7fe, 0x11000000},
             {"blx, furthest back", Isa::t32, 0x10000000, 0xf400c000, 0x0f000004},
             {"blx from a word boundary", Isa::t32, 0x8000, 0xf000e800, 0x8004},
             {"blx from between: the pc is aligned down", Isa::t32, 0x8002, 0xf000e800, 0x8004},
             {"bl from between: it is not", Isa::t32, 0x8002, 0xf000f800, 0x8006},
             {"b over the top", Isa::a32, 0xfffffffc, 0xea000000, 0x00000004},
             {"b below zero", Isa::a32, 0x00000000, 0xeafffffd, 0xfffffffc},
             {"b.n over the top", Isa::t32, 0xfffffffe, 0xe000, 0x00000002},
             {"b.n below zero", Isa::t32, 0x00000000, 0xe7fd, 0xfffffffe},
             {"bl below zero", Isa::t32, 0x00000000, 0xf7fffffc, 0xfffffffc},
             {"cbz over the top", Isa::t32, 0xfffffffe, 0xb100, 0x00000002},
             {"isb at the top", Isa::a32, 0xfffffffc, 0xf57ff06f, 0x00000000},
         })) {
        EXPECT_EQ(decode(r.isa, r.opcode, r.address).target, Address{r.target})
            << name(r.isa) << ' ' << r.text << std::hex << " 0x" << decode(r.isa, r.opcode, r.address).target.value;
    }
}

struct Census {
    unsigned first_halves = 0, direct = 0, indirect = 0, barrier = 0, none = 0;
    unsigned link = 0, conditional = 0, function_return = 0, undefined = 0;
    friend bool operator==(const Census&, const Census&) = default;
};

std::ostream& operator<<(std::ostream& out, const Census& c) {
    return out << c.first_halves << " first halves, " << c.direct << " direct, " << c.indirect << " indirect, "
               << c.barrier << " barrier, " << c.none << " none; " << c.link << " link, " << c.conditional
               << " conditional, " << c.function_return << " function return, " << c.undefined << " undefined";
}

Census census(Isa isa) {
    Census c;
    for (std::uint32_t op = 0; op < 0x10000; ++op) {
        if (is_thumb_32(op)) {
            ++c.first_halves;
            continue;
        }
        const Instruction i = decode(isa, op);
        EXPECT_EQ(i.bytes, 2) << op;
        EXPECT_FALSE(i.exception_return) << op;
        // Here only a direct branch has a target; the target is near, at an even address, and in the same instruction
        // set.
        const std::uint64_t distance = i.target.value > at ? i.target.value - at : at - i.target.value;
        EXPECT_EQ(i.waypoint == direct, i.target.value != 0) << op;
        if (i.waypoint == direct) {
            EXPECT_LE(distance, 2050U) << op;
            EXPECT_EQ(i.target.value % 2, 0U) << op;
            EXPECT_EQ(i.target_isa, isa) << op;
        }
        c.direct += i.waypoint == direct;
        c.indirect += i.waypoint == indirect;
        c.barrier += i.waypoint == barrier;
        c.none += i.waypoint == none;
        c.link += i.link;
        c.conditional += i.conditional;
        c.function_return += i.function_return;
        c.undefined += i.undefined;
    }
    return c;
}

// The sizes of the encodings, multiplied out by hand: B<c> 14 * 256, B 2048, CBZ and CBNZ 4 * 256; BX and BLX 16 * 8
// each, MOV and ADD 16 each, POP 256. Returns: BX LR 8, MOV pc LR 1, POP.
TEST(DecodeInstr, EveryHalfwordIsClassified) {
    Census t32{.first_halves = 3 * 2048,
               .direct = 14 * 256 + 2048 + 4 * 256,
               .indirect = 16 * 8 + 16 * 8 + 16 + 16 + 256,
               .link = 16 * 8,
               .conditional = 14 * 256 + 4 * 256,
               .function_return = 8 + 1 + 256,
               .undefined = 256};
    t32.none = 0x10000 - t32.first_halves - t32.direct - t32.indirect;
    EXPECT_EQ(census(Isa::t32), t32);

    // ThumbEE adds HBP, HB, HBL (256 each) and HBLP (1024).
    Census tee = t32;
    tee.indirect += 3 * 256 + 1024;
    tee.link += 256 + 1024;
    tee.none -= 3 * 256 + 1024;
    EXPECT_EQ(census(Isa::tee), tee);
}

// For the sanitizers: the sweeps that compare with objdump run without.
TEST(DecodeInstr, AnyWordHasItsLength) {
    synthetic::Random random(1);
    for (unsigned i = 0; i < 200'000; ++i) {
        const auto word = static_cast<std::uint32_t>(random());
        ASSERT_EQ(decode(Isa::a32, word).bytes, 4) << word;
        const std::uint32_t wide = word | 0xe800'0000;
        if (is_thumb_32(wide >> 16)) {
            ASSERT_EQ(decode(Isa::t32, wide).bytes, 4) << wide;
        }
    }
}

TEST(DecodeInstr, OutsideTheHandlerBranchesThumbEeIsThumb) {
    for (std::uint32_t op = 0; !is_thumb_32(op); ++op) {
        if (op >> 12 == 0xc) continue;
        Instruction thumb = decode(Isa::t32, op);
        if (thumb.waypoint == direct) thumb.target_isa = Isa::tee;
        EXPECT_EQ(decode(Isa::tee, op), thumb) << op;
    }
}

TEST(DecodeInstr, OtherInstructionSetsAreNotDecoded) {
    for (const std::uint32_t opcode : {0xeafffffeU, 0xe7feU, 0xd65f03c0U})
        EXPECT_EQ(decode_instr({at}, Isa::jazelle, opcode, false, barriers), Instruction{});
}

}  // namespace
}  // namespace waymark::isa
