/// Thumb's IT blocks, as far as a walk through code needs them.
#pragma once

#include <bit>
#include <cstdint>

#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"

namespace waymark::isa {

/// From an IT instruction up to the last instruction that it covers, where all are as long as they can be.
inline constexpr unsigned longest_it_block = 2 + 3 * 4;
/// How far from its own address an IT instruction reaches, at most, as the start of what it makes conditional. 0: the
/// halfword is none, or makes nothing conditional.
[[nodiscard]] constexpr unsigned it_block_bytes(std::uint32_t halfword) {
    const std::uint32_t mask = halfword & 0xfU;
    if ((halfword & 0xff00U) != 0xbf00U || mask == 0 || (halfword >> 4 & 0xfU) >= 0xe) return 0;
    return 2 + 4 * (3U - static_cast<unsigned>(std::countr_zero(mask)));
}

/// Which instructions of a walk depend on a condition of an IT instruction before them. A walk that begins inside an IT
/// block does not see the IT instruction.
class ItBlock {
public:
    /// The next instruction of the walk. True: an IT instruction may keep it from executing, so that even one that is
    /// permanently undefined may be passed.
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
    std::uint8_t left_ = 0;  ///< instructions that the last IT instruction still covers
    bool always_ = false;
};

}  // namespace waymark::isa
