#include "waymark/spe/text.h"

#include <fmt/format.h>

#include "waymark/spe/record.h"

namespace waymark::spe {

Result<Packet> from_text(std::string_view text) { return wire::packet_from_text<Packets, Packet>(text, "packet"); }

namespace {

std::string place(std::string_view what, std::uint64_t payload) {
    const ProgramAddress a = program_address(payload);
    return fmt::format("{} {:#x} EL{} {}", what, a.address.value, a.exception_level, name(a.security));
}

std::string meaning(const AddressPacket& p, std::uint32_t) {
    switch (static_cast<AddressIndex>(p.index.value)) {
        case AddressIndex::pc: return place("PC", p.address);
        case AddressIndex::branch_target: return place("target", p.address);
        case AddressIndex::previous_target: return place("previous target", p.address);
        case AddressIndex::data_virtual: {
            const DataAddress a = data_address(p.address);
            return fmt::format("data at {:#x}, tag {:#04x}", a.address.value, a.tag);
        }
        case AddressIndex::data_physical: {
            const PhysicalAddress a = physical_address(p.address);
            return fmt::format("data at physical {:#x} {}, tag {}{}", a.address.value, name(a.security), a.tag,
                               a.tag_checked ? ", checked" : "");
        }
    }
    return "no named address";
}
std::string meaning(const Counter& p, std::uint32_t) {
    switch (static_cast<CounterIndex>(p.index.value)) {
        case CounterIndex::total: return fmt::format("total latency {}", p.cycles);
        case CounterIndex::issue: return fmt::format("issue latency {}", p.cycles);
        case CounterIndex::translation: return fmt::format("translation latency {}", p.cycles);
        case CounterIndex::alternate_issue: return fmt::format("issue latency {} of the alternate clock", p.cycles);
        case CounterIndex::reserved: break;
    }
    return "no named counter";
}
std::string meaning(const Events& p, std::uint32_t) { return events_text(p.events.value); }
std::string meaning(const OperationType& p, std::uint32_t) { return operation_text(operation(p.kind, p.type)); }
std::string meaning(const DataSource& p, std::uint32_t midr) {
    return std::string(data_source_name(midr, static_cast<std::uint32_t>(p.source.value)));
}
std::string meaning(const Context& p, std::uint32_t) {
    return p.index < 2 ? fmt::format("CONTEXTIDR_EL{}", p.index + 1) : "no named context";
}
std::string meaning(const Timestamp&, std::uint32_t) { return "ends the record"; }
std::string meaning(const End&, std::uint32_t) { return "ends the record"; }
std::string meaning(const Padding&, std::uint32_t) { return {}; }
std::string meaning(const Alignment&, std::uint32_t) { return "obsolete"; }
std::string meaning(const Unknown&, std::uint32_t) { return {}; }

}  // namespace

std::string explain(const Packet& packet, std::uint32_t midr) {
    return std::visit([&](const auto& p) { return meaning(p, midr); }, packet);
}

}  // namespace waymark::spe
