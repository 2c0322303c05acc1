/// Describes formats once. A packet or register is a plain struct with one function `fields` that names its fields in
/// wire order. The walkers here call that function to read, write, print, scan and invent values.
///
///     struct Vmid {
///         static constexpr wire::PacketInfo info{
///             .name = "VMID", .section = "2.8", .value = 0x3c, .mask = 0xff, .max_bytes = 2};
///         std::uint8_t vmid{};
///
///         static void fields(auto& w, auto& p, const Config&) {
///             w.byte(wire::fixed<7, 0>(0x3c));
///             w.byte(wire::bits<7, 0>("VMID", p.vmid));
///         }
///         bool operator==(const Vmid&) const = default;
///     };
///
/// Presence of a field is an ordinary `if` in `fields`. Irregular fields are codecs: values with `read`, `write`,
/// `print`, `scan` and `random`. docs/decisions/0001-packet-descriptions.md has the reasons.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/types.h"

namespace waymark::wire {

/// Properties of a packet type that do not depend on its contents.
struct PacketInfo {
    std::string_view name;     ///< name in the specification, in capitals
    std::string_view section;  ///< of docs/spec/<protocol>.md
    std::uint8_t value = 0;    ///< a byte b begins such a packet if (b & mask) == value
    std::uint8_t mask = 0;
    std::uint8_t max_bytes = 0;  ///< maximum size, with the header; 0: no limit
};

/// Bits Hi..Lo of the present unit contain `value`.
template <unsigned Hi, unsigned Lo, class T>
struct Bits {
    std::string_view name;
    T& value;
    static constexpr unsigned lo = Lo, width = Hi - Lo + 1;
};
template <unsigned Hi, unsigned Lo = Hi, class T>
[[nodiscard]] WM_INLINE constexpr Bits<Hi, Lo, T> bits(std::string_view name, T& value) {
    return {name, value};
}

/// Bits Hi..Lo are `value`; other bits are not a packet of this format (reserved).
template <unsigned Hi, unsigned Lo>
struct Fixed {
    std::uint32_t value;
    static constexpr unsigned lo = Lo, width = Hi - Lo + 1;
};
template <unsigned Hi, unsigned Lo = Hi>
[[nodiscard]] WM_INLINE constexpr Fixed<Hi, Lo> fixed(std::uint32_t value) {
    return {value};
}

/// Bits Hi..Lo should be `value`; other bits are decoded too (tolerated), and `value` is written.
template <unsigned Hi, unsigned Lo>
struct ShouldBe {
    std::uint32_t value;
    static constexpr unsigned lo = Lo, width = Hi - Lo + 1;
};
template <unsigned Hi, unsigned Lo = Hi>
[[nodiscard]] WM_INLINE constexpr ShouldBe<Hi, Lo> should_be(std::uint32_t value) {
    return {value};
}

/// The smaller of the two number types that can hold `Width` bits.
template <unsigned Width>
using Word = std::conditional_t<(Width > 32), std::uint64_t, std::uint32_t>;

template <unsigned Width>
inline constexpr Word<Width> mask_of = static_cast<Word<Width>>(~Word<Width>{0} >> (8 * sizeof(Word<Width>) - Width));

/// The parts of a byte, word or doubleword must cover it without overlap.
template <unsigned Total, class... Parts>
consteval void check_tiling() {
    static_assert((Parts::width + ... + 0U) == Total, "the fields do not cover the unit exactly");
}

/// Bytes → fields.
class Reader {
public:
    WM_INLINE explicit Reader(Cursor& cursor) : cursor_(cursor) {}

    template <class... Parts>
    WM_INLINE void byte(Parts... parts) {
        check_tiling<8, Parts...>();
        const std::uint32_t unit = cursor_.u8();
        if (cursor_.step() != Step::ok) [[unlikely]]
            return;
        (take(unit, parts), ...);
    }
    template <class... Parts>
    WM_INLINE void word(Parts... parts) {
        check_tiling<32, Parts...>();
        const auto unit = static_cast<std::uint32_t>(cursor_.le(4));
        if (cursor_.step() != Step::ok) [[unlikely]]
            return;
        (take(unit, parts), ...);
    }
    template <class... Parts>
    WM_INLINE void doubleword(Parts... parts) {
        check_tiling<64, Parts...>();
        const std::uint64_t unit = cursor_.le(8);
        if (cursor_.step() != Step::ok) [[unlikely]]
            return;
        (take(unit, parts), ...);
    }
    template <class T, class Codec>
    WM_INLINE void field(std::string_view, T& value, const Codec& codec) {
        codec.read(cursor_, value);
    }
    template <class T>
    WM_INLINE void le(std::string_view, T& value, unsigned bytes) {
        value = static_cast<T>(cursor_.le(bytes));
    }
    /// The packet cannot occur under this configuration.
    WM_INLINE void impossible() { cursor_.bad(); }

private:
    template <unsigned Hi, unsigned Lo, class T>
    WM_INLINE void take(auto unit, Bits<Hi, Lo, T> part) {
        part.value = static_cast<T>((unit >> Lo) & mask_of<Hi - Lo + 1>);
    }
    template <unsigned Hi, unsigned Lo>
    WM_INLINE void take(auto unit, Fixed<Hi, Lo> part) {
        if (((unit >> Lo) & mask_of<Hi - Lo + 1>) != part.value) [[unlikely]]
            cursor_.bad();
    }
    template <unsigned Hi, unsigned Lo>
    WM_INLINE void take(auto, ShouldBe<Hi, Lo>) {}

    Cursor& cursor_;
};

/// Writes fields as bytes, appended to a vector of the caller.
class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& out) : out_(out) {}

    template <class... Parts>
    void byte(Parts... parts) {
        check_tiling<8, Parts...>();
        out_.push_back(static_cast<std::uint8_t>((put(parts) | ... | 0U)));
    }
    template <class... Parts>
    void word(Parts... parts) {
        check_tiling<32, Parts...>();
        le({}, (put(parts) | ... | 0U), 4);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        check_tiling<64, Parts...>();
        le({}, (put<std::uint64_t>(parts) | ... | std::uint64_t{0}), 8);
    }
    template <class T, class Codec>
    void field(std::string_view, const T& value, const Codec& codec) {
        codec.write(out_, value);
    }
    template <class T>
    void le(std::string_view, const T& value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i)
            out_.push_back(static_cast<std::uint8_t>(static_cast<std::uint64_t>(value) >> (8 * i)));
    }
    void impossible() {}

private:
    template <class U = std::uint32_t, unsigned Hi, unsigned Lo, class T>
    static U put(Bits<Hi, Lo, T> part) {
        return (static_cast<U>(part.value) & static_cast<U>(mask_of<Hi - Lo + 1>)) << Lo;
    }
    template <class U = std::uint32_t, unsigned Hi, unsigned Lo>
    static U put(Fixed<Hi, Lo> part) {
        return U{part.value} << Lo;
    }
    template <class U = std::uint32_t, unsigned Hi, unsigned Lo>
    static U put(ShouldBe<Hi, Lo> part) {
        return U{part.value} << Lo;
    }

    std::vector<std::uint8_t>& out_;
};

/// Appends a number as text, decimal below 10 and hexadecimal otherwise.
inline void append_number(std::string& out, std::uint64_t value) {
    std::array<char, 24> buffer{};
    const int base = value < 10 ? 10 : 16;
    const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base);
    if (base == 16) out += "0x";
    out.append(buffer.data(), end);
}

/// Reads a number in C notation (0x for hexadecimal, else decimal). False unless the whole text is a number.
[[nodiscard]] inline bool scan_number(std::string_view text, std::uint64_t& value) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Prints fields as `name=value` words, separated by blanks: the notation of `waymark packets` and of .wmt files.
class Printer {
public:
    explicit Printer(std::string& out) : out_(out) {}

    template <class... Parts>
    void byte(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    void word(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (print(parts), ...);
    }
    template <class T, class Codec>
    void field(std::string_view field_name, const T& value, const Codec& codec) {
        begin(field_name);
        codec.print(out_, value);
    }
    template <class T>
    void le(std::string_view field_name, const T& value, unsigned bytes) {
        if (bytes == 0) return;
        begin(field_name);
        append_number(out_, static_cast<std::uint64_t>(value));
    }
    void impossible() {}

private:
    void begin(std::string_view field_name) {
        if (!out_.empty()) out_ += ' ';
        out_ += field_name;
        out_ += '=';
    }
    template <unsigned Hi, unsigned Lo, class T>
    void print(Bits<Hi, Lo, T> part) {
        begin(part.name);
        append_number(out_, static_cast<std::uint64_t>(part.value));
    }
    template <unsigned Hi, unsigned Lo>
    void print(Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    void print(ShouldBe<Hi, Lo>) {}

    std::string& out_;
};

/// Reads fields from `name=value` words; the inverse of Printer. Fields must be in wire order; `wrong()` returns the
/// first one that is missing or has an invalid value.
class Scanner {
public:
    explicit Scanner(std::string_view text) : rest_(text) {}

    template <class... Parts>
    void byte(Parts... parts) {
        (scan(parts), ...);
    }
    template <class... Parts>
    void word(Parts... parts) {
        (scan(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (scan(parts), ...);
    }
    template <class T, class Codec>
    void field(std::string_view field_name, T& value, const Codec& codec) {
        std::string_view text;
        if (next(field_name, text) && !codec.scan(text, value)) fail(field_name);
    }
    template <class T>
    void le(std::string_view field_name, T& value, unsigned bytes) {
        if (bytes == 0) return;
        number(field_name, value, bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1);
    }
    void impossible() { fail("this packet under this configuration"); }

    /// Empty if there was no error and all words were read.
    [[nodiscard]] std::string_view wrong() {
        skip_blanks();
        if (wrong_.empty() && !rest_.empty()) fail(rest_);
        return wrong_;
    }

private:
    void fail(std::string_view what) {
        if (wrong_.empty()) wrong_ = what;
    }
    void skip_blanks() {
        while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    }
    bool next(std::string_view field_name, std::string_view& text) {
        skip_blanks();
        if (!wrong_.empty() || !rest_.starts_with(field_name) || rest_.size() <= field_name.size() ||
            rest_[field_name.size()] != '=') {
            fail(field_name);
            return false;
        }
        rest_.remove_prefix(field_name.size() + 1);
        text = rest_.substr(0, rest_.find(' '));
        rest_.remove_prefix(text.size());
        return true;
    }
    template <class T>
    void number(std::string_view field_name, T& value, std::uint64_t most) {
        std::string_view text;
        std::uint64_t n = 0;
        if (!next(field_name, text)) return;
        if (!scan_number(text, n) || n > most) return fail(field_name);
        value = static_cast<T>(n);
    }
    template <unsigned Hi, unsigned Lo, class T>
    void scan(Bits<Hi, Lo, T> part) {
        number(part.name, part.value, mask_of<Hi - Lo + 1>);
    }
    template <unsigned Hi, unsigned Lo>
    void scan(Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    void scan(ShouldBe<Hi, Lo>) {}

    std::string_view rest_, wrong_;
};

using Random = std::mt19937_64;

/// Random legal values, for property tests: small and extreme numbers are more frequent than in a uniform distribution.
[[nodiscard]] inline std::uint64_t random_number(Random& random, unsigned width) {
    const std::uint64_t all = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
    switch (random() % 4) {
        case 0: return random() % 4 & all;
        case 1: return all - (random() % 4 & all);
        case 2: return random() >> (random() % 64) & all;
        default: return random() & all;
    }
}

/// Fills the fields with random legal values.
class Generator {
public:
    explicit Generator(Random& random) : random_(random) {}

    template <class... Parts>
    void byte(Parts... parts) {
        (draw(parts), ...);
    }
    template <class... Parts>
    void word(Parts... parts) {
        (draw(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (draw(parts), ...);
    }
    template <class T, class Codec>
    void field(std::string_view, T& value, const Codec& codec) {
        codec.random(random_, value);
    }
    template <class T>
    void le(std::string_view, T& value, unsigned bytes) {
        value = static_cast<T>(random_number(random_, 8 * bytes));
    }
    void impossible() { possible_ = false; }
    [[nodiscard]] bool possible() const { return possible_; }

private:
    template <unsigned Hi, unsigned Lo, class T>
    void draw(Bits<Hi, Lo, T> part) {
        part.value = static_cast<T>(random_number(random_, Hi - Lo + 1));
    }
    template <unsigned Hi, unsigned Lo>
    void draw(Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    void draw(ShouldBe<Hi, Lo>) {}

    Random& random_;
    bool possible_ = true;
};

/// The packets of a protocol, the most frequent first: dispatch tests their headers in this order.
template <class... P>
struct PacketList {
    static constexpr std::size_t size = sizeof...(P);
    static constexpr std::array<PacketInfo, size> infos{P::info...};
    static constexpr std::size_t max_bytes = std::max({static_cast<std::size_t>(P::info.max_bytes)...});

    /// Calls `f.template operator()<Packet>()` for each packet type.
    template <class F>
    static constexpr void for_each(F&& f) {
        (f.template operator()<P>(), ...);
    }
};

inline constexpr std::uint8_t reserved_header = 0xff;

/// Which packet each header byte starts: an index into the list, or `reserved_header`. Does not compile if two packets
/// claim one byte.
template <class List>
consteval std::array<std::uint8_t, 256> header_table() {
    std::array<std::uint8_t, 256> table{};
    table.fill(reserved_header);
    for (unsigned byte = 0; byte < 256; ++byte)
        for (std::size_t i = 0; i < List::size; ++i)
            if ((byte & List::infos[i].mask) == List::infos[i].value) {
                if (table[byte] != reserved_header) throw "two packets claim the same header byte";
                table[byte] = static_cast<std::uint8_t>(i);
            }
    return table;
}

template <class List>
consteval unsigned reserved_headers() {
    unsigned count = 0;
    for (const std::uint8_t entry : header_table<List>()) count += entry == reserved_header;
    return count;
}

}  // namespace waymark::wire
