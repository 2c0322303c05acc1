/// Which instructions may begin and not complete: instructions that access memory, and so may fault, or that QEMU may
/// start over. The plugin watches them, perhaps in the wrong instruction set; the recorder corrects that.
#pragma once

#include <bit>
#include <cstdint>

namespace waymark::record {

/// `word`: four bytes of code, least significant first; for 16-bit Thumb only the low half counts.
[[nodiscard]] constexpr bool is_thumb_32_word(std::uint32_t word) { return (word & 0xf800) >= 0xe800; }

[[nodiscard]] constexpr bool may_stop_arm(std::uint32_t word) {
    const std::uint32_t op = word >> 25 & 7;
    if (word >> 28 == 0xf) return op == 2 || op == 4 || op == 6;  // Advanced SIMD accesses, RFE and SRS, LDC2
    switch (op) {
        case 0: return (word & 0x90) == 0x90;  // extra loads and stores, exclusives; multiplies do no harm
        case 1:
        case 5: return false;
        case 3: return (word & 0x10) == 0;           // the others are media instructions
        case 7: return (word & 0x01000010) == 0x10;  // coprocessor registers
        default: return true;
    }
}

[[nodiscard]] constexpr bool may_stop_thumb(std::uint32_t word) {
    if (is_thumb_32_word(word))
        return (word & 0xfe00) == 0xe800 || (word & 0xfe00) == 0xf800 || (word & 0xec00) == 0xec00;
    const std::uint32_t op = word >> 12 & 0xf;
    return (word & 0xf800) == 0x4800 || (op >= 5 && op <= 9) || op == 0xc || (word & 0xf600) == 0xb400;
}

/// Loads and stores, also of SVE and SME; system instructions, of which DC ZVA stores.
[[nodiscard]] constexpr bool may_stop_a64(std::uint32_t word) {
    return (word & 0x0a000000) == 0x08000000 || (word & 0x9e000000) == 0x84000000 ||
           (word & 0x9e000000) == 0x80000000 || (word & 0xfff80000) == 0xd5080000;
}

/// Exclusives, compare and swap, and the atomics of LSE: QEMU may leave their accesses to a helper function.
[[nodiscard]] constexpr bool may_be_atomic_a64(std::uint32_t word) {
    return (word & 0x3f000000) == 0x08000000 || (word & 0x3b200c00) == 0x38200000;
}

/// Accesses that QEMU may leave to a helper function: exclusives and SWP.
[[nodiscard]] constexpr bool may_be_atomic(std::uint32_t word, bool thumb) {
    return thumb ? (word & 0xff60) == 0xe840 : (word & 0x0f0000f0) == 0x01000090;
}

/// Number of accesses that complete an instruction at the end of a block: an instruction that loads the pc, or one
/// before the end of a page.
[[nodiscard]] constexpr std::uint32_t accesses_of(std::uint32_t word, bool thumb) {
    const auto listed = [](std::uint32_t list) { return static_cast<std::uint32_t>(std::popcount(list)); };
    if (!thumb) return (word & 0x0e100000) == 0x08100000 ? listed(word & 0xffff) : 1;
    if (!is_thumb_32_word(word)) return (word & 0xff00) == 0xbd00 ? listed(word & 0xff) + 1 : 1;
    return (word & 0xfe50) == 0xe810 ? listed(word >> 16) : 1;
}

}  // namespace waymark::record
