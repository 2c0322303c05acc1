/// Numbers in sentences.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace waymark::doctor {

/// `1 byte`, `2 bytes`; `many` where an s is not enough.
inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
    if (number == 1) return fmt::format("1 {}", one);
    return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}
/// `is` or `are`.
inline std::string_view are(std::uint64_t number) { return number == 1 ? "is" : "are"; }

}  // namespace waymark::doctor
