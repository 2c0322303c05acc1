#include "waymark/itm/text.h"

#include <array>
#include <variant>

#include "explain.h"

namespace waymark::itm {

Result<Packet> from_text(std::string_view text) { return wire::packet_from_text<Packets, Packet>(text, "packet"); }

std::string Explainer::operator()(const Packet& packet) {
    std::array<char, 256> text;
    TextCursor out(text.data());
    std::visit([&](const auto& p) { explain(p, out); }, packet);
    return {text.data(), out.at()};
}

}  // namespace waymark::itm
