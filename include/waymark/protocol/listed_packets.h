/// Trace that tools print packet by packet, in words of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/protocol/finding.h"
#include "waymark/protocol/protocol.h"

namespace waymark::protocol {

/// The trace behind a list of packets.
struct ListedTrace {
    std::string how;                      ///< `a list of 25 jumps, the newest first`
    std::vector<std::uint8_t> bytes{};    ///< as the unit would have written them
    std::vector<CaptureFinding> lacks{};  ///< omissions of the text; without place
};

/// A Protocol also derives from this class if tools print such lists of its packets.
class ListedPackets {
public:
    virtual ~ListedPackets() = default;
    /// nullopt: the text is not a list of packets of this protocol.
    [[nodiscard]] virtual std::optional<ListedTrace> read_text(std::string_view text) const = 0;
    /// Like Protocol::identify, for the bytes of such a list, which are known to be of this protocol.
    virtual void identify_listed(const std::vector<Stretch>& stretches, Identity& out) const = 0;
};
/// Null if tools print no such lists.
[[nodiscard]] inline const ListedPackets* listed_packets(const Protocol* protocol) {
    return dynamic_cast<const ListedPackets*>(protocol);
}

}  // namespace waymark::protocol
