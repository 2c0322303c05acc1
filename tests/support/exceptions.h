/// Exceptions of a protocol that exists only in tests.
#pragma once

#include <array>
#include <cstdint>

#include "waymark/flow/exception.h"

namespace waymark::synthetic {

/// 14 is IRQ, 15 FIQ; the others are "other". Precondition: `number` is below 16.
[[nodiscard]] inline const flow::ExceptionType& exception_type(std::uint32_t number) {
    static constexpr auto table = [] {
        std::array<flow::ExceptionType, 16> rows{};
        for (std::uint32_t n = 0; n < rows.size(); ++n) rows[n] = {n, flow::ExceptionClass::other, "something"};
        rows[14] = {14, flow::ExceptionClass::irq, "IRQ"};
        rows[15] = {15, flow::ExceptionClass::fiq, "FIQ"};
        return rows;
    }();
    return table[number];
}

}  // namespace waymark::synthetic
