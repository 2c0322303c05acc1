/// Thumb's IT blocks, as far as walks through code need them.
#pragma once

#include <bit>
#include <cstdint>

#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"

namespace waymark::isa {

/// Maximum size of an IT instruction with all instructions that it covers.
inline constexpr unsigned longest_it_block = 2 + 3 * 4;
/// Maximum distance from an IT instruction's own address to the beginning of an instruction that it makes conditional.
/// 0: the halfword is not an IT instruction, or makes nothing conditional.
[[nodiscard]] constexpr unsigned it_block_bytes(std::uint32_t halfword) {
    const std::uint32_t mask = halfword & 0xfU;
    if ((halfword & 0xff00U) != 0xbf00U || mask == 0 || (halfword >> 4 & 0xfU) >= 0xe) return 0;
    return 2 + 4 * (3U - static_cast<unsigned>(std::countr_zero(mask)));
}

/// Tracks which instructions of a walk are conditional because of an earlier IT instruction. A walk that begins inside
/// an IT block does not see the IT instruction.
class ItBlock {
public:
    /// Takes the next instruction of the walk. Returns true if an IT instruction may prevent its execution, so that
    /// execution may pass even a permanently undefined instruction.
    bool next(const Fetched& instruction, Isa isa) {
        if (isa == Isa::a32 || isa == Isa::a64) return false;
        if (left_ != 0) {
            --left_;
            return !always_;
        }
        constexpr std::uint32_t mask = 0xf;
        if (instruction.bytes == 2 && (instruction.opcode & 0xff00U) == 0xbf00U && (instruction.opcode & mask) != 0) {
            left_ = static_cast<std::uint8_t>(4 - std::countr_zero(instruction.opcode & mask));
            always_ = (instruction.opcode >> 4 & mask) >= 0xe;  // IT AL
        }
        return false;
    }

private:
    std::uint8_t left_ = 0;  ///< number of instructions that the last IT instruction still covers
    bool always_ = false;
};

}  // namespace waymark::isa
