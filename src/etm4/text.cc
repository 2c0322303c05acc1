#include "waymark/etm4/text.h"

#include <fmt/format.h>

#include <array>
#include <optional>

#include "waymark/etm4/exceptions.h"
#include "waymark/etm4/state.h"

namespace waymark::etm4 {

Result<Packet> from_text(std::string_view text, const Config& config) {
    const std::string_view packet_name = text.substr(0, text.find(' '));
    const std::string_view rest = text.substr(packet_name.size());
    std::optional<Packet> out;
    std::string wrong;
    Packets::for_each([&]<class P>() {
        if (P::info.name != packet_name) return;
        P packet{};
        if (!is_allowed<P>(config)) {
            if constexpr (requires { P::needs; })
                wrong = fmt::format("{}: the configuration has no such packet; it needs {}", packet_name, P::needs);
        } else {
            wire::Scanner scanner(rest);
            P::fields(scanner, packet, config);
            if (!scanner.wrong().empty())
                wrong = fmt::format("{}: cannot read '{}' in '{}'", packet_name, scanner.wrong(), text);
        }
        out = packet;
    });
    if (!out) return Error{Errc::bad_format, fmt::format("no packet is called '{}'", packet_name)};
    if (!wrong.empty()) return Error{Errc::bad_format, wrong};
    return *out;
}

namespace {

/// `1 instruction`, `2 instructions`.
std::string plural(std::uint64_t count, std::string_view what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Hexadecimal digits, with `?` for each digit that is not fully known.
std::string digits(const KnownAddress& place, unsigned bytes) {
    std::string out = fmt::format("{:0{}x}", place.address.value, 2 * bytes);
    for (std::size_t i = 0; i < out.size(); ++i)
        if ((place.known >> 4 * (out.size() - 1 - i) & 0xfU) != 0xfU) out[i] = '?';
    return "0x" + out;
}

}  // namespace

std::string context_text(const ContextFields& p, const Config& config) {
    constexpr std::array<std::string_view, 4> security{"Secure", "Non-secure", "Root", "Realm"};
    std::string out =
        fmt::format("EL{} {} {}", p.el, security[(p.nse ? 2U : 0U) + (p.ns ? 1U : 0U)], p.sf ? "AArch64" : "AArch32");
    if (p.has_vmid && config.vmid_bytes != 0)
        out += fmt::format(", {} {:#x}", config.vmid_is_contextidr ? "CONTEXTIDR_EL2" : "VMID", p.vmid);
    if (p.has_context_id && config.context_id_bytes != 0) out += fmt::format(", Context ID {:#x}", p.context_id);
    return out;
}

struct Explainer::State {
    const Config config;
    PacketState packets;
    std::optional<bool> aarch64;  // from the last context

    [[nodiscard]] std::string place(const KnownAddress& p) const {
        const std::string_view isa = !aarch64 ? (p.is1 ? "IS1" : "IS0") : *aarch64 ? "A64" : p.is1 ? "T32" : "A32";
        return fmt::format("{} {}", digits(p, config.address_bytes), isa);
    }
    [[nodiscard]] static std::string count(const CycleCount& c) {
        std::string out = c.commit ? fmt::format("commit {}, ", *c.commit) : "";
        return out + (c.cycles ? plural(*c.cycles, "cycle") : "cycles unknown");
    }
    [[nodiscard]] static std::string atoms(std::uint8_t aa) {
        std::string out;
        AtomField::print(out, speculation_atoms(aa));
        return out.empty() ? out : "atoms " + out + ", then ";
    }

    std::string explain(const TraceInfo& p, const Meaning&) const {
        std::string out = p.cycle_counting() ? fmt::format("cycle counting, threshold {}", p.threshold) : "";
        const auto add = [&](bool is, const std::string& what) {
            if (is) out += (out.empty() ? "" : ", ") + what;
        };
        add(p.conditional() != 0, fmt::format("conditional trace {}", p.conditional()));
        add(p.p0_loads(), "loads are P0");
        add(p.p0_stores(), "stores are P0");
        add(p.in_transaction(), "in a transaction");
        add(p.speculation != 0, plural(p.speculation, "uncommitted P0 element"));
        return out;
    }
    std::string explain(const Timestamp& p, const Meaning& m) const {
        const std::string cycles =
            p.has_cycles && m.count && m.count->cycles ? ", " + plural(*m.count->cycles, "cycle") : "";
        return (m.timestamp ? fmt::format("{:#x}", *m.timestamp) : "high bits not yet known") + cycles;
    }
    std::string explain(const CycleCountPacket auto&, const Meaning& m) const { return count(*m.count); }
    std::string explain(const Context& p, const Meaning&) {
        if (!p.has_payload) return "unchanged";
        aarch64 = p.sf;
        return context_text(p, config);
    }
    std::string explain(const AddressWithContext& p, const Meaning& m) {
        aarch64 = p.sf;
        return fmt::format("to {}, {}", place(*m.address), context_text(p, config));
    }
    std::string explain(const AddressPacket auto&, const Meaning& m) const { return "to " + place(*m.address); }
    /// IS of a source address shows how its bits are packed, not the instruction set.
    std::string explain(const SourceAddressPacket auto&, const Meaning& m) const {
        return "from " + digits(*m.address, config.address_bytes);
    }
    std::string explain(const Q& p, const Meaning& m) const {
        const std::string executed =
            p.has_count() ? plural(p.count, "instruction") : std::string("instructions not counted");
        return executed + (m.address ? ", then to " + place(*m.address) : ", then to the next address");
    }
    std::string explain(const Exception& p, const Meaning&) const {
        std::string out(exception_type(p.type(), config).name);
        if (p.address_unknown(config)) return out;
        if (p.at_branch_target()) out += ", at the target of the branch before";
        if (p.e1 == p.e0) out += fmt::format(", reserved E={}{}", p.e1 ? 1 : 0, p.e0 ? 1 : 0);
        return out + (p.fault_pending ? ", serious fault pending" : "");
    }
    std::string explain(const Mispredict& p, const Meaning&) const { return atoms(p.atoms) + "mispredicted"; }
    std::string explain(const CancelF1& p, const Meaning&) const {
        return fmt::format("cancel {}{}", p.count, p.mispredict ? ", then mispredicted" : "");
    }
    std::string explain(const CancelF2& p, const Meaning&) const {
        return atoms(p.atoms) + "cancel 1, then mispredicted";
    }
    std::string explain(const CancelF3& p, const Meaning&) const {
        return fmt::format("{}cancel {}, then mispredicted", p.atom ? "atoms E, then " : "", p.count + 2);
    }
    std::string explain(const ConditionalInstructionF3& p, const Meaning&) const {
        return plural(p.count + (p.final_differs ? 1U : 0U), "conditional element");
    }
    std::string explain(const ConditionalResultF2& p, const Meaning&) const {
        return fmt::format("token {}, key + {}", p.token(), p.key_increment());
    }
    static std::string explain(const auto&, const Meaning&) { return {}; }
};

Explainer::Explainer(const Config& config) : state_(new State{config, PacketState(config), {}}) {}
Explainer::~Explainer() = default;
std::string Explainer::operator()(const Packet& packet) {
    return std::visit([&](const auto& p) { return state_->explain(p, state_->packets(p)); }, packet);
}
void Explainer::operator()(const Gap& gap) {
    state_->packets(gap);
    state_->aarch64.reset();
}

}  // namespace waymark::etm4
