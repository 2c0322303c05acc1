/// The irregular fields of ETMv3 packets (docs/spec/etmv3.md, 2 to 5). Timestamps and A-syncs are the same as in
/// Program Flow Trace.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/codec.h"

namespace waymark::etm3 {

using isa::Isa;
using pft::address_shift;
using pft::AsyncField;
using pft::from_gray;
using pft::TimestampField;
using pft::TimestampValue;

/// The contents of a P-header (section 3): consecutive outcomes of instructions, and cycles.
struct Outcomes {
    std::uint8_t format = 0xff;                       ///< 0 to 4; 0xff: the byte is not a P-header
    std::uint8_t count = 0;                           ///< number of instructions, up to 16
    std::uint8_t first_cycles = 0, other_cycles = 0;  ///< cycles before the first atom; before each other atom
    std::uint16_t e = 0;                              ///< bit i: instruction i, the oldest first, passed its condition

    [[nodiscard]] constexpr bool valid() const { return format != 0xff; }
    [[nodiscard]] constexpr bool passed(unsigned i) const { return (e >> i & 1U) != 0; }
    [[nodiscard]] constexpr std::uint32_t cycles(unsigned i) const { return i == 0 ? first_cycles : other_cycles; }
};

/// The outcomes in a P-header (section 3, both tables).
[[nodiscard]] constexpr Outcomes outcomes_of(std::uint8_t header, bool cycle_accurate) {
    const bool n = (header & 0x40U) != 0;
    const auto run = [&](unsigned e_count, std::uint8_t cycles) {
        Outcomes out;
        out.format = 1;
        out.count = static_cast<std::uint8_t>(e_count + (n ? 1U : 0U));
        out.e = static_cast<std::uint16_t>((1U << e_count) - 1U);
        out.first_cycles = out.other_cycles = cycles;
        return out;
    };
    Outcomes out;
    if ((header & 0x81U) != 0x80) return out;
    if ((header & 0xf3U) == 0x82) {
        out.format = 2;
        out.count = 2;
        out.first_cycles = cycle_accurate ? 1 : 0;
        out.e = static_cast<std::uint16_t>(((header & 8U) == 0 ? 1U : 0U) | ((header & 4U) == 0 ? 2U : 0U));
        return out;
    }
    if (!cycle_accurate) return (header & 3U) == 0 ? run(header >> 2 & 0xfU, 0) : out;
    if (header == 0x80) {
        out.format = 0;
        out.first_cycles = 1;
    } else if ((header & 0xa3U) == 0x80) {
        return run(header >> 2 & 7U, 1);
    } else if ((header & 0xa3U) == 0xa0) {
        out.format = 3;
        out.count = n ? 1 : 0;
        out.e = n ? 1 : 0;
        out.first_cycles = static_cast<std::uint8_t>((header >> 2 & 7U) + 1U);
    } else if ((header & 0xfbU) == 0x92) {
        out.format = 4;
        out.count = 1;
        out.e = (header & 4U) == 0 ? 1 : 0;
    }
    return out;
}

/// The header byte; in text its atoms and format, `EEN/1`, `WEWE/1`, `WWW/3`.
struct PHeaderField {
    bool cycle_accurate;

    WM_INLINE void read(Cursor& c, std::uint8_t& header) const {
        header = c.u8();
        if (!outcomes_of(header, cycle_accurate).valid()) [[unlikely]]
            c.bad();
    }
    static void write(std::vector<std::uint8_t>& out, std::uint8_t header) { out.push_back(header); }
    void print(std::string& out, std::uint8_t header) const;
    bool scan(std::string_view text, std::uint8_t& header) const;
    void random(wire::Random& r, std::uint8_t& header) const {
        do header = static_cast<std::uint8_t>(0x80U | (r() & 0x7eU));
        while (!outcomes_of(header, cycle_accurate).valid());
    }
};

/// A number with seven bits in each byte, the low ones first, of at most 32 bits (section 6).
struct ShortNumber {
    static void read(Cursor& c, std::uint32_t& value) {
        value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const std::uint32_t byte = c.u8();
            value |= (byte & 0x7fU) << shift;
            if (shift == 28 && byte > 0xfU) return c.bad();
            if ((byte & 0x80U) == 0) return;
        }
    }
    static void write(std::vector<std::uint8_t>& out, std::uint32_t value) {
        for (; value > 0x7f; value >>= 7) out.push_back(static_cast<std::uint8_t>(0x80U | (value & 0x7fU)));
        out.push_back(static_cast<std::uint8_t>(value));
    }
    static void print(std::string& out, std::uint32_t value) { out += std::to_string(value); }
    static bool scan(std::string_view text, std::uint32_t& value) {
        std::uint64_t n = 0;
        if (!wire::scan_number(text, n) || n > 0xffffffffU) return false;
        value = static_cast<std::uint32_t>(n);
        return true;
    }
    static void random(wire::Random& r, std::uint32_t& value) {
        value = static_cast<std::uint32_t>(wire::random_number(r, 32));
    }
};

/// Number of address bits in a branch packet of 1 to 4 address bytes; five bytes carry all bits.
[[nodiscard]] constexpr unsigned target_bits(unsigned bytes, bool alternative) {
    constexpr unsigned original[] = {0, 6, 13, 20, 27, 32}, other[] = {0, 6, 12, 19, 26, 32};
    return alternative ? other[bytes] : original[bytes];
}

/// The address bytes of a branch packet.
struct SentTarget {
    std::uint32_t bits{};    ///< address >> address_shift: the low bits that the bytes carry
    std::uint8_t bytes = 1;  ///< address bytes, 1 to 5
    Isa isa = Isa::a32;  ///< only in five bytes: a32, t32 (also for ThumbEE) or jazelle; otherwise a32, without meaning
    bool information = false;  ///< exception information bytes follow
    std::uint8_t old = 0;      ///< five bytes in the deprecated form: `1ceee`, cancel and exception; else 0
    friend bool operator==(const SentTarget&, const SentTarget&) = default;
};
struct SentTargetField {
    bool alternative;

    WM_INLINE void read(Cursor& c, SentTarget& t) const {
        std::uint32_t byte = c.u8();
        t = {};
        t.bits = byte >> 1 & 0x3fU;
        for (unsigned n = 1, shift = 6; n < 5; ++n, shift += 7) {
            if ((byte & 0x80U) == 0) {
                t.bytes = static_cast<std::uint8_t>(n);
                return;
            }
            byte = c.u8();
            if (n == 4) break;
            if (alternative && (byte & 0x80U) == 0) {
                t.bits |= (byte & 0x3fU) << shift;
                t.information = (byte & 0x40U) != 0;
            } else {
                t.bits |= (byte & 0x7fU) << shift;
            }
        }
        if (c.step() == Step::ok) read_fifth(c, t, byte);
    }
    void write(std::vector<std::uint8_t>& out, const SentTarget& t) const;
    /// `0xc0010ef0/5/T32`, `0x156/2` (only low bits), `+info` when information follows, `+old=0x..` for the deprecated
    /// form.
    static void print(std::string& out, const SentTarget& t);
    bool scan(std::string_view text, SentTarget& t) const;
    void random(wire::Random& r, SentTarget& t) const;

private:
    static void read_fifth(Cursor& c, SentTarget& t, std::uint32_t byte);
};

/// The address of a data packet (section 2): its low bits, unless it has five bytes, with the endian flag.
struct SentDataAddress {
    std::uint32_t bits{};
    std::uint8_t bytes = 1;   ///< 1 to 5: 7 bits each, and then 4
    bool big_endian = false;  ///< five bytes only
    friend bool operator==(const SentDataAddress&, const SentDataAddress&) = default;
};
struct SentDataAddressField {
    static void read(Cursor& c, SentDataAddress& a);
    static void write(std::vector<std::uint8_t>& out, const SentDataAddress& a);
    static void print(std::string& out, const SentDataAddress& a);
    static bool scan(std::string_view text, SentDataAddress& a);
    static void random(wire::Random& r, SentDataAddress& a);
};

}  // namespace waymark::etm3
