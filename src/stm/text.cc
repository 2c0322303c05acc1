#include "waymark/stm/text.h"

#include <fmt/format.h>

#include <type_traits>
#include <variant>

namespace waymark::stm {

Result<Packet> from_text(std::string_view text) { return wire::packet_from_text<Packets, Packet>(text, "packet"); }

namespace {

std::string place_text(const SourceState& state) {
    const auto number = [](const std::optional<std::uint32_t>& n) { return n ? std::to_string(*n) : std::string("?"); };
    return fmt::format("master {} channel {}", number(state.master()), number(state.channel()));
}

std::string time_text(const SourceState& state) {
    if (!state.time()) return "no VERSION says how to read the timestamp";
    return fmt::format("at {}{}", state.exact() ? "" : "least ", *state.time());
}

std::string_view version_text(unsigned version) {
    switch (version) {
        case 1: return "STPv1: timestamps are not read";
        case 2: return "timestamps are differences: not read";
        case 3: return "timestamps in binary";
        case 4: return "timestamps in Gray code";
        default: return {};
    }
}

}  // namespace

std::string Explainer::operator()(const Packet& packet) {
    return std::visit(
        [&]<class P>(const P& p) -> std::string {
            state_.see(p);
            if constexpr (std::is_same_v<P, VersionPacket>) {
                return std::string(version_text(p.version));
            } else if constexpr (std::is_same_v<P, MasterError>) {
                return place_text(state_) + ": writes of this master were lost";
            } else if constexpr (std::is_same_v<P, GlobalError>) {
                return "writes of any master were lost";
            } else if constexpr (std::is_same_v<P, Null> || std::is_same_v<P, Async> || std::is_same_v<P, Master8> ||
                                 std::is_same_v<P, Master16>) {
                return {};
            } else if constexpr (std::is_same_v<P, Channel8> || std::is_same_v<P, Channel16>) {
                return place_text(state_);
            } else if constexpr (std::is_same_v<P, Frequency> || std::is_same_v<P, Frequency40>) {
                return fmt::format("timestamps count at {} Hz", p.value);
            } else if constexpr (std::is_same_v<P, NullTimed> || std::is_same_v<P, FrequencyTimed> ||
                                 std::is_same_v<P, Frequency40Timed>) {
                return time_text(state_);
            } else if constexpr (requires { p.time; }) {
                return place_text(state_) + ", " + time_text(state_);
            } else {
                return place_text(state_);
            }
        },
        packet);
}

}  // namespace waymark::stm
