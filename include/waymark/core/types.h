/// Bytes, and the numbers that must not be mistaken for one another: addresses of the traced program, offsets in a
/// capture. Names of the layer `core` live in `waymark` itself; every other layer has a namespace of its own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

/// Readers of single bytes and fields are inlined into every parser: half of its speed. Builds with sanitizers define
/// this as `inline`, which compiles in half the time.
#ifndef WM_INLINE
#define WM_INLINE [[gnu::always_inline]] inline
#endif

namespace waymark {

/// Borrowed bytes. Whoever receives some copies what it keeps beyond the call.
using Bytes = std::span<const std::uint8_t>;

/// An address in the traced program's memory, 64 bits wide for every core (AArch32 uses the low 32).
struct Address {
    std::uint64_t value{};

    friend constexpr auto operator<=>(Address, Address) = default;
    friend constexpr Address operator+(Address a, std::uint64_t bytes) { return {a.value + bytes}; }
    friend constexpr Address operator-(Address a, std::uint64_t bytes) { return {a.value - bytes}; }
    /// Distance in bytes; `a` must not lie below `b`.
    friend constexpr std::uint64_t operator-(Address a, Address b) { return a.value - b.value; }
};

/// A byte position in a stream or file, counted from 0.
struct Offset {
    std::uint64_t value{};

    friend constexpr auto operator<=>(Offset, Offset) = default;
    friend constexpr Offset operator+(Offset o, std::uint64_t bytes) { return {o.value + bytes}; }
    friend constexpr Offset operator-(Offset o, std::uint64_t bytes) { return {o.value - bytes}; }
    /// Distance in bytes; `a` must not lie before `b`.
    friend constexpr std::uint64_t operator-(Offset a, Offset b) { return a.value - b.value; }
};

}  // namespace waymark
