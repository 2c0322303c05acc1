/// Converts packets to text and back: `ADDRESS index=0 address=0xc0ffc0c2868c8b5c`. The names and fields come from
/// docs/spec/spe.md, section 4.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: no packet has that name, or a field is missing, in the wrong place or invalid;
/// the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text);

/// A short phrase with the meaning of a packet, such as `PC 0xffffc0c2868c8b5c EL2 non-secure`; empty if the fields are
/// enough. Data sources need the core's MIDR_EL1; 0 if it is not known.
[[nodiscard]] std::string explain(const Packet& packet, std::uint32_t midr = 0);

}  // namespace waymark::spe
