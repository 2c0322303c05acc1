/// Parses lists of jumps that debuggers and scripts print (docs/spec/mtb.md, 7).
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "waymark/mtb/packet.h"

namespace waymark::mtb {

struct Listing {
    /// The packets, the oldest first. If the list omits packets, a packet of zeros is in their place.
    std::vector<JumpPacket> packets;
    std::size_t jumps{};       ///< packets that are not zeros
    bool newest_first{};       ///< how the text has them
    bool marks_known{};        ///< the text distinguishes exceptions from jumps
    std::size_t unreadable{};  ///< packets without a source or a destination: left out
};

/// Reads a text with a source and a destination for each packet: lines that name them (`src=0x146 dst=0xd8`, `SOURCE
/// ADDRESS = …`, `>S: …`), pairs with an arrow, and `A 0x… S 0x…`. Addresses are hexadecimal; bit 0 is the A or S bit.
/// nullopt: the text has fewer than two packets, or packets that cannot follow each other.
[[nodiscard]] std::optional<Listing> read_listing(std::string_view text);

}  // namespace waymark::mtb
