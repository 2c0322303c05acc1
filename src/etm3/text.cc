#include "waymark/etm3/text.h"

#include <fmt/format.h>

#include <array>

#include "waymark/etm3/exceptions.h"

namespace waymark::etm3 {

Result<Packet> from_text(std::string_view text, const Config& config) {
    return wire::packet_from_text<Packets, Packet>(text, "packet", config);
}

std::string_view name(ISyncReason reason) {
    constexpr std::array<std::string_view, 4> names{"periodic", "trace enabled", "overflow restart", "debug exit"};
    return names[static_cast<std::size_t>(reason) & 3U];
}

std::string Explainer::operator()(const Packet& packet) {
    return std::visit([&](const auto& p) { return explain(p); }, packet);
}

std::string Explainer::explain(const BranchAddress& p) {
    const LastState to = branch_state(p, last_, config_);
    std::string out;
    if (p.cancels()) out = "last instruction cancelled, ";
    if (p.exception() != 0)
        out += fmt::format("exception {} ({}), ", p.exception(), exception_type(p.exception(), config_.m_profile).name);
    if (synced_ || p.target.bytes == 5)
        out += fmt::format("to {:#010x} {}", to.address.value, isa::name(to.isa));
    else
        out += "to an address whose high bits are not yet known";
    if (p.target.information) out += to.ns ? ", Non-secure" : ", Secure";
    if (to.hyp) out += ", Hyp";
    last_ = to;
    return out;
}

std::string Explainer::explain(const ISync& p) {
    last_ = isync_state(p, last_.vmid, config_);
    synced_ = !config_.data_only;
    if (config_.data_only) return fmt::format("{}: no address", name(p.reason));
    return fmt::format("{}: {:#010x} {}{}{}{}", name(p.reason), last_.address.value, isa::name(last_.isa),
                       last_.ns ? ", Non-secure" : ", Secure", last_.hyp ? ", Hyp" : "",
                       p.in_progress ? fmt::format(", load or store at {:#010x} in progress", p.address & ~1U) : "");
}

std::string Explainer::explain(const Timestamp& p) {
    const pft::Config config = timestamp_config(config_);
    timestamps_.update(p.value, config);
    if (!timestamps_.known()) return "high bits not yet known";
    return fmt::format("{:#x}{}", timestamps_.value(config), p.frequency_changed ? ", clock frequency changed" : "");
}

std::string Explainer::explain(const NormalData& p) {
    std::string out = data_text(p.addressed, p.address);
    if (config_.data_value) out += fmt::format("{}value {:#x}", out.empty() ? "" : ", ", p.value);
    return out;
}

std::string Explainer::data_text(bool addressed, const SentDataAddress& address) {
    if (!config_.data_address) return {};
    if (addressed) {
        const bool whole = address.bytes == 5;
        if (!whole && !data_) return "at an address whose high bits are not yet known";
        const std::uint32_t low = whole ? ~std::uint32_t{0} : (std::uint32_t{1} << 7U * address.bytes) - 1U;
        data_ = (data_.value_or(0) & ~low) | address.bits;
    } else if (data_) {
        *data_ += 4;
    }
    return data_ ? fmt::format("at {:#010x}", *data_) : std::string();
}

}  // namespace waymark::etm3
