/// Numbers in sentences.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace waymark::doctor {

/// 12345678 → `12,345,678`.
inline std::string grouped(std::uint64_t number) {
    std::string out = std::to_string(number);
    for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
    return out;
}
/// `1 byte`, `2,345 bytes`; `many` where an s is not enough.
inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
    if (number == 1) return fmt::format("1 {}", one);
    return many.empty() ? fmt::format("{} {}s", grouped(number), one) : fmt::format("{} {}", grouped(number), many);
}
/// `is` or `are`.
inline std::string_view are(std::uint64_t number) { return number == 1 ? "is" : "are"; }

}  // namespace waymark::doctor
