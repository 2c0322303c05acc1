/// Arithmetic of counts that saturates at the largest number: a saturated count is a lower bound, while a wrapped count
/// would be meaningless.
#pragma once

#include <cstdint>

namespace waymark {

[[nodiscard]] constexpr std::uint64_t saturating(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    return a > most - b ? most : a + b;
}
[[nodiscard]] constexpr std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    return a != 0 && b > most / a ? most : a * b;
}
constexpr void add_saturating(std::uint64_t& to, std::uint64_t count) { to = saturating(to, count); }

}  // namespace waymark
