#include "waymark/isa/decode_instr.h"

#include <array>
#include <span>
#include <string_view>

#include "a64_instr.h"

namespace waymark::isa {
namespace {

using enum Waypoint;

/// The formula that computes a row's target from the opcode (below the tables of section 1.3).
enum class To : std::uint8_t {
    unknown,         // indirect branch, or not a waypoint
    next,            // barriers: the next instruction
    next_tee,        // ENTERX
    next_t32,        // LEAVEX
    a32_imm24,       // B, BL
    a32_imm24_h,     // BLX: to Thumb, H supplies bit 1
    t16_imm8,        // B<c> T1
    t16_imm11,       // B T2
    t16_cbz,         // CBZ, CBNZ: forward only
    t32_imm20,       // B<c>.W T3
    t32_imm24,       // B.W T4, BL T1
    t32_imm23,       // BLX T2: to A32, from the word-aligned pc
    t32_loop_end,    // LE, LETP: backward only
    t32_loop_start,  // WLS, WLSTP: forward only
};

enum Flags : std::uint8_t {
    plain = 0,
    link = 1,
    conditional = 2,
    exception_return = 4,
    function_return = 8,
    undefined = 16,
    if_enabled = 32,  // a waypoint only with DecodeOptions::dmb_dsb_waypoints
    wait = 64,        // a waypoint only with DecodeOptions::wait_waypoints
};

/// Opcodes that a row excludes although its mask matches them. The default excludes none, because a value masked with 0
/// is never 1.
struct Except {
    std::uint32_t mask = 0, value = 1;
};

/// One line of the tables in docs/spec/pft.md, section 1.3. The first row that matches decides.
struct Row {
    std::string_view name;
    std::uint32_t mask, value;
    Waypoint waypoint;
    Flags flags = plain;
    To to = To::unknown;
    Except except{};

    [[nodiscard]] constexpr bool matches(std::uint32_t op) const {
        return (op & mask) == value && (op & except.mask) != except.value;
    }
};

// Opcodes 10xx of data-processing have no destination (TST, TEQ, CMP, CMN), or are another instruction if they lack S
// (MSR, hints, MOVW, MOVT, BX, CLZ).
constexpr Except no_destination{0x01800000, 0x01000000};
constexpr Except condition_111x_t16{0x0e00, 0x0e00};           // UDF and SVC
constexpr Except condition_111x_t32{0x03800000, 0x03800000};   // system instructions
constexpr Except neither_indexed_nor_written_back{0x0500, 0};  // UNDEFINED
constexpr Except clrm{0xffff2000, 0xe89f0000};                 // of Armv8.1-M; LDM with Rn=pc is UNPREDICTABLE

// Section 1.3.1. A row that only adds `function_return` or `exception_return` to another row comes before that row.
constexpr auto a32_rows = std::to_array<Row>({
    {"B", 0x0f000000, 0x0a000000, direct, plain, To::a32_imm24},
    {"BL imm", 0x0f000000, 0x0b000000, direct, link, To::a32_imm24},
    {"BX LR", 0x0fffffff, 0x012fff1e, indirect, function_return},
    {"BX Rm", 0x0ffffff0, 0x012fff10, indirect},
    {"BXJ Rm", 0x0ffffff0, 0x012fff20, indirect},
    {"BLX Rm", 0x0ffffff0, 0x012fff30, indirect, link},
    {"ERET", 0x0fffffff, 0x0160006e, indirect, exception_return},
    {"LDM {..pc}^", 0x0e508000, 0x08508000, indirect, exception_return},
    {"POP {..pc}", 0x0fff8000, 0x08bd8000, indirect, function_return},
    {"LDM {..pc}", 0x0e108000, 0x08108000, indirect},
    {"LDR pc, [SP], #imm", 0x0ffff000, 0x049df000, indirect, function_return},
    {"LDR pc, [Rn, #imm]", 0x0e50f000, 0x0410f000, indirect},
    {"LDR pc, [Rn, Rm shift]", 0x0e50f010, 0x0610f000, indirect},
    {"data-processing, immediate, S, Rd=pc", 0x0e10f000, 0x0210f000, indirect, exception_return, To::unknown,
     no_destination},
    {"data-processing, immediate, Rd=pc", 0x0e00f000, 0x0200f000, indirect, plain, To::unknown, no_destination},
    {"MOV pc, LR", 0x0fffffff, 0x01a0f00e, indirect, function_return},
    {"data-processing, register, S, Rd=pc", 0x0e10f010, 0x0010f000, indirect, exception_return, To::unknown,
     no_destination},
    {"data-processing, register, Rd=pc", 0x0e00f010, 0x0000f000, indirect, plain, To::unknown, no_destination},
    {"ISB, CP15", 0x0fff0fff, 0x0e070f95, barrier, plain, To::next},
    {"DSB, CP15", 0x0fff0fff, 0x0e070f9a, barrier, if_enabled, To::next},
    {"DMB, CP15", 0x0fff0fff, 0x0e070fba, barrier, if_enabled, To::next},
    {"UDF", 0xfff000f0, 0xe7f000f0, none, undefined},
    {"WFE, WFI", 0x0ffffffe, 0x0320f002, barrier, wait, To::next},
});

// Section 1.3.2: condition field 1111.
constexpr auto a32_unconditional_rows = std::to_array<Row>({
    {"BLX imm", 0xfe000000, 0xfa000000, direct, link, To::a32_imm24_h},
    {"RFE", 0xfe50ffff, 0xf8100a00, indirect, exception_return},
    {"DSB", 0xfffffff0, 0xf57ff040, barrier, if_enabled, To::next},
    {"DMB", 0xfffffff0, 0xf57ff050, barrier, if_enabled, To::next},
    {"ISB", 0xfffffff0, 0xf57ff060, barrier, plain, To::next},
});

// Section 1.3.3.
constexpr auto t16_rows = std::to_array<Row>({
    {"B<c> T1", 0xf000, 0xd000, direct, conditional, To::t16_imm8, condition_111x_t16},
    {"B T2", 0xf800, 0xe000, direct, plain, To::t16_imm11},
    {"CBZ, CBNZ", 0xf500, 0xb100, direct, conditional, To::t16_cbz},
    {"BX LR", 0xfff8, 0x4770, indirect, function_return},
    {"BX Rm", 0xff80, 0x4700, indirect},
    {"BLX Rm", 0xff80, 0x4780, indirect, link},
    {"MOV pc, LR", 0xffff, 0x46f7, indirect, function_return},
    {"MOV pc, Rm", 0xff87, 0x4687, indirect},
    {"ADD pc, Rm", 0xff87, 0x4487, indirect},
    {"POP {..pc}", 0xff00, 0xbd00, indirect, function_return},
    {"UDF", 0xff00, 0xde00, none, undefined},
    {"WFE, WFI", 0xffef, 0xbf20, barrier, wait, To::next},
});

// Section 1.3.4.
constexpr auto t32_rows = std::to_array<Row>({
    {"B<c>.W T3", 0xf800d000, 0xf0008000, direct, conditional, To::t32_imm20, condition_111x_t32},
    {"B.W T4", 0xf800d000, 0xf0009000, direct, plain, To::t32_imm24},
    {"BL T1", 0xf800d000, 0xf000d000, direct, link, To::t32_imm24},
    {"BLX imm T2", 0xf800d001, 0xf000c000, direct, link, To::t32_imm23},
    {"BXJ Rm", 0xfff0d000, 0xf3c08000, indirect},
    {"SUBS pc, LR, #imm8; ERET", 0xffffff00, 0xf3de8f00, indirect, exception_return},
    {"TBB, TBH", 0xfff0ffe0, 0xe8d0f000, indirect},
    {"RFE DB T1", 0xffd00000, 0xe8100000, indirect, exception_return},
    {"RFE IA T2", 0xffd00000, 0xe9900000, indirect, exception_return},
    {"POP.W {..pc}", 0xffff8000, 0xe8bd8000, indirect, function_return},
    {"LDM {..pc}", 0xfe508000, 0xe8108000, indirect, plain, To::unknown, clrm},
    {"LDR.W pc, [Rn, #imm12] T3", 0xfff0f000, 0xf8d0f000, indirect},
    {"LDR.W pc, literal T2", 0xff7ff000, 0xf85ff000, indirect},
    {"LDR.W pc, [SP], #imm8", 0xffffff00, 0xf85dfb00, indirect, function_return},
    {"LDR.W pc, [Rn, #+/-imm8] T4", 0xfff0f800, 0xf850f800, indirect, plain, To::unknown,
     neither_indexed_nor_written_back},
    {"LDR.W pc, [Rn, Rm, LSL] T2", 0xfff0ffc0, 0xf850f000, indirect},
    {"ISB", 0xfffffff0, 0xf3bf8f60, barrier, plain, To::next},
    {"DSB", 0xfffffff0, 0xf3bf8f40, barrier, if_enabled, To::next},
    {"DMB", 0xfffffff0, 0xf3bf8f50, barrier, if_enabled, To::next},
    {"ISB, CP15", 0xffff0fff, 0xee070f95, barrier, plain, To::next},
    {"DSB, CP15", 0xffff0fff, 0xee070f9a, barrier, if_enabled, To::next},
    {"DMB, CP15", 0xffff0fff, 0xee070fba, barrier, if_enabled, To::next},
    {"ENTERX", 0xffffffff, 0xf3bf8f1f, direct, plain, To::next_tee},
    {"LEAVEX", 0xffffffff, 0xf3bf8f0f, direct, plain, To::next_t32},
    {"UDF.W", 0xfff0f000, 0xf7f0a000, none, undefined},
    {"WFE.W, WFI.W", 0xfffffffe, 0xf3af8002, barrier, wait, To::next},
    // Armv8.1-M; UNDEFINED elsewhere (docs/spec/etm4.md, 15.3).
    {"LE", 0xfffff001, 0xf00fc001, direct, conditional, To::t32_loop_end},
    {"LE, without a counter", 0xfffff001, 0xf02fc001, direct, plain, To::t32_loop_end},
    {"LETP", 0xfffff001, 0xf01fc001, direct, conditional, To::t32_loop_end},
    {"WLS", 0xfff0f001, 0xf040c001, direct, conditional, To::t32_loop_start},
    {"WLSTP", 0xffc0f001, 0xf000c001, direct, conditional, To::t32_loop_start},
    {"BXAUT Ra, LR, Rm", 0xffff0ff0, 0xfb5e0f10, indirect, function_return},
    {"BXAUT Ra, Rn, Rm", 0xfff00ff0, 0xfb500f10, indirect},
});

// Section 1.3.5: instructions that differ in ThumbEE; tested before the Thumb table of the same size.
constexpr auto tee_t16_rows = std::to_array<Row>({
    {"HBP", 0xff00, 0xc000, indirect},
    {"HB", 0xff00, 0xc200, indirect},
    {"HBL", 0xff00, 0xc300, indirect, link},
    {"HBLP", 0xfc00, 0xc400, indirect, link},
});
constexpr auto tee_t32_rows = std::to_array<Row>({
    {"BLX imm T2, UNDEFINED here", 0xf800d001, 0xf000c000, none},
});

constexpr Row not_a_waypoint{"", 0, 0, none};

const Row* find(std::span<const Row> rows, std::uint32_t op) {
    for (const Row& row : rows)
        if (row.matches(op)) return &row;
    return nullptr;
}

const Row& find_row(Isa isa, std::uint32_t op, bool wide) {
    const Row* row = nullptr;
    if (isa == Isa::a32)
        row = op >> 28 == 0xf ? find(a32_unconditional_rows, op) : find(a32_rows, op);
    else {
        if (isa == Isa::tee) row = wide ? find(tee_t32_rows, op) : find(tee_t16_rows, op);
        if (row == nullptr) row = wide ? find(t32_rows, op) : find(t16_rows, op);
    }
    return row != nullptr ? *row : not_a_waypoint;
}

/// Bits [first:last] of `op`, moved down to bit 0.
constexpr std::uint32_t bits(std::uint32_t op, unsigned first, unsigned last) {
    return (op >> last) & ((1U << (first - last + 1)) - 1U);
}

/// Sign-extends a number of `width` bits. The result is unsigned, so that adding it wraps.
constexpr std::uint32_t sign_extend(std::uint32_t number, unsigned width) {
    const std::uint32_t sign = 1U << (width - 1);
    return (number ^ sign) - sign;
}

/// The 25-bit offset of B.W T4, BL and BLX: S:I1:I2:imm10:imm11:0.
constexpr std::uint32_t t32_offset(std::uint32_t op) {
    const std::uint32_t s = bits(op, 26, 26);
    const std::uint32_t i1 = bits(op, 13, 13) ^ s ^ 1U;
    const std::uint32_t i2 = bits(op, 11, 11) ^ s ^ 1U;
    return sign_extend(s << 24 | i1 << 23 | i2 << 22 | bits(op, 25, 16) << 12 | bits(op, 10, 0) << 1, 25);
}

/// Distance of the branches LE and WLS: imm11:0.
constexpr std::uint32_t t32_loop_offset(std::uint32_t op) { return bits(op, 10, 1) << 2 | bits(op, 11, 11) << 1; }

struct Destination {
    std::uint32_t address;
    Isa isa;
};

Destination destination(To to, std::uint32_t address, Isa isa, std::uint32_t op, std::uint8_t bytes) {
    const std::uint32_t a32_pc = address + 8;
    const std::uint32_t thumb_pc = address + 4;
    switch (to) {
        case To::unknown: return {0, Isa::a32};
        case To::next: return {address + bytes, isa};
        case To::next_tee: return {address + bytes, Isa::tee};
        case To::next_t32: return {address + bytes, Isa::t32};
        case To::a32_imm24: return {a32_pc + sign_extend(bits(op, 23, 0) << 2, 26), isa};
        case To::a32_imm24_h:
            return {a32_pc + sign_extend(bits(op, 23, 0) << 2, 26) + (bits(op, 24, 24) << 1), Isa::t32};
        case To::t16_imm8: return {thumb_pc + sign_extend(bits(op, 7, 0) << 1, 9), isa};
        case To::t16_imm11: return {thumb_pc + sign_extend(bits(op, 10, 0) << 1, 12), isa};
        case To::t16_cbz: return {thumb_pc + (bits(op, 9, 9) << 6 | bits(op, 7, 3) << 1), isa};
        case To::t32_imm20:
            return {thumb_pc + sign_extend(bits(op, 26, 26) << 20 | bits(op, 11, 11) << 19 | bits(op, 13, 13) << 18 |
                                               bits(op, 21, 16) << 12 | bits(op, 10, 0) << 1,
                                           21),
                    isa};
        case To::t32_imm24: return {thumb_pc + t32_offset(op), isa};
        case To::t32_imm23: return {(thumb_pc & ~3U) + t32_offset(op), Isa::a32};
        case To::t32_loop_end: return {thumb_pc - t32_loop_offset(op), isa};
        case To::t32_loop_start: return {thumb_pc + t32_loop_offset(op), isa};
    }
    return {0, Isa::a32};
}

}  // namespace

Instruction decode_instr(Address address, Isa isa, std::uint32_t opcode, bool thumb_32, const DecodeOptions& options) {
    if (isa != Isa::a32 && isa != Isa::t32 && isa != Isa::tee)
        return isa == Isa::a64 ? decode_a64_instr(address, opcode, options) : Instruction{};

    Instruction instruction;
    instruction.bytes = isa == Isa::a32 || thumb_32 ? 4 : 2;
    instruction.conditional = isa == Isa::a32 && opcode >> 28 < 0xe;

    const Row& row = find_row(isa, opcode, thumb_32);
    if ((row.flags & if_enabled) != 0 && !options.dmb_dsb_waypoints) return instruction;
    if ((row.flags & wait) != 0 && !options.wait_waypoints) return instruction;

    const Destination to =
        destination(row.to, static_cast<std::uint32_t>(address.value), isa, opcode, instruction.bytes);
    instruction.target = {to.address};
    instruction.target_isa = to.isa;
    instruction.waypoint = row.waypoint;
    instruction.link = (row.flags & link) != 0;
    instruction.conditional |= (row.flags & conditional) != 0;
    instruction.exception_return = (row.flags & exception_return) != 0;
    instruction.function_return = (row.flags & function_return) != 0;
    instruction.undefined = (row.flags & undefined) != 0;
    instruction.wait = (row.flags & wait) != 0;
    return instruction;
}

}  // namespace waymark::isa
