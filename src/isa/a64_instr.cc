#include "a64_instr.h"

#include <array>
#include <string_view>

#include "waymark/isa/a64.h"

namespace waymark::isa {

namespace {

/// Properties of instructions for tracing that the table in a64.cc lacks, because the disassembler with which that
/// table is compared does not know the instruction, or because only tracing distinguishes it (docs/spec/etm4.md, 15.1).
struct Row {
    std::string_view name;
    std::uint32_t mask, value;
    enum class Kind : std::uint8_t { compare_and_branch, function_return, exception_return, isb, wait, tstart } kind;
    std::uint32_t except_mask = 0, except_value = 1;  ///< opcodes that are excluded although the mask matches them

    [[nodiscard]] constexpr bool matches(std::uint32_t op) const {
        return (op & mask) == value && (op & except_mask) != except_value;
    }
    /// Whether an opcode with this highest byte can match.
    [[nodiscard]] constexpr bool may_match(std::uint32_t highest_byte) const {
        return ((highest_byte << 24 ^ value) & mask & 0xff00'0000U) == 0;
    }
};
using enum Row::Kind;

constexpr auto rows = std::to_array<Row>({
    {"RETAASPPC, RETABSPPC", 0xffc0001f, 0x5500001f, function_return},
    {"RETAASPPCR, RETABSPPCR", 0xfffffbe0, 0xd65f0be0, function_return, 0x1f, 0x1f},  // Rm 31 is RETAA, RETAB
    {"TEXIT", 0xfffffbff, 0xd6ff03e0, exception_return},
    {"CB<cc>, CBB<cc>, CBH<cc> (register, W)", 0xff000000, 0x74000000, compare_and_branch, 0xc000, 0x4000},
    {"CB<cc> (register, X)", 0xff00c000, 0xf4000000, compare_and_branch},
    {"CB<cc> (immediate)", 0x7f004000, 0x75000000, compare_and_branch},
    {"ISB", 0xfffff0ff, 0xd50330df, isb},
    {"WFE, WFI", 0xffffffdf, 0xd503205f, wait},
    {"WFET, WFIT", 0xffffffc0, 0xd5031000, wait},
    {"TSTART", 0xffffffe0, 0xd5233060, tstart},
});

/// Indexed by the highest byte of an opcode: whether a row can match.
constexpr std::array<bool, 256> may_match = [] {
    std::array<bool, 256> may{};
    for (std::uint32_t byte = 0; byte < may.size(); ++byte)
        for (const Row& row : rows) may[byte] = may[byte] || row.may_match(byte);
    return may;
}();

void fill(Instruction& instruction, const Row& row, Address address, std::uint32_t word, const DecodeOptions& options) {
    const auto barrier = [&] {
        instruction.waypoint = Waypoint::barrier;
        instruction.target = address + 4;
        instruction.target_isa = Isa::a64;
    };
    switch (row.kind) {
        case compare_and_branch: {
            // Bits 13:5, sign-extended, count instructions.
            const std::uint64_t imm9 = word >> 5 & 0x1ffU;
            instruction.waypoint = Waypoint::direct;
            instruction.conditional = true;
            instruction.target = {address.value + ((imm9 ^ 0x100U) - 0x100U) * 4};
            instruction.target_isa = Isa::a64;
            break;
        }
        case function_return:
            instruction.waypoint = Waypoint::indirect;
            instruction.function_return = true;
            break;
        case exception_return:
            instruction.waypoint = Waypoint::indirect;
            instruction.exception_return = true;
            break;
        case isb: barrier(); break;
        case wait:
            if (!options.wait_waypoints) break;
            barrier();
            instruction.wait = true;
            break;
        case tstart:
            if (!options.transaction_start_waypoints) break;
            barrier();
            instruction.transaction_start = true;
            break;
    }
}

}  // namespace

Instruction decode_a64_instr(Address address, std::uint32_t word, const DecodeOptions& options) {
    Instruction instruction;
    instruction.bytes = 4;
    instruction.undefined = word >> 16 == 0;
    // Most instructions are in neither table, and both tables are long.
    if (!may_match[word >> 24] && !may_be_a64_branch(word)) return instruction;
    for (const Row& row : rows)
        if (row.matches(word)) {
            fill(instruction, row, address, word, options);
            return instruction;
        }
    const A64Instruction a64 = decode_a64(word);
    if (a64.kind != A64Class::branch) return instruction;
    instruction.waypoint = a64.indirect ? Waypoint::indirect : Waypoint::direct;
    if (!a64.indirect) {
        instruction.target = {address.value + static_cast<std::uint64_t>(std::int64_t{a64.offset})};
        instruction.target_isa = Isa::a64;
    }
    instruction.link = a64.link;
    instruction.conditional = a64.conditional;
    instruction.exception_return = a64.exception_return;
    instruction.function_return = a64.function_return;
    return instruction;
}

}  // namespace waymark::isa
