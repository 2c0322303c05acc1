/// How an Instrumentation Trace Macrocell was programmed: everything its bytes depend on (docs/spec/itm.md, 3).
#pragma once

#include <cstdint>

namespace waymark::itm {

struct Config {
    std::uint8_t prescaler = 1;  ///< ticks of a local timestamp: 1, 4, 16 or 64 cycles
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::itm
