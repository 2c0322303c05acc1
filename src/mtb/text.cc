#include "waymark/mtb/text.h"

#include <fmt/format.h>

namespace waymark::mtb {

Result<Packet> from_text(std::string_view text) { return wire::packet_from_text<Packets, Packet>(text, "packet"); }

std::string Explainer::operator()(const Packet& packet) {
    const JumpPacket& p = std::get<JumpPacket>(packet);
    const std::uint32_t from = p.source.address, to = p.destination.address;
    const bool second_half =
        before_ && is_return_value(before_->destination.address) && from == before_->destination.address && p.atomic();
    std::string out;
    if (p.starts()) out = "tracing starts: ";
    if (to == lockup_address && p.atomic())
        out += "lockup";
    else if (is_return_value(to))
        out += fmt::format("a return with {:#010x} begins", to | 1U);
    else if (second_half || (!before_ && p.atomic() && is_return_value(from)))
        out += fmt::format("returned to {:#x}, or the next exception began", to);
    else if (p.atomic())
        out += fmt::format("exception, or moved by a debugger, before {:#x}: at {:#x}", from, to);
    else
        out += fmt::format("{:#x} went to {:#x}", from, to);
    before_ = p;
    return out;
}

}  // namespace waymark::mtb
