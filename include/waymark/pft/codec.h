/// The irregular fields of Program Flow Trace packets, each with `read`, `write`, `print`, `scan` and `random`, and
/// with the name of the specification's field (docs/spec/pft.md, section 2).
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/seven_bits.h"
#include "waymark/core/wire.h"
#include "waymark/isa/isa.h"

namespace waymark::pft {

using isa::Isa;

/// Up to five waypoint outcomes in the form of an atom byte: bit count-1 is the oldest, a 1 is N (failed), a 0 is E.
struct Atoms {
    std::uint8_t count = 1;  ///< 1 to 5
    std::uint8_t n = 0;

    /// Whether atom `i`, counted from the oldest, is E.
    [[nodiscard]] WM_INLINE constexpr bool e(unsigned i) const { return ((n >> (count - 1U - i)) & 1U) == 0; }
    friend bool operator==(const Atoms&, const Atoms&) = default;
};

/// Section 2.4, not cycle-accurate: `1, marker, atoms, 0` in one byte.
struct AtomPattern {
    WM_INLINE static void read(Cursor& c, Atoms& a) {
        const unsigned marked = (c.u8() >> 1) & 0x3fU;
        if (marked < 2) [[unlikely]]
            return c.bad();  // 0x80 and 0x82 have no marker
        a.count = static_cast<std::uint8_t>(std::bit_width(marked) - 1);
        a.n = static_cast<std::uint8_t>(marked & ~(1U << a.count));
    }
    static void write(std::vector<std::uint8_t>& out, const Atoms& a) {
        out.push_back(static_cast<std::uint8_t>(0x80U | (1U << a.count | a.n) << 1));
    }
    static void print(std::string& out, const Atoms& a) {
        for (unsigned i = 0; i < a.count; ++i) out += a.e(i) ? 'E' : 'N';
    }
    static bool scan(std::string_view text, Atoms& a) {
        if (text.empty() || text.size() > 5) return false;
        a = {static_cast<std::uint8_t>(text.size()), 0};
        for (const char ch : text) {
            if (ch != 'E' && ch != 'N') return false;
            a.n = static_cast<std::uint8_t>(a.n << 1 | (ch == 'N'));
        }
        return true;
    }
    static void random(wire::Random& r, Atoms& a) {
        a.count = static_cast<std::uint8_t>(1 + r() % 5);
        a.n = static_cast<std::uint8_t>(r() % (1U << a.count));
    }
};

/// Bits of a cycle count from its second byte on: 7, 7, 7, 7 (section 2.3).
WM_INLINE std::uint32_t read_more_cycles(Cursor& c, std::uint32_t low, bool more) {
    std::uint32_t count = low;
    for (unsigned shift = 4; more; shift += 7) {
        const std::uint32_t byte = c.u8();
        count |= (byte & 0x7fU) << shift;
        more = (byte & 0x80U) != 0;
        if (shift == 25) {
            if (more) c.bad();  // the fifth byte is always the last
            break;
        }
    }
    return count;
}
inline void write_more_cycles(std::vector<std::uint8_t>& out, std::uint32_t rest) {
    while (rest != 0) {
        out.push_back(static_cast<std::uint8_t>((rest & 0x7fU) | (rest > 0x7fU ? 0x80U : 0U)));
        rest >>= 7;
    }
}

/// Section 2.3: 1 to 5 bytes, 32 bits. Bit 7 of the first byte belongs to the surrounding packet and is ignored on
/// reading.
struct CycleCount {
    std::uint8_t bit_7 = 0;

    WM_INLINE static void read(Cursor& c, std::uint32_t& cycles) {
        const std::uint32_t first = c.u8();
        cycles = read_more_cycles(c, (first >> 2) & 0xfU, (first & 0x40U) != 0);
    }
    /// The same for memory in which 8 bytes can be read, without a branch for each byte: returns the number of bytes,
    /// or 0 if it is not a cycle count.
    WM_INLINE static unsigned read_at_once(const std::uint8_t* at, std::uint32_t& cycles) {
        const std::uint64_t w = eight_bytes(at);
        // Bit 7 of each byte that is the last byte if no earlier byte is; the first such byte is the last.
        const std::uint64_t ends = ~((w & 0x8080808000U) | (w & 0x40U) << 1) & 0x8080808080U;
        if (ends == 0) [[unlikely]]
            return 0;
        const std::uint64_t field = w & (ends ^ (ends - 1));
        cycles = static_cast<std::uint32_t>((field >> 2 & 0xfU) | (field >> 4 & 0x7f0U) | (field >> 5 & 0x3f800U) |
                                            (field >> 6 & 0x1fc0000U) | (field >> 7 & 0xfe000000U));
        return (static_cast<unsigned>(std::countr_zero(ends)) + 1) / 8;
    }
    /// The same for a count of one or two bytes; returns 0 for a longer one. Branchless, since the size is hard to
    /// predict.
    WM_INLINE static unsigned read_short(const std::uint8_t* at, std::uint32_t& cycles) {
        const std::uint32_t more = at[0] >> 6 & 1U;
        if ((at[1] & more << 7) != 0) [[unlikely]]
            return 0;
        cycles = (at[0] >> 2 & 0xfU) | (std::uint32_t{at[1]} << 4 & (0U - more));
        return 1 + more;
    }
    /// Uses the faster function first: few counts have more than two bytes.
    WM_INLINE static unsigned read_likely(const std::uint8_t* at, std::uint32_t& cycles) {
        const unsigned bytes = read_short(at, cycles);
        return bytes != 0 ? bytes : read_at_once(at, cycles);
    }
    void write(std::vector<std::uint8_t>& out, std::uint32_t cycles) const {
        const std::uint32_t rest = cycles >> 4;
        out.push_back(
            static_cast<std::uint8_t>(std::uint32_t{bit_7} << 7 | (rest != 0 ? 0x40U : 0U) | (cycles & 0xfU) << 2));
        write_more_cycles(out, rest);
    }
    static void print(std::string& out, std::uint32_t cycles) { out += std::to_string(cycles); }
    static bool scan(std::string_view text, std::uint32_t& cycles) {
        std::uint64_t n = 0;
        if (!wire::scan_number(text, n) || n > 0xffffffffU) return false;
        cycles = static_cast<std::uint32_t>(n);
        return true;
    }
    static void random(wire::Random& r, std::uint32_t& cycles) {
        cycles = static_cast<std::uint32_t>(wire::random_number(r, 32));
    }
};

/// An atom with its cycles, as in cycle-accurate mode.
struct CycleAtom {
    Atoms atoms;
    std::uint32_t cycles{};
    friend bool operator==(const CycleAtom&, const CycleAtom&) = default;
};

/// Section 2.4, cycle-accurate: one atom in bit 1 of the first byte of its cycle count.
struct CycleAtomField {
    WM_INLINE static void read(Cursor& c, CycleAtom& a) {
        const std::uint32_t first = c.u8();
        if ((first & 0x81U) != 0x80U) [[unlikely]]
            return c.bad();
        a.atoms = {1, static_cast<std::uint8_t>((first >> 1) & 1U)};
        a.cycles = read_more_cycles(c, (first >> 2) & 0xfU, (first & 0x40U) != 0);
    }
    /// The same for an atom packet of one or two bytes, in memory in which 2 bytes can be read: returns the size; 0 for
    /// a larger packet. Branchless, since the size is hard to predict. The known bits of the first byte make the test a
    /// single comparison, for which a loop waits.
    WM_INLINE static unsigned read_short(const std::uint8_t* at, std::uint32_t& e, std::uint32_t& cycles) {
        const std::uint32_t first = at[0], second = at[1];
        if ((first << 1 & second & 0x80U) != 0) [[unlikely]]
            return 0;
        const unsigned more = first >= 0xc0 ? 1 : 0;
        e = ~first >> 1 & 1U;
        cycles = (first >> 2 & 0xfU) | (second << 4 & (0U - more));
        return 1 + more;
    }
    static void write(std::vector<std::uint8_t>& out, const CycleAtom& a) {
        const std::size_t header = out.size();
        CycleCount{.bit_7 = 1}.write(out, a.cycles);
        out[header] = static_cast<std::uint8_t>(out[header] | a.atoms.n << 1);
    }
    static void print(std::string& out, const CycleAtom& a) {
        AtomPattern::print(out, a.atoms);
        out += '+';
        CycleCount::print(out, a.cycles);
    }
    static bool scan(std::string_view text, CycleAtom& a) {
        const std::size_t plus = text.find('+');
        return plus != std::string_view::npos && AtomPattern::scan(text.substr(0, plus), a.atoms) &&
               a.atoms.count == 1 && CycleCount::scan(text.substr(plus + 1), a.cycles);
    }
    static void random(wire::Random& r, CycleAtom& a) {
        a.atoms = {1, static_cast<std::uint8_t>(r() % 2)};
        CycleCount::random(r, a.cycles);
    }
};

/// Number of low bits of an instruction address that are always 0 in an instruction set, and so are never sent: 2, 1 or
/// 0.
[[nodiscard]] constexpr unsigned address_shift(Isa isa) { return isa == Isa::a32 ? 2 : isa == Isa::jazelle ? 0 : 1; }

/// Number of address bits in a packet of 1 to 4 address bytes; 5 bytes carry all.
[[nodiscard]] constexpr unsigned target_bits(unsigned bytes) {
    constexpr unsigned bits[] = {0, 6, 12, 19, 26, 32};
    return bits[bytes];
}

/// An address as carried in a branch or waypoint update packet: only its low bits, unless it has five bytes.
struct Target {
    /// The low target_bits(bytes) bits of address >> address_shift.
    std::uint32_t bits{};
    std::uint8_t bytes = 1;  ///< address bytes, 1 to 5
    Isa isa = Isa::a32;  ///< only in five bytes: a32, t32 (also for ThumbEE) or jazelle; otherwise a32, without meaning
    bool information = false;  ///< an information byte follows
    friend bool operator==(const Target&, const Target&) = default;
};

/// The address bytes of sections 2.5 and 2.7.
struct TargetField {
    bool information_from_two_bytes;  ///< branch packets: bit 6 of a last byte 2 to 4 announces information
    bool jazelle;                     ///< the Jazelle pattern of byte 5 may occur

    WM_INLINE void read(Cursor& c, Target& t) const {
        std::uint32_t byte = c.u8();
        if ((byte & 1U) == 0 && c.step() == Step::ok) [[unlikely]]
            return c.bad();
        std::uint32_t value = (byte >> 1) & 0x3fU;
        t.information = false;
        t.isa = Isa::a32;
        for (unsigned n = 1, shift = 6; n < 5; ++n, shift += 7) {
            if ((byte & 0x80U) == 0) {
                t.bits = value;
                t.bytes = static_cast<std::uint8_t>(n);
                return;
            }
            byte = c.u8();
            if (n == 4) break;
            if ((byte & 0x80U) != 0) {
                value |= (byte & 0x7fU) << shift;
            } else {
                value |= (byte & 0x3fU) << shift;
                // In a waypoint update this bit has no known meaning (section 2.7): tolerated.
                if (information_from_two_bytes) t.information = (byte & 0x40U) != 0;
            }
        }
        if (c.step() != Step::ok) [[unlikely]]
            return;
        read_fifth(c, t, value, byte);
    }
    void write(std::vector<std::uint8_t>& out, const Target& t) const {
        std::uint32_t rest = t.bits;
        const auto more = [&](unsigned n) { return t.bytes > n ? 0x80U : 0U; };
        out.push_back(static_cast<std::uint8_t>(more(1) | (rest & 0x3fU) << 1 | 1U));
        rest >>= 6;
        for (unsigned n = 2; n <= t.bytes && n < 5; ++n) {
            if (more(n) != 0) {
                out.push_back(static_cast<std::uint8_t>(0x80U | (rest & 0x7fU)));
                rest >>= 7;
            } else {
                out.push_back(static_cast<std::uint8_t>((t.information ? 0x40U : 0U) | (rest & 0x3fU)));
            }
        }
        if (t.bytes < 5) return;
        const std::uint32_t pattern = t.isa == Isa::a32 ? 0x08U : t.isa == Isa::jazelle ? 0x20U : 0x10U;
        const std::uint32_t width = t.isa == Isa::a32 ? 3 : t.isa == Isa::jazelle ? 5 : 4;
        out.push_back(
            static_cast<std::uint8_t>((t.information ? 0x40U : 0U) | pattern | (rest & ((1U << width) - 1U))));
    }
    /// `0xc0010ef0/5/T32`, `0x156/2` (only low bits; << 1 in Thumb, << 2 in ARM state), `+info` when information
    /// follows.
    static void print(std::string& out, const Target& t) {
        wire::append_number(out, t.bytes == 5 ? t.bits << address_shift(t.isa) : t.bits);
        out += '/';
        out += static_cast<char>('0' + t.bytes);
        if (t.bytes == 5) {
            out += '/';
            out += name(t.isa);
        }
        if (t.information) out += "+info";
    }
    bool scan(std::string_view text, Target& t) const;
    void random(wire::Random& r, Target& t) const {
        t.bytes = static_cast<std::uint8_t>(1 + r() % 5);
        constexpr Isa isas[] = {Isa::a32, Isa::t32, Isa::jazelle};
        t.isa = t.bytes == 5 ? isas[r() % (jazelle ? 3 : 2)] : Isa::a32;
        t.bits = static_cast<std::uint32_t>(
            wire::random_number(r, t.bytes == 5 ? 32 - address_shift(t.isa) : target_bits(t.bytes)));
        t.information = t.bytes >= (information_from_two_bytes ? 2 : 5) && r() % 2 == 0;
    }

private:
    WM_INLINE void read_fifth(Cursor& c, Target& t, std::uint32_t value, std::uint32_t byte) const {
        if ((byte & 0x80U) != 0) [[unlikely]]
            return c.bad();
        if ((byte & 0x20U) != 0) {
            if (!jazelle) [[unlikely]]
                return c.bad();
            t.isa = Isa::jazelle;
            value |= (byte & 0x1fU) << 27;
        } else if ((byte & 0x10U) != 0) {
            t.isa = Isa::t32;
            value |= (byte & 0x0fU) << 27;
        } else if ((byte & 0x08U) != 0) {
            t.isa = Isa::a32;
            value |= (byte & 0x07U) << 27;
        } else {
            return c.bad();
        }
        t.bits = value;
        t.bytes = 5;
        t.information = (byte & 0x40U) != 0;
    }
};

/// Section 2.9: the value as sent (possibly Gray coded, possibly only its low bytes).
struct TimestampValue {
    std::uint64_t value{};
    std::uint8_t bytes = 1;  ///< 1 to 9; the longest form (7 or 9) replaces all bits, n bytes replace the low 7n
    friend bool operator==(const TimestampValue&, const TimestampValue&) = default;
};
struct TimestampField {
    std::uint8_t max_bytes;  ///< Config::timestamp_bytes: 7 or 9

    WM_INLINE void read(Cursor& c, TimestampValue& t) const {
        std::uint64_t value = 0;
        for (unsigned n = 1, shift = 0;; ++n, shift += 7) {
            const std::uint64_t byte = c.u8();
            if (n == max_bytes) {
                if (max_bytes == 7 && byte > 0x3fU) [[unlikely]]
                    return c.bad();
                t = {value | byte << shift, max_bytes};
                return;
            }
            value |= (byte & 0x7fU) << shift;
            if ((byte & 0x80U) == 0) {
                t = {value, static_cast<std::uint8_t>(n)};
                return;
            }
        }
    }
    /// The same for memory in which 9 bytes can be read, without a branch for each byte: returns the number of bytes,
    /// or 0 if it is not a timestamp.
    WM_INLINE unsigned read_at_once(const std::uint8_t* at, TimestampValue& t) const {
        const SevenBits sent = SevenBits::of(eight_bytes(at));
        t = {sent.value, static_cast<std::uint8_t>(sent.bytes)};
        if (max_bytes == 7) {
            if (sent.bytes > 7 || sent.value >> 48 != 0) [[unlikely]]
                return 0;
        } else if (!sent.whole) {
            t = {sent.value | std::uint64_t{at[8]} << 56, max_bytes};
        }
        return t.bytes;
    }
    void write(std::vector<std::uint8_t>& out, const TimestampValue& t) const {
        std::uint64_t rest = t.value;
        for (unsigned n = 1; n < t.bytes; ++n, rest >>= 7)
            out.push_back(static_cast<std::uint8_t>(0x80U | (rest & 0x7fU)));
        out.push_back(static_cast<std::uint8_t>(rest));
    }
    static void print(std::string& out, const TimestampValue& t) {
        wire::append_number(out, t.value);
        out += '/';
        out += static_cast<char>('0' + t.bytes);
    }
    bool scan(std::string_view text, TimestampValue& t) const;
    /// Number of bits in a value of `bytes` bytes.
    [[nodiscard]] constexpr unsigned width(unsigned bytes) const {
        return bytes < max_bytes ? 7 * bytes : max_bytes == 7 ? 48 : 64;
    }
    void random(wire::Random& r, TimestampValue& t) const {
        t.bytes = static_cast<std::uint8_t>(1 + r() % max_bytes);
        t.value = wire::random_number(r, width(t.bytes));
    }
};

/// Section 2.2: five or more zero bytes, then 0x80.
struct AsyncField {
    static void read(Cursor& c, std::uint64_t& zeros) {
        zeros = 0;
        std::uint8_t byte = 0;
        while ((byte = c.u8()) == 0 && c.step() == Step::ok) ++zeros;
        if (c.step() == Step::ok && (byte != 0x80 || zeros < 5)) c.bad();
    }
    static void write(std::vector<std::uint8_t>& out, std::uint64_t zeros) {
        out.insert(out.end(), zeros, 0);
        out.push_back(0x80);
    }
    static void print(std::string& out, std::uint64_t zeros) { out += std::to_string(zeros); }
    static bool scan(std::string_view text, std::uint64_t& zeros) {
        return wire::scan_number(text, zeros) && zeros >= 5;
    }
    static void random(wire::Random& r, std::uint64_t& zeros) { zeros = r() % 4 == 0 ? 5 + r() % 40 : 5; }
};

/// Binary-reflected Gray code, as PFTv1.0 timestamps use it.
[[nodiscard]] constexpr std::uint64_t to_gray(std::uint64_t binary) { return binary ^ binary >> 1; }
[[nodiscard]] constexpr std::uint64_t from_gray(std::uint64_t gray) {
    for (unsigned shift = 1; shift < 64; shift *= 2) gray ^= gray >> shift;
    return gray;
}

}  // namespace waymark::pft
