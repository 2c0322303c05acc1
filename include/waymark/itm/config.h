/// The programming of an Instrumentation Trace Macrocell: everything on which its bytes depend (docs/spec/itm.md, 3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace waymark::itm {

struct Config {
    std::uint8_t prescaler = 1;  ///< ticks of a local timestamp: 1, 4, 16 or 64 cycles
    /// DWT_COMP0 to DWT_COMP3, if known: the watched addresses. They do not change packets.
    std::array<std::optional<std::uint32_t>, 4> watched{};
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::itm
