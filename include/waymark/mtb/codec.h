/// A word of a packet: an address and, in bit 0, a flag (docs/spec/mtb.md, 1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"

namespace waymark::mtb {

struct FlaggedAddress {
    std::uint32_t address{};  ///< even
    bool flag{};
    friend bool operator==(const FlaggedAddress&, const FlaggedAddress&) = default;
};

/// `Letter` is the name of the flag.
template <char Letter>
struct FlaggedAddressField {
    static void read(Cursor& c, FlaggedAddress& word) {
        const auto value = static_cast<std::uint32_t>(c.le(4));
        word = {value & ~1U, (value & 1U) != 0};
    }
    static void write(std::vector<std::uint8_t>& out, const FlaggedAddress& word) {
        wire::Writer(out).le({}, word.address | (word.flag ? 1U : 0U), 4);
    }
    /// `0xf6,A`: the flag is set.
    static void print(std::string& out, const FlaggedAddress& word) {
        wire::append_number(out, word.address);
        if (word.flag) out += std::string{',', Letter};
    }
    static bool scan(std::string_view text, FlaggedAddress& word) {
        word.flag = text.ends_with(std::string{',', Letter});
        if (word.flag) text.remove_suffix(2);
        std::uint64_t value = 0;
        if (!wire::scan_number(text, value) || value > 0xffffffff || (value & 1U) != 0) return false;
        word.address = static_cast<std::uint32_t>(value);
        return true;
    }
    static void random(wire::Random& r, FlaggedAddress& word) {
        word = {static_cast<std::uint32_t>(wire::random_number(r, 32)) & ~1U, r() % 4 == 0};
    }
};

}  // namespace waymark::mtb
