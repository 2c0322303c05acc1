/// Packets → bytes, exactly as the packet says (docs/spec/spe.md, section 4).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

/// Appends a packet. Fields must be within the ranges that the packet states.
template <class P>
void encode(std::vector<std::uint8_t>& out, const P& packet) {
    wire::Writer writer(out);
    P::fields(writer, packet);
}
inline void encode(std::vector<std::uint8_t>& out, const Packet& packet) {
    std::visit([&](const auto& p) { encode(out, p); }, packet);
}

}  // namespace waymark::spe
