/// The irregular fields of ETMv4 and ETE packets, each with `read`, `write`, `print`, `scan` and `random`, and with the
/// name of the specification's field (docs/spec/etm4.md, sections 2 to 12).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/seven_bits.h"
#include "waymark/core/wire.h"

namespace waymark::etm4 {

/// A continuation field, ULEB(n): 7 bits in each byte, the low ones first; bit 7 is set in all bytes except the last. A
/// field is malformed if it continues after its last possible byte, or has more bits than its value.
struct Continued {
    std::uint8_t max_bytes;
    std::uint8_t width;  ///< number of bits of the value

    template <class T>
    WM_INLINE void read(Cursor& c, T& value) const {
        std::uint64_t whole = 0;
        for (unsigned n = 0;; ++n) {
            const std::uint64_t byte = c.u8();
            whole |= (byte & 0x7fU) << 7 * n;
            if ((byte & 0x80U) == 0) break;
            if (n + 1U == max_bytes) [[unlikely]]
                return c.bad();
        }
        if (whole >> width != 0) [[unlikely]]
            return c.bad();
        value = static_cast<T>(whole);
    }
    static void write(std::vector<std::uint8_t>& out, std::uint64_t value) {
        for (; value > 0x7f; value >>= 7) out.push_back(static_cast<std::uint8_t>(0x80U | (value & 0x7fU)));
        out.push_back(static_cast<std::uint8_t>(value));
    }
    static void print(std::string& out, std::uint64_t value) { wire::append_number(out, value); }
    template <class T>
    bool scan(std::string_view text, T& value) const {
        std::uint64_t n = 0;
        if (!wire::scan_number(text, n) || n >> width != 0) return false;
        value = static_cast<T>(n);
        return true;
    }
    template <class T>
    void random(wire::Random& r, T& value) const {
        value = static_cast<T>(wire::random_number(r, width));
    }
};
inline constexpr Continued number_field{.max_bytes = 5, .width = 32};
inline constexpr Continued cycle_field{.max_bytes = 3, .width = 21};

/// The sections of a Trace Info packet (section 4): bit 0 INFO, 1 KEY, 2 SPEC, 3 CYCT, 4 WNDW. Bits 6 and 5 would be
/// sections of unknown length, so they are refused; up to three further control bytes are read and ignored.
struct PlctlField {
    static void read(Cursor& c, std::uint8_t& sections) {
        std::uint8_t byte = c.u8();
        if ((byte & 0x60U) != 0) return c.bad();
        sections = byte & 0x1fU;
        for (unsigned n = 1; (byte & 0x80U) != 0; ++n) {
            if (n == 4) return c.bad();
            byte = c.u8();
        }
    }
    static void write(std::vector<std::uint8_t>& out, std::uint8_t sections) { out.push_back(sections); }
    static void print(std::string& out, std::uint8_t sections) { wire::append_number(out, sections); }
    static bool scan(std::string_view text, std::uint8_t& sections) {
        std::uint64_t n = 0;
        if (!wire::scan_number(text, n) || n > 0x1f) return false;
        sections = static_cast<std::uint8_t>(n);
        return true;
    }
    static void random(wire::Random& r, std::uint8_t& sections) { sections = static_cast<std::uint8_t>(r() % 32); }
};

/// Section 5: the low bits of a timestamp, as sent.
struct TimestampValue {
    std::uint64_t value{};
    std::uint8_t bytes = 1;  ///< 1 to 9; 9 replace all bits, fewer replace the low 7 bits for each byte
    friend bool operator==(const TimestampValue&, const TimestampValue&) = default;
};
/// Number of bits in a timestamp of `bytes` bytes.
[[nodiscard]] constexpr unsigned timestamp_bits(unsigned bytes) { return bytes < 9 ? 7 * bytes : 64; }

struct TimestampField {
    WM_INLINE static void read(Cursor& c, TimestampValue& t) {
        std::uint64_t value = 0;
        for (unsigned n = 1, shift = 0;; ++n, shift += 7) {
            const std::uint64_t byte = c.u8();
            if (n == 9) {
                t = {value | byte << 56, 9};
                return;
            }
            value |= (byte & 0x7fU) << shift;
            if ((byte & 0x80U) == 0) {
                t = {value, static_cast<std::uint8_t>(n)};
                return;
            }
        }
    }
    /// The same for memory in which 9 bytes can be read, without a branch for each byte: returns the number of bytes.
    WM_INLINE static unsigned read_at_once(const std::uint8_t* at, TimestampValue& t) {
        const SevenBits sent = SevenBits::of(eight_bytes(at));
        t = sent.whole ? TimestampValue{sent.value, static_cast<std::uint8_t>(sent.bytes)}
                       : TimestampValue{sent.value | std::uint64_t{at[8]} << 56, 9};
        return t.bytes;
    }
    static void write(std::vector<std::uint8_t>& out, const TimestampValue& t) {
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
    static bool scan(std::string_view text, TimestampValue& t);
    static void random(wire::Random& r, TimestampValue& t) {
        t.bytes = static_cast<std::uint8_t>(1 + r() % 9);
        t.value = wire::random_number(r, timestamp_bits(t.bytes));
    }
};

/// An address as carried in a packet (section 6): complete, or its low bits. Bits below the instruction set's alignment
/// are never sent and are 0.
struct SentAddress {
    std::uint64_t value{};
    std::uint8_t bytes = 8;  ///< 1 or 2: short; 4 or 8: long
    bool is1{};              ///< IS1: halfword aligned (T32); otherwise word aligned (A32, A64)
    friend bool operator==(const SentAddress&, const SentAddress&) = default;
};
/// The number of low address bits that `bytes` bytes carry, counted from bit 0.
[[nodiscard]] constexpr unsigned address_bits(unsigned bytes, bool is1) {
    return bytes >= 4 ? 8 * bytes : bytes == 2 ? (is1 ? 16 : 17) : (is1 ? 8 : 9);
}
[[nodiscard]] constexpr std::uint64_t address_mask(unsigned bytes, bool is1) {
    const std::uint64_t low = bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << address_bits(bytes, is1)) - 1;
    return low & ~(is1 ? std::uint64_t{1} : std::uint64_t{3});
}

/// The bytes of an address after a header that specifies their form.
struct AddressBytes {
    bool is1;
    std::uint8_t bytes;  ///< 4 or 8; 0: short, with 1 or 2 bytes according to bit 7 of the first

    WM_INLINE void read(Cursor& c, SentAddress& a) const {
        a.is1 = is1;
        const std::uint64_t first = c.u8();
        const unsigned low_shift = is1 ? 1 : 2;
        a.value = (first & 0x7fU) << low_shift;
        if (bytes == 0) {
            a.bytes = 1;
            if ((first & 0x80U) == 0) return;
            a.value |= std::uint64_t{c.u8()} << (7 + low_shift);
            a.bytes = 2;
            return;
        }
        // Bit 7 of the first byte, and of the second where the address is word aligned, should be 0.
        const std::uint64_t second = c.u8();
        a.value |= is1 ? second << 8 : (second & 0x7fU) << 9;
        a.value |= c.le(bytes - 2U) << 16;
        a.bytes = bytes;
    }
    static void write(std::vector<std::uint8_t>& out, const SentAddress& a) {
        const std::uint64_t first = a.value >> (a.is1 ? 1 : 2) & 0x7fU;
        const std::uint64_t second = a.value >> (a.is1 ? 8 : 9);
        out.push_back(static_cast<std::uint8_t>(first | (a.bytes == 2 ? 0x80U : 0U)));
        if (a.bytes == 1) return;
        out.push_back(static_cast<std::uint8_t>(a.bytes == 2 || a.is1 ? second : second & 0x7fU));
        for (unsigned n = 2; n < a.bytes; ++n) out.push_back(static_cast<std::uint8_t>(a.value >> 8 * n));
    }
    /// `0x2ebc/2/IS0`: the bits sent, the number of bytes, and the instruction set.
    static void print(std::string& out, const SentAddress& a) {
        wire::append_number(out, a.value);
        out += '/';
        out += static_cast<char>('0' + a.bytes);
        out += a.is1 ? "/IS1" : "/IS0";
    }
    bool scan(std::string_view text, SentAddress& a) const;
    void random(wire::Random& r, SentAddress& a) const {
        a.is1 = is1;
        a.bytes = bytes != 0 ? bytes : static_cast<std::uint8_t>(1 + r() % 2);
        a.value = wire::random_number(r, address_bits(a.bytes, is1)) & address_mask(a.bytes, is1);
    }
};

/// A header that specifies instruction set and size, and the address: `base` is 32 bits IS0, base + 1 IS1, base +
/// `wide` 64 bits IS0, base + wide + 1 IS1.
struct LongAddressField {
    std::uint8_t base, wide;

    WM_INLINE void read(Cursor& c, SentAddress& a) const {
        const unsigned kind = c.u8() - unsigned{base};
        const bool is_wide = kind >= wide;
        AddressBytes{.is1 = (is_wide ? kind - wide : kind) != 0, .bytes = static_cast<std::uint8_t>(is_wide ? 8 : 4)}
            .read(c, a);
    }
    void write(std::vector<std::uint8_t>& out, const SentAddress& a) const {
        out.push_back(static_cast<std::uint8_t>(base + (a.bytes == 8 ? wide : 0) + (a.is1 ? 1 : 0)));
        AddressBytes::write(out, a);
    }
    static void print(std::string& out, const SentAddress& a) { AddressBytes::print(out, a); }
    static bool scan(std::string_view text, SentAddress& a);
    static void random(wire::Random& r, SentAddress& a) {
        AddressBytes{.is1 = r() % 2 == 0, .bytes = static_cast<std::uint8_t>(r() % 2 == 0 ? 4 : 8)}.random(r, a);
    }
};

/// The same for one or two bytes: `base` is IS0, base + 1 IS1.
struct ShortAddressField {
    std::uint8_t base;

    WM_INLINE void read(Cursor& c, SentAddress& a) const { AddressBytes{.is1 = c.u8() != base, .bytes = 0}.read(c, a); }
    void write(std::vector<std::uint8_t>& out, const SentAddress& a) const {
        out.push_back(static_cast<std::uint8_t>(base + (a.is1 ? 1 : 0)));
        AddressBytes::write(out, a);
    }
    static void print(std::string& out, const SentAddress& a) { AddressBytes::print(out, a); }
    static bool scan(std::string_view text, SentAddress& a);
    static void random(wire::Random& r, SentAddress& a) { AddressBytes{.is1 = r() % 2 == 0, .bytes = 0}.random(r, a); }
};

/// Outcomes of P0 instructions, oldest in bit 0; a 1 is E (executed, taken), a 0 is N.
struct Atoms {
    std::uint8_t count = 1;  ///< 1 to 24
    std::uint32_t e = 1;

    /// Whether atom `i`, counted from the oldest, is E.
    [[nodiscard]] WM_INLINE constexpr bool is_e(unsigned i) const { return (e >> i & 1U) != 0; }
    friend bool operator==(const Atoms&, const Atoms&) = default;
};

/// Section 7: the meaning of an atom header. Every byte from 0xC0 on is an atom header.
[[nodiscard]] constexpr Atoms atoms_of(std::uint8_t header) {
    // Bit 0 is the oldest atom, so NEEE is 0b1110.
    if (header >= 0xf8) return {3, header & 7U};
    if (header == 0xf6 || header == 0xf7) return {1, header & 1U};
    if (header == 0xf5) return {5, 0b11110};
    if (header >= 0xd8 && header <= 0xdb) return {2, header & 3U};
    switch (header) {
        case 0xd5: return {5, 0b00000};
        case 0xd6: return {5, 0b01010};
        case 0xd7: return {5, 0b10101};
        case 0xdc: return {4, 0b1110};
        case 0xdd: return {4, 0b0000};
        case 0xde: return {4, 0b1010};
        case 0xdf: return {4, 0b0101};
        default: break;
    }
    const unsigned taken = (header & 0x1fU) + 3;
    const bool last = (header & 0x20U) == 0;
    return {static_cast<std::uint8_t>(taken + 1), (1U << taken) - 1U + (last ? 1U << taken : 0U)};
}
inline constexpr std::array<Atoms, 64> atom_table = [] {
    std::array<Atoms, 64> table{};
    for (unsigned i = 0; i < 64; ++i) table[i] = atoms_of(static_cast<std::uint8_t>(0xc0 + i));
    return table;
}();
/// The header for exactly these atoms; 0 if there is none.
[[nodiscard]] constexpr std::uint8_t atom_header(const Atoms& atoms) {
    for (unsigned i = 0; i < 64; ++i)
        if (atom_table[i] == atoms) return static_cast<std::uint8_t>(0xc0 + i);
    return 0;
}
/// The format, 1 to 6, of the packet that holds these atoms.
[[nodiscard]] constexpr unsigned atom_format(std::uint8_t header) {
    if (header >= 0xf8) return 3;
    if (header >= 0xf6) return 1;
    if (header == 0xf5 || (header >= 0xd5 && header <= 0xd7)) return 5;
    if (header >= 0xd8 && header <= 0xdb) return 2;
    return header >= 0xdc && header <= 0xdf ? 4 : 6;
}

struct AtomField {
    WM_INLINE static void read(Cursor& c, Atoms& a) { a = atom_table[c.u8() & 0x3fU]; }
    static void write(std::vector<std::uint8_t>& out, const Atoms& a) { out.push_back(atom_header(a)); }
    static void print(std::string& out, const Atoms& a) {
        for (unsigned i = 0; i < a.count; ++i) out += a.is_e(i) ? 'E' : 'N';
    }
    static bool scan(std::string_view text, Atoms& a);
    static void random(wire::Random& r, Atoms& a) { a = atom_table[r() % 64]; }
};

/// A header whose low bits select one of several forms, some of which do not exist. The value is the header itself.
struct HeaderField {
    std::uint8_t base;
    std::uint32_t allowed;  ///< bit n: base + n is a valid header

    WM_INLINE void read(Cursor& c, std::uint8_t& kind) const {
        const unsigned n = c.u8() - unsigned{base};
        if (n > 31 || (allowed >> n & 1U) == 0) [[unlikely]]
            return c.bad();
        kind = static_cast<std::uint8_t>(n);
    }
    void write(std::vector<std::uint8_t>& out, std::uint8_t kind) const {
        out.push_back(static_cast<std::uint8_t>(base + kind));
    }
    static void print(std::string& out, std::uint8_t kind) { wire::append_number(out, kind); }
    bool scan(std::string_view text, std::uint8_t& kind) const {
        std::uint64_t n = 0;
        if (!wire::scan_number(text, n) || n > 31 || (allowed >> n & 1U) == 0) return false;
        kind = static_cast<std::uint8_t>(n);
        return true;
    }
    void random(wire::Random& r, std::uint8_t& kind) const {
        do {
            kind = static_cast<std::uint8_t>(r() % 32);
        } while ((allowed >> kind & 1U) == 0);
    }
};

/// The result of a conditional instruction and its key, as in a Conditional Result format 1 packet (section 12): 4
/// bits, and up to 38.
struct KeyedResult {
    std::uint64_t key{};
    std::uint8_t result{};
    friend bool operator==(const KeyedResult&, const KeyedResult&) = default;
};
struct KeyedResultField {
    static void read(Cursor& c, KeyedResult& r) {
        std::uint64_t byte = c.u8();
        r.result = byte & 0xfU;
        r.key = byte >> 4 & 7U;
        for (unsigned n = 1, shift = 3; (byte & 0x80U) != 0; ++n, shift += 7) {
            if (n == 6) return c.bad();
            byte = c.u8();
            r.key |= (byte & 0x7fU) << shift;
        }
    }
    static void write(std::vector<std::uint8_t>& out, const KeyedResult& r) {
        const std::uint64_t rest = r.key >> 3;
        out.push_back(static_cast<std::uint8_t>((rest != 0 ? 0x80U : 0U) | (r.key & 7U) << 4 | r.result));
        if (rest != 0) Continued::write(out, rest);
    }
    /// `5@0x12`: result 5 of the element with key 0x12.
    static void print(std::string& out, const KeyedResult& r) {
        wire::append_number(out, r.result);
        out += '@';
        wire::append_number(out, r.key);
    }
    static bool scan(std::string_view text, KeyedResult& r);
    static void random(wire::Random& r, KeyedResult& value) {
        value.key = wire::random_number(r, 38);
        value.result = static_cast<std::uint8_t>(r() % 16);
    }
};

}  // namespace waymark::etm4
