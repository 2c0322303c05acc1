/// The irregular fields of ITM packets, each with `read`, `write`, `print`, `scan` and `random` (docs/spec/itm.md,
/// 1 and 2).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/append_number.h"
#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"

namespace waymark::itm {

/// A number with seven bits in each byte, and the number of bytes in which it was sent.
struct Number {
    std::uint64_t value{};
    std::uint8_t bytes = 1;
    friend bool operator==(const Number&, const Number&) = default;
};

/// `Least` to `Most` bytes; bit 7 is set in all except the last. With a step of 2, only every second size is allowed.
template <unsigned Least, unsigned Most, unsigned Size = 1>
struct NumberField {
    WM_INLINE static void read(Cursor& c, Number& n) {
        n = {0, 0};
        std::uint32_t byte = 0x80;
        while ((byte & 0x80U) != 0 && n.bytes < Most) {
            byte = c.u8();
            if (c.step() != Step::ok) [[unlikely]]
                return;
            n.value |= std::uint64_t{byte & 0x7fU} << 7 * n.bytes;
            ++n.bytes;
        }
        if ((byte & 0x80U) != 0 || n.bytes < Least || (n.bytes - Least) % Size != 0) [[unlikely]]
            c.bad();
    }
    static void write(std::vector<std::uint8_t>& out, const Number& n) {
        for (unsigned i = 0; i < n.bytes; ++i)
            out.push_back(static_cast<std::uint8_t>((n.value >> 7 * i & 0x7fU) | (i + 1U < n.bytes ? 0x80U : 0U)));
    }
    /// `0x12402/3`: value and bytes.
    WM_INLINE static void print(auto& out, const Number& n) {
        wire::append_number(out, n.value);
        out += '/';
        out += static_cast<char>('0' + n.bytes);
    }
    static bool scan(std::string_view text, Number& n) {
        const std::size_t slash = text.find('/');
        std::uint64_t bytes = 0;
        if (slash == std::string_view::npos || !wire::scan_number(text.substr(0, slash), n.value) ||
            !wire::scan_number(text.substr(slash + 1), bytes) || bytes < Least || bytes > Most ||
            (bytes - Least) % Size != 0)
            return false;
        n.bytes = static_cast<std::uint8_t>(bytes);
        return n.value >> 7 * bytes == 0;
    }
    static void random(wire::Random& r, Number& n) {
        n.bytes = static_cast<std::uint8_t>(Least + Size * (r() % ((Most - Least) / Size + 1)));
        n.value = wire::random_number(r, 7U * n.bytes);
    }
};

/// The zeros of a synchronisation packet, and its 0x80.
struct SyncField {
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
    WM_INLINE static void print(auto& out, std::uint64_t zeros) { wire::append_decimal(out, zeros); }
    static bool scan(std::string_view text, std::uint64_t& zeros) {
        return wire::scan_number(text, zeros) && zeros >= 5;
    }
    static void random(wire::Random& r, std::uint64_t& zeros) { zeros = r() % 4 == 0 ? 5 + r() % 40 : 5; }
};

}  // namespace waymark::itm
