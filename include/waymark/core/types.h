/// Bytes, and distinct types for numbers that must not be confused: addresses of the traced program, offsets in a
/// capture. Names of the layer `core` are in namespace `waymark` itself; every other layer has its own namespace.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

/// Functions that read single bytes and fields are inlined into every parser, which doubles its speed. Builds with
/// sanitizers define this as `inline`, which halves compile time.
#ifndef WM_INLINE
#define WM_INLINE [[gnu::always_inline]] inline
#endif

namespace waymark {

/// Borrowed bytes. A receiver copies what it keeps after the call.
using Bytes = std::span<const std::uint8_t>;

/// An address in the traced program's memory, 64 bits wide for every core (AArch32 uses the low 32).
struct Address {
    std::uint64_t value{};

    friend constexpr auto operator<=>(Address, Address) = default;
    friend constexpr Address operator+(Address a, std::uint64_t bytes) { return {a.value + bytes}; }
    friend constexpr Address operator-(Address a, std::uint64_t bytes) { return {a.value - bytes}; }
    /// Distance in bytes; `a` must not be below `b`.
    friend constexpr std::uint64_t operator-(Address a, Address b) { return a.value - b.value; }
};

/// A byte position in a stream or file, counted from 0.
struct Offset {
    std::uint64_t value{};

    friend constexpr auto operator<=>(Offset, Offset) = default;
    friend constexpr Offset operator+(Offset o, std::uint64_t bytes) { return {o.value + bytes}; }
    friend constexpr Offset operator-(Offset o, std::uint64_t bytes) { return {o.value - bytes}; }
    /// Distance in bytes; `a` must not be before `b`.
    friend constexpr std::uint64_t operator-(Offset a, Offset b) { return a.value - b.value; }
};

}  // namespace waymark
