/// Finds the packets in a dump of memory, and the oldest of them (docs/spec/mtb.md, 2 and 4).
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/mtb/config.h"
#include "waymark/mtb/packet.h"
#include "waymark/protocol/ring.h"

namespace waymark::mtb {

[[nodiscard]] protocol::Arrangement arrange(Bytes dump, const Config& config);

/// The oldest packet of a buffer, from the packets alone.
struct Seam {
    std::size_t oldest{};  ///< its index
    std::size_t breaks{};  ///< places at which a packet cannot follow the previous one, including the seam
};
/// `ring`: all packets of a buffer, in memory order. Precondition: not empty.
[[nodiscard]] Seam find_seam(const std::vector<JumpPacket>& ring);

/// The number of packets before the words of zeros at the end of a dump. nullopt: the dump does not end with such
/// words, or, unless `gaps` allows it, there are such words elsewhere too. Those elsewhere count as packets.
[[nodiscard]] std::optional<std::size_t> written_packets(Bytes dump, bool gaps = false);

}  // namespace waymark::mtb
