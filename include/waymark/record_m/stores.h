/// Addresses and values of Thumb's store instructions, by the registers before them.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/record_m/core_log.h"

namespace waymark::record {

struct Store {
    std::uint32_t address{};
    std::uint32_t value{};
    std::uint8_t bytes{};  ///< 1, 2 or 4; a longer store is several
    friend bool operator==(const Store&, const Store&) = default;
};

/// nullopt if the instruction is not a store, or its condition in an IT block failed. Stores of floating-point
/// registers, which QEMU's log does not show, are omitted; a store-exclusive is assumed to succeed.
[[nodiscard]] std::vector<Store> stores_of(const CoreInstruction& instruction);

}  // namespace waymark::record
