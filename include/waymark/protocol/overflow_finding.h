/// The finding about places where a unit says that it lost trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/protocol/finding.h"

namespace waymark::protocol {

/// Such places.
struct Overflows {
    std::uint64_t times{};
    std::optional<Offset> first{};  ///< in the capture

    void add(Offset at) {
        if (times++ == 0) first = at;
    }
    /// `what`: what happened, such as `the unit's FIFO overflowed`. Precondition: it happened at least once.
    [[nodiscard]] CaptureFinding finding(std::string_view what) const;
};

}  // namespace waymark::protocol
