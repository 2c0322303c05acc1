/// Numbers as text, in a few nanoseconds each: for lists of millions of lines.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "waymark/core/types.h"

namespace waymark {

/// Room that the functions below may write to, even if they use fewer bytes: copies of fixed length are
/// fast.
inline constexpr std::size_t number_room = 24;

/// The texts 00, 01, … 99.
inline constexpr auto decimal_pairs = [] {
    std::array<char, 200> out{};
    for (std::size_t i = 0; i < 100; ++i) {
        out[2 * i] = static_cast<char>('0' + i / 10);
        out[2 * i + 1] = static_cast<char>('0' + i % 10);
    }
    return out;
}();

/// Number of digits of a decimal number.
[[nodiscard]] WM_INLINE unsigned decimal_digits(std::uint64_t value) {
    constexpr auto powers = [] {
        std::array<std::uint64_t, 20> out{};  // 0, 10, 100, …
        for (std::uint64_t power = 1, i = 1; i < out.size(); ++i) out[i] = power *= 10;
        return out;
    }();
    // log10(2) is 1233 / 4096, rounded down: the estimate is right or one too small.
    const unsigned least = static_cast<unsigned>(std::bit_width(value)) * 1233 >> 12;
    return least + (value >= powers[least] ? 1U : 0U);
}

/// Writes a number; returns the end of the text. There must be room for `number_room` characters.
[[nodiscard]] WM_INLINE char* put_decimal(char* at, std::uint64_t value) {
    if (value < 10) {
        *at = static_cast<char>('0' + value);
        return at + 1;
    }
    if (value < 100) {
        std::memcpy(at, &decimal_pairs[2 * value], 2);
        return at + 2;
    }
    char* const end = at + decimal_digits(value);
    char* to = end;
    for (; value >= 100; value /= 100) {
        to -= 2;
        std::memcpy(to, &decimal_pairs[2 * (value % 100)], 2);
    }
    if (value >= 10)
        std::memcpy(at, &decimal_pairs[2 * value], 2);
    else
        *at = static_cast<char>('0' + value);
    return end;
}
/// The same in hexadecimal digits, without 0x.
[[nodiscard]] WM_INLINE char* put_hexadecimal_digits(char* at, std::uint64_t value) {
    // Converts eight digits at a time: each digit becomes a byte, and digits above 9 are then moved to the letters.
    const auto eight = [](std::uint64_t half) __attribute__((always_inline)) {
        half = (half & 0xffff) | (half & 0xffff0000) << 16;
        half = (half & 0x000000ff'000000ff) | (half & 0x0000ff00'0000ff00) << 8;
        half = (half & 0x000f000f'000f000f) | (half & 0x00f000f0'00f000f0) << 4;
        const std::uint64_t letters = ((half + 0x06060606'06060606) >> 4 & 0x01010101'01010101) * ('a' - '0' - 10);
        std::uint64_t text = half + 0x30303030'30303030 + letters;
        if constexpr (std::endian::native == std::endian::little) text = __builtin_bswap64(text);
        return text;
    };
    const unsigned digits = (static_cast<unsigned>(std::bit_width(value | 1)) + 3) / 4;
    if (digits <= 8) {
        const std::uint64_t text = eight(value << (32 - 4 * digits));
        std::memcpy(at, &text, 8);
        return at + digits;
    }
    value <<= 64 - 4 * digits;
    const std::array<std::uint64_t, 2> halves{eight(value >> 32), eight(value & 0xffffffff)};
    std::memcpy(at, halves.data(), 16);
    return at + digits;
}
/// With 0x.
[[nodiscard]] WM_INLINE char* put_hexadecimal(char* at, std::uint64_t value) {
    at[0] = '0';
    at[1] = 'x';
    return put_hexadecimal_digits(at + 2, value);
}

/// Writes at least eight digits: `0x00008010`.
[[nodiscard]] inline char* put_address(char* at, std::uint64_t value) {
    if (value >> 32 != 0) return put_hexadecimal(at, value);
    static_cast<void>(put_hexadecimal(at, value | std::uint64_t{1} << 32));
    std::memmove(at + 2, at + 3, 8);
    return at + 10;
}

}  // namespace waymark
