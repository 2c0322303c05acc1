/// The irregular fields of Statistical Profiling packets, each with `read`, `write`, `print`, `scan` and `random`
/// (docs/spec/spe.md, section 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"

namespace waymark::spe {

/// Number of payload bytes after a header from 0x40 up, even if Waymark does not know the packet: bits 5:4 (section
/// 4.1).
[[nodiscard]] constexpr unsigned payload_bytes(std::uint8_t header) { return 1U << (header >> 4 & 3U); }

/// Whether a byte is the first byte of an extended header.
[[nodiscard]] constexpr bool is_prefix(std::uint8_t byte) { return (byte & 0xe0U) == 0x20; }

/// The index of a packet's address or counter. Below 8 the header has one byte, unless `extended` requests two: this is
/// legal, but no unit writes it.
struct Index {
    std::uint8_t value = 0;  ///< 0 to 31
    bool extended = false;   ///< always true from 8 on
    friend bool operator==(const Index&, const Index&) = default;
};

/// The header of a packet with an index: `Base` and index 2:0; if extended, a byte with index 4:3 before it.
template <std::uint8_t Base>
struct IndexedHeader {
    WM_INLINE static void read(Cursor& c, Index& index) {
        std::uint32_t byte = c.u8();
        std::uint32_t high = 0;
        index.extended = (byte & 0xfcU) == 0x20;
        if (index.extended) {
            high = (byte & 3U) << 3;
            byte = c.u8();
        }
        if ((byte & 0xf8U) != Base && c.step() == Step::ok) [[unlikely]]
            return c.bad();
        index.value = static_cast<std::uint8_t>(high | (byte & 7U));
    }
    static void write(std::vector<std::uint8_t>& out, const Index& index) {
        if (index.extended || index.value >= 8)
            out.push_back(static_cast<std::uint8_t>(0x20U | (index.value >> 3 & 3U)));
        out.push_back(static_cast<std::uint8_t>(Base | (index.value & 7U)));
    }
    /// Prints `16`, or `0/extended` if one byte would have been enough.
    static void print(std::string& out, const Index& index) {
        out += std::to_string(index.value);
        if (index.extended && index.value < 8) out += "/extended";
    }
    static bool scan(std::string_view text, Index& index) {
        const bool said = text.ends_with("/extended");
        if (said) text.remove_suffix(9);
        std::uint64_t value = 0;
        if (!wire::scan_number(text, value) || value > 31 || (said && value >= 8)) return false;
        index = {static_cast<std::uint8_t>(value), said || value >= 8};
        return true;
    }
    static void random(wire::Random& r, Index& index) {
        index.value = static_cast<std::uint8_t>(r() % 4 == 0 ? r() % 32 : r() % 5);
        index.extended = index.value >= 8 || r() % 16 == 0;
    }
};

/// A payload whose size is in the header.
struct Sized {
    std::uint64_t value{};
    std::uint8_t bytes = 1;  ///< 1, 2, 4 or 8
    friend bool operator==(const Sized&, const Sized&) = default;
};

/// A header `Base` with the size in bits 5:4, and its payload of at most `Max` bytes.
template <std::uint8_t Base, unsigned Max>
struct SizedField {
    WM_INLINE static void read(Cursor& c, Sized& s) {
        const std::uint8_t header = c.u8();
        s.bytes = static_cast<std::uint8_t>(payload_bytes(header));
        if (((header & 0xcfU) != Base || s.bytes > Max) && c.step() == Step::ok) [[unlikely]]
            return c.bad();
        s.value = c.le(s.bytes);
    }
    static void write(std::vector<std::uint8_t>& out, const Sized& s) {
        const unsigned size = s.bytes >= 8 ? 3 : s.bytes >> 1;
        out.push_back(static_cast<std::uint8_t>(Base | size << 4));
        for (unsigned i = 0; i < s.bytes; ++i) out.push_back(static_cast<std::uint8_t>(s.value >> (8 * i)));
    }
    /// `0x16/2`: value and bytes.
    static void print(std::string& out, const Sized& s) {
        wire::append_number(out, s.value);
        out += '/';
        out += static_cast<char>('0' + s.bytes);
    }
    static bool scan(std::string_view text, Sized& s) {
        const std::size_t slash = text.find('/');
        std::uint64_t bytes = 0;
        if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), s.value) ||
            !wire::scan_number(text.substr(slash + 1), bytes))
            return false;
        s.bytes = static_cast<std::uint8_t>(bytes);
        return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && bytes <= Max &&
               (bytes == 8 || s.value < std::uint64_t{1} << (8 * bytes));
    }
    static void random(wire::Random& r, Sized& s) {
        do s.bytes = static_cast<std::uint8_t>(1U << r() % 4);
        while (s.bytes > Max);
        s.value = wire::random_number(r, 8U * s.bytes);
    }
};

/// Reads one zero byte; writes any number. A run of zeros is one packet: the parser counts them.
struct PaddingField {
    static void read(Cursor& c, std::uint64_t& bytes) {
        if (c.u8() != 0) c.bad();
        bytes = 1;
    }
    static void write(std::vector<std::uint8_t>& out, std::uint64_t bytes) { out.insert(out.end(), bytes, 0); }
    static void print(std::string& out, std::uint64_t bytes) { out += std::to_string(bytes); }
    static bool scan(std::string_view text, std::uint64_t& bytes) {
        return wire::scan_number(text, bytes) && bytes >= 1 && bytes <= 0xffffffffU;
    }
    static void random(wire::Random& r, std::uint64_t& bytes) { bytes = r() % 4 == 0 ? 1 + r() % 40 : 1; }
};

/// The obsolete alignment packet: it extends up to the next multiple of `unit`, at least one byte and at most a whole
/// unit.
struct Skip {
    std::uint32_t unit = 2;   ///< 2 to 65536, a power of two
    std::uint32_t bytes = 2;  ///< of the packet, header included; 1: of the header, only the first byte
    friend bool operator==(const Skip&, const Skip&) = default;
};

/// Section 4.1: 0x20 + log2(unit) - 1, then 0x00, then skipped bytes. Reading takes only the header; the packet's
/// extent depends on its place, which the parser knows.
struct SkipField {
    static void read(Cursor& c, Skip& skip) {
        const std::uint32_t byte = c.u8();
        if (((byte & 0xf0U) != 0x20 || c.u8() != 0) && c.step() == Step::ok) return c.bad();
        skip = {2U << (byte & 0xfU), 2};
    }
    static void write(std::vector<std::uint8_t>& out, const Skip& skip) {
        unsigned exponent = 0;
        while (2U << exponent < skip.unit) ++exponent;
        out.push_back(static_cast<std::uint8_t>(0x20U | exponent));
        out.insert(out.end(), skip.bytes - 1, 0);
    }
    static void print(std::string& out, const Skip& skip) {
        out += std::to_string(skip.unit) + "/" + std::to_string(skip.bytes);
    }
    static bool scan(std::string_view text, Skip& skip);
    /// Values for a packet at an aligned place.
    static void random(wire::Random& r, Skip& skip) {
        skip.unit = 2U << r() % 6;
        skip.bytes = skip.unit;
    }
};

/// A packet without a name in this format: the header gives its size (section 4.1).
struct Foreign {
    std::uint8_t prefix = 0;  ///< 0x20 to 0x3f; 0: the header has one byte
    std::uint8_t header = 0xff;
    std::uint64_t payload{};
    friend bool operator==(const Foreign&, const Foreign&) = default;
};
struct ForeignField {
    static void read(Cursor& c, Foreign& f) {
        f.prefix = 0;
        f.header = c.u8();
        if (is_prefix(f.header)) {
            f.prefix = f.header;
            f.header = c.u8();
        }
        if (f.header < 0x40 && c.step() == Step::ok) return c.bad();
        f.payload = c.le(payload_bytes(f.header));
    }
    static void write(std::vector<std::uint8_t>& out, const Foreign& f) {
        if (f.prefix != 0) out.push_back(f.prefix);
        out.push_back(f.header);
        for (unsigned i = 0; i < payload_bytes(f.header); ++i)
            out.push_back(static_cast<std::uint8_t>(f.payload >> (8 * i)));
    }
    /// `0x90:0xa70`, `0x24,0xb0:1`: header bytes and payload.
    static void print(std::string& out, const Foreign& f);
    static bool scan(std::string_view text, Foreign& f);
    static void random(wire::Random& r, Foreign& f);
};

}  // namespace waymark::spe
