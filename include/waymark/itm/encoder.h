/// Encodes packets as bytes (docs/spec/itm.md, 1 and 2).
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/itm/packet.h"

namespace waymark::itm {

/// Appends a packet. Fields must be within the ranges that the packet states.
template <class P>
void encode(std::vector<std::uint8_t>& out, const P& packet) {
    wire::Writer writer(out);
    P::fields(writer, packet);
}
inline void encode(std::vector<std::uint8_t>& out, const Packet& packet) {
    std::visit([&](const auto& p) { encode(out, p); }, packet);
}

}  // namespace waymark::itm
