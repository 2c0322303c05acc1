#include "waymark/pft/text.h"

#include <fmt/format.h>

#include <array>

#include "elements.h"
#include "waymark/pft/exceptions.h"

namespace waymark::pft {

Result<Packet> from_text(std::string_view text, const Config& config) {
    return wire::packet_from_text<Packets, Packet>(text, "packet", config);
}

std::string_view name(ISyncReason reason) {
    constexpr std::array<std::string_view, 4> names{"periodic", "trace enabled", "overflow restart", "debug exit"};
    return names[static_cast<std::size_t>(reason) & 3U];
}

struct Explainer::State {
    const Config config;
    CoreState last;
    bool synced = false;
    TimestampState timestamps;

    [[nodiscard]] std::string place(const Target& target, const CoreState& to) const {
        if (synced || target.bytes == 5) return fmt::format("{:#010x} {}", to.address.value, name(to.isa));
        // Number of hexadecimal digits that the packet carries completely, in the assumed instruction set.
        const unsigned known = (target_bits(target.bytes) + address_shift(to.isa)) / 4;
        return fmt::format("0x{:?>{}}{:0{}x}", "", 8 - known, to.address.value & ((std::uint64_t{1} << 4 * known) - 1),
                           known);
    }

    std::string explain(const BranchAddress& p) {
        const CoreState to = branch_target(p, last, config);
        std::string out;
        if (p.exception() != 0)
            out = fmt::format("exception {} ({}), ", p.exception(), exception_type(p.exception()).name);
        out += "to " + place(p.target, to);
        if (p.target.information) out += to.ns ? ", Non-secure" : ", Secure";
        if (to.hyp) out += ", Hyp";
        last = to;
        return out;
    }
    std::string explain(const ISync& p) {
        last = isync_state(p, last.vmid, config);
        synced = true;
        return fmt::format("{}: {:#010x} {}{}{}", name(p.reason), last.address.value, name(last.isa),
                           last.ns ? ", Non-secure" : ", Secure", last.hyp ? ", Hyp" : "");
    }
    std::string explain(const WaypointUpdate& p) {
        CoreState to = last;
        const Place at = complete(p.target, last.place());
        if (p.target.information) to.alt_isa = p.alt_isa;
        to.address = at.address;
        to.isa = with_alt_isa(at.isa, to.alt_isa);
        std::string out = "executed up to " + place(p.target, to);
        if (config.update_is_compression_base) last = to;
        return out;
    }
    std::string explain(const Timestamp& p) {
        timestamps.update(p.value, config);
        if (!timestamps.known()) return "high bits not yet known";
        return fmt::format("{:#x}{}", timestamps.value(config), p.frequency_changed ? ", clock frequency changed" : "");
    }
    static std::string explain(const auto&) { return {}; }
};

Explainer::Explainer(const Config& config) : state_(new State{config, {}, false, {}}) {}
Explainer::~Explainer() = default;
std::string Explainer::operator()(const Packet& packet) {
    return std::visit([&](const auto& p) { return state_->explain(p); }, packet);
}
void Explainer::operator()(const Gap&) {
    state_->last = {};
    state_->synced = false;
    state_->timestamps.forget();
}

}  // namespace waymark::pft
