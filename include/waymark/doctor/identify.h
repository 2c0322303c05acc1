/// What the bytes of one trace source are: which protocol, and how its unit was programmed, as far as the bytes prove
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

/// Judges one source: each protocol of the registry, until one recognises the bytes. Never fails; time is a small
/// multiple of the bytes. `framed`: the bytes came in frames of a trace bus, where units that write to memory
/// themselves send nothing. `described`: the protocol that the capture names for the source, or null. A protocol that
/// never comes as bare bytes, such as branch stacks, is tried only if it is this one. `listed`: the protocol whose
/// packets a text listed, or null; no other is tried then.
[[nodiscard]] Identity identify(const std::vector<Stretch>& stretches, bool framed = false,
                                const Protocol* described = nullptr, const Protocol* listed = nullptr);

/// Takes the end mark off stretches, where it is one under this configuration.
void take_end_mark_off(std::vector<Stretch>& stretches, const Configuration& configuration);

}  // namespace waymark::doctor
