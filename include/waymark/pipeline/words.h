/// Numbers in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace waymark::pipeline {

/// 12345678 → `12,345,678`.
[[nodiscard]] inline std::string grouped(std::uint64_t number) {
    std::string out = std::to_string(number);
    for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
    return out;
}
/// `1 byte`, `2,345 bytes`; `many` where an s is not enough.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
    std::string out = number == 1 ? "1" : grouped(number);
    out += ' ';
    out += number == 1 || many.empty() ? one : many;
    if (number != 1 && many.empty()) out += 's';
    return out;
}

}  // namespace waymark::pipeline
