/// Packets → bytes (docs/spec/mtb.md, 1).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/mtb/packet.h"

namespace waymark::mtb {

/// Appends a packet.
inline void encode(std::vector<std::uint8_t>& out, const JumpPacket& packet) {
    wire::Writer writer(out);
    JumpPacket::fields(writer, packet);
}

}  // namespace waymark::mtb
