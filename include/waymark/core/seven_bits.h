/// Reads numbers that a wire format sends as seven bits in each byte, without a branch for each byte.
#pragma once

#include <bit>
#include <cstdint>

#include "waymark/core/types.h"

namespace waymark {

/// The eight bytes at `at`, the first in the lowest bits.
[[nodiscard]] WM_INLINE std::uint64_t eight_bytes(const std::uint8_t* at) {
    std::uint64_t bytes = 0;
    for (unsigned i = 0; i < 8; ++i) bytes |= std::uint64_t{at[i]} << 8 * i;
    return bytes;
}

/// A number whose bytes, except the last, have bit 7 set: the low seven bits of each byte, lowest bits first.
struct SevenBits {
    std::uint64_t value;
    unsigned bytes;  ///< 1 to 8
    bool whole;      ///< false: bit 7 is set in all eight bytes

    /// Reads the number in the lowest bytes of `wire`.
    [[nodiscard]] WM_INLINE static SevenBits of(std::uint64_t wire) {
        const std::uint64_t ends = ~wire & 0x8080'8080'8080'8080U;
        std::uint64_t v = wire & (ends ^ (ends - 1)) & 0x7f7f'7f7f'7f7f'7f7fU;
        // Joins neighbours: 14 bits in each 16, 28 in each 32, 56.
        v = (v & 0x007f'007f'007f'007fU) | (v & 0x7f00'7f00'7f00'7f00U) >> 1;
        v = (v & 0x0000'3fff'0000'3fffU) | (v & 0x3fff'0000'3fff'0000U) >> 2;
        v = (v & 0x0000'0000'0fff'ffffU) | (v & 0x0fff'ffff'0000'0000U) >> 4;
        return {v, (static_cast<unsigned>(std::countr_zero(ends)) + 1) / 8, ends != 0};
    }
};

}  // namespace waymark
