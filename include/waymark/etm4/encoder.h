/// Encodes packets as bytes, in canonical form: every continuation field has the fewest bytes, except in timestamps,
/// whose packets state the number (docs/spec/etm4.md, sections 2 to 12).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/packet.h"

namespace waymark::etm4 {

/// Appends a packet. Fields must be within the ranges that the packet states, and the packet must exist in the
/// configuration.
template <class P>
void encode(std::vector<std::uint8_t>& out, const P& packet, const Config& config) {
    wire::Writer writer(out);
    P::fields(writer, packet, config);
}
inline void encode(std::vector<std::uint8_t>& out, const Packet& packet, const Config& config) {
    std::visit([&](const auto& p) { encode(out, p, config); }, packet);
}

}  // namespace waymark::etm4
