/// The fields of STPv2 packets, each with `read`, `write`, `print`, `scan` and `random` (docs/spec/stm.md, 2 and 3).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "waymark/core/append_number.h"
#include "waymark/core/wire.h"
#include "waymark/stm/nibbles.h"

namespace waymark::stm {

/// A number of `Count` nibbles.
template <unsigned Count>
struct NumberOf {
    template <class T>
    WM_INLINE static void read(NibbleCursor& c, T& value) {
        value = static_cast<T>(c.take(Count));
    }
    static void write(NibbleWriter& out, std::uint64_t value) { out.put(value, Count); }
    WM_INLINE static void print(auto& out, std::uint64_t value) { wire::append_number(out, value); }
    template <class T>
    static bool scan(std::string_view text, T& value) {
        std::uint64_t number = 0;
        if (!wire::scan_number(text, number) || (Count < 16 && number >> 4 * (Count % 16) != 0)) return false;
        value = static_cast<T>(number);
        return true;
    }
    template <class T>
    static void random(wire::Random& r, T& value) {
        value = static_cast<T>(wire::random_number(r, 4 * Count));
    }
};

/// The low nibbles of a timestamp, 0 to 12, 14 or 16: their number and value.
struct Stamp {
    std::uint64_t low{};
    std::uint8_t nibbles{};
    friend bool operator==(const Stamp&, const Stamp&) = default;
};
/// The size code of a number of nibbles; 13 and 15 have none.
[[nodiscard]] constexpr unsigned size_code(unsigned nibbles) {
    return nibbles == 16 ? 14 : nibbles == 14 ? 13 : nibbles;
}
struct StampField {
    WM_INLINE static void read(NibbleCursor& c, Stamp& stamp) {
        const auto code = static_cast<unsigned>(c.take(1));
        if (code == 15) [[unlikely]]
            return c.bad();
        stamp.nibbles = static_cast<std::uint8_t>(code == 13 ? 14 : code == 14 ? 16 : code);
        stamp.low = c.take(stamp.nibbles);
    }
    static void write(NibbleWriter& out, const Stamp& stamp) {
        out.put(size_code(stamp.nibbles), 1);
        out.put(stamp.low, stamp.nibbles);
    }
    /// `0x3aeb284c9/16`: the value, and the number of nibbles.
    WM_INLINE static void print(auto& out, const Stamp& stamp) {
        wire::append_number(out, stamp.low);
        out += '/';
        wire::append_decimal(out, stamp.nibbles);
    }
    static bool scan(std::string_view text, Stamp& stamp) {
        const std::size_t slash = text.find('/');
        std::uint64_t nibbles = 0;
        if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), stamp.low) ||
            !wire::scan_number(text.substr(slash + 1), nibbles) || nibbles > 16 || nibbles == 13 || nibbles == 15)
            return false;
        stamp.nibbles = static_cast<std::uint8_t>(nibbles);
        return nibbles == 16 || stamp.low >> 4 * nibbles == 0;
    }
    static void random(wire::Random& r, Stamp& stamp) {
        const auto code = static_cast<unsigned>(r() % 15);
        stamp.nibbles = static_cast<std::uint8_t>(code == 13 ? 14 : code == 14 ? 16 : code);
        stamp.low = stamp.nibbles == 0 ? 0 : wire::random_number(r, 4U * stamp.nibbles);
    }
};

/// The version, 1 to 4, of a VERSION packet.
struct VersionField {
    WM_INLINE static void read(NibbleCursor& c, std::uint8_t& version) {
        version = static_cast<std::uint8_t>(c.take(1));
        if (version == 0 || version > 4) c.bad();
    }
    static void write(NibbleWriter& out, std::uint8_t version) { out.put(version, 1); }
    WM_INLINE static void print(auto& out, std::uint8_t version) { wire::append_number(out, version); }
    static bool scan(std::string_view text, std::uint8_t& version) {
        std::uint64_t number = 0;
        if (!wire::scan_number(text, number) || number == 0 || number > 4) return false;
        version = static_cast<std::uint8_t>(number);
        return true;
    }
    static void random(wire::Random& r, std::uint8_t& version) { version = static_cast<std::uint8_t>(1 + r() % 4); }
};

/// The nibbles F of a synchronisation packet, 21 or more, and its 0.
struct OnesField {
    static void write(NibbleWriter& out, std::uint64_t ones) {
        for (std::uint64_t i = 0; i < ones; ++i) out.put(0xf, 1);
        out.put(0, 1);
    }
    WM_INLINE static void print(auto& out, std::uint64_t ones) { wire::append_decimal(out, ones); }
    static bool scan(std::string_view text, std::uint64_t& ones) { return wire::scan_number(text, ones) && ones >= 21; }
    static void random(wire::Random& r, std::uint64_t& ones) { ones = r() % 4 == 0 ? 21 + r() % 40 : 21; }
};

}  // namespace waymark::stm
