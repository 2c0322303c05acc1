/// Identifies the bytes of one trace source: the protocol, and how its unit was programmed, as far as the bytes prove
/// it.
#pragma once

#include <string_view>
#include <vector>

#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/protocol.h"

namespace waymark::doctor {

using pipeline::Protocol;
using protocol::Configuration;
using protocol::Identity;
using protocol::InferredField;
using protocol::Stretch;
using protocol::Tried;

/// `Program Flow Trace (PTM)`; `not recognised` for null.
[[nodiscard]] std::string_view name(const Protocol* protocol);

/// Judges one source with each protocol of the registry, until one recognises the bytes. Never fails; time is a small
/// multiple of the number of bytes. `framed`: the bytes came in frames of a trace bus; units that write to memory
/// themselves do not send such frames. `described`: the protocol that the capture names for the source, or null.
/// Another protocol with the same synchronisation is chosen instead only if some bytes are not packets of the described
/// one, but all are packets of the other. A protocol that never occurs as bare bytes, such as branch stacks, is tried
/// only if it is the described one. `listed`: the protocol whose packets a text listed, or null; no other is tried
/// then.
[[nodiscard]] Identity identify(const std::vector<Stretch>& stretches, bool framed = false,
                                const Protocol* described = nullptr, const Protocol* listed = nullptr);

/// Whether some of the bytes are no packets of the protocol that the identity names.
[[nodiscard]] bool leaves_bytes(const Identity& identity, const std::vector<Stretch>& stretches);

/// Whether some of the bytes are not packets of the protocol in this identity.
[[nodiscard]] bool leaves_bytes(const Identity& identity, const std::vector<Stretch>& stretches);

/// Removes the end mark from stretches, if there is one under this configuration.
void take_end_mark_off(std::vector<Stretch>& stretches, const Configuration& configuration);

}  // namespace waymark::doctor
