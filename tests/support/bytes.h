/// Bytes from the notation of specifications and tests.
#pragma once

#include <cctype>
#include <cstdint>
#include <string_view>
#include <vector>

namespace waymark::test {

/// `08 3d 92` → bytes; everything but hexadecimal digits is ignored.
inline std::vector<std::uint8_t> hex(std::string_view text) {
    std::vector<std::uint8_t> out;
    unsigned value = 0, digits = 0;
    for (const char ch : text) {
        if (std::isxdigit(static_cast<unsigned char>(ch)) == 0) continue;
        value = value * 16 + static_cast<unsigned>(ch <= '9' ? ch - '0' : (ch | 0x20) - 'a' + 10);
        if (++digits == 2) {
            out.push_back(static_cast<std::uint8_t>(value));
            value = digits = 0;
        }
    }
    return out;
}

}  // namespace waymark::test
