#include "waymark/isa/a64.h"

#include <array>

namespace waymark::isa {
namespace {

using Word = std::uint32_t;

constexpr Word bits(Word op, unsigned hi, unsigned lo) { return op >> lo & ((1U << (hi - lo + 1)) - 1U); }

/// Bits `hi:lo`, sign-extended, in words.
constexpr std::int32_t words(Word op, unsigned hi, unsigned lo) {
    const unsigned width = hi - lo + 1;
    return static_cast<std::int32_t>(bits(op, hi, lo) << (32 - width)) >> (30 - width) & ~3;
}

/// Position in the encoding of the size of an instruction's memory access.
enum class Size : std::uint8_t {
    none,
    by_31_30,      // 1 << size
    pair_30,       // two registers of 4 or 8 bytes
    pair_31,       // two registers, opc in 31:30 as in LDP
    simd_pair,     // two registers of 4, 8 or 16 bytes
    simd,          // size and opc[1]
    literal,       // 4 or 8
    simd_literal,  // 4, 8 or 16
    multiple,      // LD1 to ST4 (multiple structures)
    single,        // LD1 to ST4 (single structure), with and without replication
    fixed_4,
    fixed_8,
    fixed_16,
    fixed_32,
    fixed_64,
};

std::uint16_t size_of(Size size, Word op) {
    const auto bytes = [](Word n) { return static_cast<std::uint16_t>(n); };
    switch (size) {
        case Size::none: return 0;
        case Size::by_31_30: return bytes(1U << bits(op, 31, 30));
        case Size::pair_30: return bytes(8U << bits(op, 30, 30));
        case Size::pair_31: return bytes(bits(op, 31, 31) != 0 ? 16 : 8);
        case Size::simd_pair: return bytes(8U << bits(op, 31, 30));
        case Size::simd: return bytes(bits(op, 23, 23) != 0 ? 16U : 1U << bits(op, 31, 30));
        case Size::literal: return bytes(bits(op, 31, 30) == 1 ? 8 : 4);
        case Size::simd_literal: return bytes(4U << bits(op, 31, 30));
        case Size::multiple: {
            constexpr std::array<std::uint8_t, 16> registers{4, 0, 4, 0, 3, 0, 3, 1, 2, 0, 2, 0, 0, 0, 0, 0};
            return bytes((bits(op, 30, 30) != 0 ? 16U : 8U) * registers[bits(op, 15, 12)]);
        }
        case Size::single: {
            const Word structures = (bits(op, 13, 13) << 1 | bits(op, 21, 21)) + 1;
            const Word scale = bits(op, 15, 14);
            const Word log = scale == 3 ? bits(op, 11, 10) : scale == 2 && bits(op, 10, 10) != 0 ? 3 : scale;
            return bytes(structures << log);
        }
        case Size::fixed_4: return 4;
        case Size::fixed_8: return 8;
        case Size::fixed_16: return 16;
        case Size::fixed_32: return 32;
        case Size::fixed_64: return 64;
    }
    return 0;
}

/// The bits for acquire and release.
enum class Order : std::uint8_t { none, always, bit_15, bits_22_15, bits_23_22 };

/// The encoding of a direct branch's offset.
enum class To : std::uint8_t { none, imm26, imm19, imm14 };

/// The properties of the instructions that a row matches.
struct Row {
    std::string_view name;
    Word mask, value;
    A64Class kind = A64Class::other;
    A64Work work = A64Work::integer;
    A64Data data = A64Data::general;
    Size size = Size::none;
    Order order = Order::none;
    To to = To::none;
    bool exclusive = false, atomic = false, predicated = false, gather_scatter = false;
    bool conditional = false, indirect = false, link = false, function_return = false, exception_return = false;
    bool floating_point = false, simd = false, sve = false, system_call = false, undefined = false;
    bool may_be_none = false;  // of an access

    [[nodiscard]] constexpr bool matches(Word op) const { return (op & mask) == value; }
};

using enum A64Class;

constexpr Row general(std::string_view name, Word mask, Word value, A64Class kind, Size size,
                      Order order = Order::none) {
    return {.name = name,
            .mask = mask,
            .value = value,
            .kind = kind,
            .work = A64Work::memory,
            .size = size,
            .order = order};
}
constexpr Row exclusive(std::string_view name, Word mask, Word value, A64Class kind, Size size) {
    Row row = general(name, mask, value, kind, size, Order::bit_15);
    row.exclusive = true;
    row.may_be_none = kind == store;
    return row;
}
constexpr Row atomic(std::string_view name, Word mask, Word value, A64Class kind, Size size, Order order) {
    Row row = general(name, mask, value, kind, size, order);
    row.atomic = true;
    return row;
}
constexpr Row moves(A64Data data, std::string_view name, Word mask, Word value, A64Class kind, Size size = Size::none) {
    Row row = general(name, mask, value, kind, size);
    row.data = data;
    row.may_be_none = data == A64Data::copy || data == A64Data::set;
    row.sve = data == A64Data::sve || data == A64Data::sme;
    return row;
}
constexpr Row simd(std::string_view name, Word mask, Word value, A64Class kind, Size size) {
    return moves(A64Data::simd_fp, name, mask, value, kind, size);
}
enum class Elements : std::uint8_t { all, predicated, gathered };
constexpr Row sve(std::string_view name, Word mask, Word value, A64Class kind, Elements elements) {
    Row row = moves(A64Data::sve, name, mask, value, kind);
    row.predicated = row.may_be_none = elements != Elements::all;
    row.gather_scatter = elements == Elements::gathered;
    return row;
}
constexpr Row works(std::string_view name, Word mask, Word value, A64Work work, bool conditional = false) {
    return {.name = name, .mask = mask, .value = value, .work = work, .conditional = conditional};
}
constexpr Row scalar(std::string_view name, Word mask, Word value, A64Work work = A64Work::floating_point,
                     bool conditional = false) {
    return {
        .name = name, .mask = mask, .value = value, .work = work, .conditional = conditional, .floating_point = true};
}
constexpr Row vector(std::string_view name, Word mask, Word value, A64Work work = A64Work::vector) {
    return {.name = name, .mask = mask, .value = value, .work = work, .simd = true};
}
constexpr Row vector_fp(std::string_view name, Word mask, Word value, A64Work work = A64Work::floating_point) {
    Row row = vector(name, mask, value, work);
    row.floating_point = true;
    return row;
}
constexpr Row direct(std::string_view name, Word mask, Word value, To to, bool conditional, bool link = false) {
    return {.name = name,
            .mask = mask,
            .value = value,
            .kind = branch,
            .work = A64Work::branch,
            .to = to,
            .conditional = conditional,
            .link = link};
}
enum class Way : std::uint8_t { jump, call, function_return, exception_return };
constexpr Row indirect(std::string_view name, Word mask, Word value, Way way) {
    return {.name = name,
            .mask = mask,
            .value = value,
            .kind = branch,
            .work = A64Work::branch,
            .indirect = true,
            .link = way == Way::call,
            .function_return = way == Way::function_return,
            .exception_return = way == Way::exception_return};
}

// In the order of the encoding groups of the architecture. The first row that matches decides.
constexpr auto rows = std::to_array<Row>({
    // Reserved, SME
    {.name = "UDF", .mask = 0xffff0000, .value = 0x00000000, .undefined = true},
    moves(A64Data::sme, "LDR ZA", 0xffe00000, 0xe1000000, load),
    moves(A64Data::sme, "STR ZA", 0xffe00000, 0xe1200000, store),
    {.name = "LD1 ZA",
     .mask = 0xfe200000,
     .value = 0xe0000000,
     .kind = load,
     .work = A64Work::memory,
     .data = A64Data::sme,
     .predicated = true,
     .sve = true,
     .may_be_none = true},
    {.name = "ST1 ZA",
     .mask = 0xfe200000,
     .value = 0xe0200000,
     .kind = store,
     .work = A64Work::memory,
     .data = A64Data::sme,
     .predicated = true,
     .sve = true,
     .may_be_none = true},
    {.name = "SME", .mask = 0x9e000000, .value = 0x80000000, .work = A64Work::vector, .sve = true},

    // SVE: prefetches come before the loads that use the same encodings
    works("PRF (contiguous, imm)", 0xffc08010, 0x85c00000, A64Work::system),
    works("PRF (contiguous, reg)", 0xfe60e010, 0x8400c000, A64Work::system),
    works("PRF (32-bit, vector + imm)", 0xfe60e010, 0x8400e000, A64Work::system),
    works("PRF (32-bit, scalar + vector)", 0xffa08010, 0x84200000, A64Work::system),
    works("PRF (64-bit, vector + imm)", 0xfe60e010, 0xc400e000, A64Work::system),
    works("PRF (64-bit, unpacked)", 0xffa08010, 0xc4200000, A64Work::system),
    works("PRF (64-bit, scalar + vector)", 0xffe08010, 0xc4608000, A64Work::system),
    sve("LDR (predicate)", 0xffc0e000, 0x85800000, load, Elements::all),
    sve("LDR (vector)", 0xffc0e000, 0x85804000, load, Elements::all),
    sve("LD1R", 0xfe408000, 0x84408000, load, Elements::predicated),
    sve("LD1 (32-bit gather)", 0xfe000000, 0x84000000, load, Elements::gathered),
    sve("LD1 (contiguous)", 0xfe000000, 0xa4000000, load, Elements::predicated),
    sve("LD1 (64-bit gather)", 0xfe000000, 0xc4000000, load, Elements::gathered),
    sve("STR (predicate)", 0xffc0e000, 0xe5800000, store, Elements::all),
    sve("STR (vector)", 0xffc0e000, 0xe5804000, store, Elements::all),
    sve("ST1 (scatter, non-temporal)", 0xfe00e000, 0xe4002000, store, Elements::gathered),
    sve("ST1 (scatter)", 0xfe00e000, 0xe4008000, store, Elements::gathered),
    sve("ST1 (scatter, vector + imm)", 0xfe00e000, 0xe400a000, store, Elements::gathered),
    sve("ST1 (scatter, unpacked)", 0xfe00e000, 0xe400c000, store, Elements::gathered),
    sve("ST1 (contiguous)", 0xfe000000, 0xe4000000, store, Elements::predicated),
    {.name = "SVE", .mask = 0x1e000000, .value = 0x04000000, .work = A64Work::vector, .sve = true},

    // Data processing, immediate
    works("data-processing, immediate", 0x1c000000, 0x10000000, A64Work::integer),

    // Branches, exceptions, system
    direct("B.cond", 0xff000000, 0x54000000, To::imm19, true),
    {.name = "SVC", .mask = 0xffe0001f, .value = 0xd4000001, .work = A64Work::system, .system_call = true},
    works("exception", 0xff000000, 0xd4000000, A64Work::system),
    works("system", 0xff000000, 0xd5000000, A64Work::system),
    indirect("BR", 0xfffffc1f, 0xd61f0000, Way::jump),
    indirect("BRAA, BRAB", 0xfefff800, 0xd61f0800, Way::jump),
    indirect("BLR", 0xfffffc1f, 0xd63f0000, Way::call),
    indirect("BLRAA, BLRAB", 0xfefff800, 0xd63f0800, Way::call),
    indirect("RET", 0xfffffc1f, 0xd65f0000, Way::function_return),
    indirect("RETAA, RETAB", 0xfffffbff, 0xd65f0bff, Way::function_return),
    indirect("ERET", 0xffffffff, 0xd69f03e0, Way::exception_return),
    indirect("ERETAA, ERETAB", 0xfffffbff, 0xd69f0bff, Way::exception_return),
    direct("B", 0xfc000000, 0x14000000, To::imm26, false),
    direct("BL", 0xfc000000, 0x94000000, To::imm26, false, true),
    direct("CBZ, CBNZ", 0x7e000000, 0x34000000, To::imm19, true),
    direct("TBZ, TBNZ", 0x7e000000, 0x36000000, To::imm14, true),

    // Loads and stores
    simd("LD1-4 (multiple)", 0xbfff0000, 0x0c400000, load, Size::multiple),
    simd("ST1-4 (multiple)", 0xbfff0000, 0x0c000000, store, Size::multiple),
    simd("LD1-4 (multiple, post)", 0xbfe00000, 0x0cc00000, load, Size::multiple),
    simd("ST1-4 (multiple, post)", 0xbfe00000, 0x0c800000, store, Size::multiple),
    simd("LD1-4 (single)", 0xbf400000, 0x0d400000, load, Size::single),
    simd("ST1-4 (single)", 0xbf400000, 0x0d000000, store, Size::single),
    atomic("CASP", 0xbfa07c00, 0x08207c00, load_atomic, Size::pair_30, Order::bits_22_15),
    atomic("CAS", 0x3fa07c00, 0x08a07c00, load_atomic, Size::by_31_30, Order::bits_22_15),
    exclusive("STXR, STLXR", 0x3fe00000, 0x08000000, store, Size::by_31_30),
    exclusive("LDXR, LDAXR", 0x3fe00000, 0x08400000, load, Size::by_31_30),
    exclusive("STXP, STLXP", 0xbfe00000, 0x88200000, store, Size::pair_30),
    exclusive("LDXP, LDAXP", 0xbfe00000, 0x88600000, load, Size::pair_30),
    general("STLLR, STLR", 0x3fe00000, 0x08800000, store, Size::by_31_30, Order::always),
    general("LDLAR, LDAR", 0x3fe00000, 0x08c00000, load, Size::by_31_30, Order::always),
    general("STLUR", 0x3fe00c00, 0x19000000, store, Size::by_31_30, Order::always),
    general("LDAPUR", 0x3f200c00, 0x19000000, load, Size::by_31_30, Order::always),
    moves(A64Data::tag, "STZGM", 0xffe00c00, 0xd9200000, store),
    moves(A64Data::tag, "LDG", 0xffe00c00, 0xd9600000, load),
    moves(A64Data::tag, "STGM", 0xffe00c00, 0xd9a00000, store),
    moves(A64Data::tag, "LDGM", 0xffe00c00, 0xd9e00000, load),
    moves(A64Data::tag, "STG", 0xff200000, 0xd9200000, store),
    moves(A64Data::set, "SET", 0xffe00c00, 0x19c00400, store),
    moves(A64Data::set, "SETG", 0xffe00c00, 0x1dc00400, store),
    moves(A64Data::copy, "CPY", 0xfb200c00, 0x19000400, load),
    works("PRFM (literal)", 0xff000000, 0xd8000000, A64Work::system),
    general("LDRSW (literal)", 0xff000000, 0x98000000, load, Size::fixed_4),
    general("LDR (literal)", 0x3f000000, 0x18000000, load, Size::literal),
    simd("LDR (literal, SIMD&FP)", 0x3f000000, 0x1c000000, load, Size::simd_literal),
    moves(A64Data::tag, "STGP", 0xfe400000, 0x68000000, store, Size::fixed_16),
    general("LDPSW", 0xfe400000, 0x68400000, load, Size::fixed_8),
    simd("LDP, LDNP (SIMD&FP)", 0x3e400000, 0x2c400000, load, Size::simd_pair),
    simd("STP, STNP (SIMD&FP)", 0x3e400000, 0x2c000000, store, Size::simd_pair),
    general("LDP, LDNP", 0x7e400000, 0x28400000, load, Size::pair_31),
    general("STP, STNP", 0x7e400000, 0x28000000, store, Size::pair_31),
    general("LDAPR", 0x3ffffc00, 0x38bfc000, load, Size::by_31_30, Order::always),
    general("LD64B", 0xfffffc00, 0xf83fd000, load, Size::fixed_64),
    general("ST64B", 0xfffffc00, 0xf83f9000, store, Size::fixed_64),
    general("ST64BV", 0xffe0ec00, 0xf820a000, store, Size::fixed_64),
    atomic("SWP", 0x3f20fc00, 0x38208000, load_atomic, Size::by_31_30, Order::bits_23_22),
    atomic("STADD and the like", 0x3fa08c1f, 0x3820001f, store, Size::by_31_30, Order::bits_23_22),
    atomic("LDADD and the like", 0x3f208c00, 0x38200000, load_atomic, Size::by_31_30, Order::bits_23_22),
    general("LDRAA, LDRAB", 0xff200400, 0xf8200400, load, Size::fixed_8),
    works("PRFM (imm)", 0xffc00000, 0xf9800000, A64Work::system),
    works("PRFM (reg)", 0xffe00c00, 0xf8a00800, A64Work::system),
    works("PRFUM", 0xffe00c00, 0xf8800000, A64Work::system),
    simd("STR (SIMD&FP, imm)", 0x3f400000, 0x3d000000, store, Size::simd),
    simd("LDR (SIMD&FP, imm)", 0x3f400000, 0x3d400000, load, Size::simd),
    simd("STR (SIMD&FP)", 0x3f400000, 0x3c000000, store, Size::simd),
    simd("LDR (SIMD&FP)", 0x3f400000, 0x3c400000, load, Size::simd),
    general("STR (imm)", 0x3fc00000, 0x39000000, store, Size::by_31_30),
    general("LDR (imm)", 0x3f000000, 0x39000000, load, Size::by_31_30),
    general("STR", 0x3fc00000, 0x38000000, store, Size::by_31_30),
    general("LDR", 0x3f000000, 0x38000000, load, Size::by_31_30),

    // Data processing, register
    works("CSEL and the like", 0x3fe00800, 0x1a800000, A64Work::integer, true),
    works("CCMP, CCMN", 0x3fe00410, 0x3a400000, A64Work::integer, true),
    works("UDIV, SDIV", 0x7fe0f800, 0x1ac00800, A64Work::divide),
    works("CRC32", 0x7fe0e000, 0x1ac04000, A64Work::multiply),
    works("data-processing, three sources", 0x1f000000, 0x1b000000, A64Work::multiply),
    works("data-processing, register", 0x0e000000, 0x0a000000, A64Work::integer),

    // Scalar floating point
    scalar("FCSEL", 0xff200c00, 0x1e200c00, A64Work::floating_point, true),
    scalar("FCCMP, FCCMPE", 0xff200c00, 0x1e200400, A64Work::floating_point, true),
    scalar("FDIV", 0xff20fc00, 0x1e201800, A64Work::floating_point_divide),
    scalar("FSQRT", 0xff3ffc00, 0x1e21c000, A64Work::floating_point_divide),
    scalar("floating point", 0x5e000000, 0x1e000000),

    // Advanced SIMD; with bits 30 and 28 set it is scalar
    vector_fp("FDIV (vector)", 0xbfa0fc00, 0x2e20fc00, A64Work::floating_point_divide),
    vector_fp("FDIV (vector, half)", 0xbfe0fc00, 0x2e403c00, A64Work::floating_point_divide),
    vector_fp("FSQRT (vector)", 0xbfbffc00, 0x2ea1f800, A64Work::floating_point_divide),
    vector_fp("FSQRT (vector, half)", 0xbffffc00, 0x2ef9f800, A64Work::floating_point_divide),
    vector_fp("three same, floating point", 0x8f20c400, 0x0e20c400),
    vector_fp("three same, half", 0x8f60c400, 0x0e400400),
    vector_fp("three same extra, complex and BF16", 0x8f20c400, 0x0e00c400),
    vector("URECPE, URSQRTE", 0x8fbffc00, 0x0ea1c800),
    vector_fp("two-register, comparisons with zero", 0x8f3fcc00, 0x0e20c800),
    vector_fp("two-register, narrower and wider", 0x8f3fec00, 0x0e216800),
    vector_fp("two-register, conversions and estimates", 0x8f3f8c00, 0x0e218800),
    vector_fp("two-register, half", 0x8f7e0c00, 0x0e780800),
    vector_fp("across lanes and pairwise, floating point", 0x8f3fcc00, 0x0e30c800),
    vector_fp("FMOV (vector, imm)", 0x9ff8f400, 0x0f00f400),
    vector("modified immediate", 0x9ff80400, 0x0f000400),
    vector_fp("SCVTF, UCVTF (fixed-point)", 0x8f80fc00, 0x0f00e400),
    vector_fp("FCVTZS, FCVTZU (fixed-point)", 0x8f80fc00, 0x0f00fc00),
    vector_fp("FMLA, FMLS (by element)", 0xaf00b400, 0x0f001000),
    vector_fp("FMUL, FMULX (by element)", 0x8f00f400, 0x0f009000),
    vector_fp("FCMLA (by element)", 0xaf009400, 0x2f001000),
    vector_fp("FMLAL, FMLSL (by element)", 0xafc0b400, 0x0f800000),
    vector_fp("FMLAL2, FMLSL2 (by element)", 0xafc0b400, 0x2f808000),
    vector_fp("BFDOT, BFMLAL (by element)", 0xaf40f400, 0x0f40f000),
    vector("Advanced SIMD", 0x0e000000, 0x0e000000),
});

std::int32_t offset_of(To to, Word op) {
    switch (to) {
        case To::none: return 0;
        case To::imm26: return words(op, 25, 0);
        case To::imm19: return words(op, 23, 5);
        case To::imm14: return words(op, 18, 5);
    }
    return 0;
}

bool is_ordered(Order order, Word op) {
    switch (order) {
        case Order::none: return false;
        case Order::always: return true;
        case Order::bit_15: return bits(op, 15, 15) != 0;
        case Order::bits_22_15: return bits(op, 22, 22) != 0 || bits(op, 15, 15) != 0;
        case Order::bits_23_22: return bits(op, 23, 22) != 0;
    }
    return false;
}

}  // namespace

bool may_be_a64_branch(std::uint32_t word) {
    // Indexed by the highest byte of an instruction: whether a row can match.
    static constexpr std::array<bool, 256> may = [] {
        std::array<bool, 256> all{};
        for (Word byte = 0; byte < all.size(); ++byte)
            for (const Row& row : rows)
                if (row.kind == A64Class::branch && ((byte << 24 ^ row.value) & row.mask & 0xff00'0000U) == 0)
                    all[byte] = true;
        return all;
    }();
    return may[word >> 24];
}

A64Instruction decode_a64(std::uint32_t word) {
    for (const Row& row : rows) {
        if (!row.matches(word)) continue;
        const bool accesses = row.work == A64Work::memory;
        return {.name = row.name,
                .kind = row.kind,
                .work = row.work,
                .data = row.data,
                .access_bytes = size_of(row.size, word),
                .offset = offset_of(row.to, word),
                .acquire_release = is_ordered(row.order, word),
                .exclusive = row.exclusive,
                .atomic = row.atomic,
                .predicated = row.predicated,
                .gather_scatter = row.gather_scatter,
                .conditional = row.conditional,
                .indirect = row.indirect,
                .link = row.link,
                .function_return = row.function_return,
                .exception_return = row.exception_return,
                .floating_point = row.floating_point,
                .simd = row.simd,
                .sve = row.sve,
                .system_call = row.system_call,
                .undefined = row.undefined,
                .must_access = accesses && !row.may_be_none,
                .may_fault = accesses || row.undefined};
    }
    return {.undefined = true, .may_fault = true};
}

std::span<const std::string_view> a64_names() {
    static const auto names = [] {
        std::array<std::string_view, rows.size()> all;
        for (std::size_t i = 0; i < rows.size(); ++i) all[i] = rows[i].name;
        return all;
    }();
    return names;
}

}  // namespace waymark::isa
