/// How an Instrumentation Trace Macrocell was programmed: everything its bytes depend on (docs/spec/itm.md, 3).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace waymark::itm {

struct Config {
    std::uint8_t prescaler = 1;  ///< ticks of a local timestamp: 1, 4, 16 or 64 cycles
    /// DWT_COMP0 to DWT_COMP3, where they are known: addresses that are watched. They change no packet.
    std::array<std::optional<std::uint32_t>, 4> watched{};
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::itm
