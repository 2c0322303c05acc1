/// Packets → nibbles, exactly as the packet says (docs/spec/stm.md, 1 and 2).
#pragma once

#include <type_traits>
#include <variant>

#include "waymark/stm/packet.h"

namespace waymark::stm {

/// Appends a packet. Fields must be within the ranges that the packet states.
template <class P>
void encode(NibbleWriter& out, const P& packet) {
    if constexpr (!std::is_same_v<P, Async>) out.put(P::opcode.value, P::opcode.nibbles);
    NibbleFieldWriter writer(out);
    P::fields(writer, packet);
}
inline void encode(NibbleWriter& out, const Packet& packet) {
    std::visit([&](const auto& p) { encode(out, p); }, packet);
}

}  // namespace waymark::stm
