/// Encodes packets as bytes, in canonical form: every count and address has the fewest bytes unless the packet states
/// another number (docs/spec/pft.md, sections 2 and 5.7).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/pft/config.h"
#include "waymark/pft/packet.h"

namespace waymark::pft {

/// Appends a packet. Fields must be within the ranges that the packet states.
template <class P>
void encode(std::vector<std::uint8_t>& out, const P& packet, const Config& config) {
    wire::Writer writer(out);
    P::fields(writer, packet, config);
}
inline void encode(std::vector<std::uint8_t>& out, const Packet& packet, const Config& config) {
    std::visit([&](const auto& p) { encode(out, p, config); }, packet);
}

}  // namespace waymark::pft
