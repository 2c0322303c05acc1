/// Packets ↔ text: `JUMP source=0x146 destination=0xd8,S` (docs/spec/mtb.md, 1).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/mtb/packet.h"

namespace waymark::mtb {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: unknown name, or a field is missing or has an invalid value; the message names
/// it.
[[nodiscard]] Result<Packet> from_text(std::string_view text);

/// Explains packets. Receives every packet and gap of a stream in order.
class Explainer {
public:
    explicit Explainer(const Config&) {}
    [[nodiscard]] std::string operator()(const Packet& packet);
    void operator()(const Gap&) { before_.reset(); }

private:
    std::optional<JumpPacket> before_;
};

}  // namespace waymark::mtb
