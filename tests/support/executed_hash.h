/// A hash over executed addresses, to keep the truth of a long run in one number.
#pragma once

#include <cstdint>

namespace waymark::synthetic {

/// FNV-1a's constants, one step for each number.
class ExecutedHash {
public:
    constexpr void add(std::uint64_t number) { value_ = (value_ ^ number) * 1099511628211U; }
    [[nodiscard]] constexpr std::uint64_t value() const { return value_; }

private:
    std::uint64_t value_ = 1469598103934665603U;
};

}  // namespace waymark::synthetic
