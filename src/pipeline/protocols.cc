#include "waymark/pipeline/protocols.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "waymark/dpu/protocol.h"
#include "waymark/etm3/protocol.h"
#include "waymark/etm4/protocol.h"
#include "waymark/itm/protocol.h"
#include "waymark/mtb/protocol.h"
#include "waymark/pft/protocol.h"
#include "waymark/spe/protocol.h"
#include "waymark/stacks/protocol.h"
#include "waymark/stm/protocol.h"

namespace waymark::pipeline {

namespace {

using protocol::TraceIdField;

/// The fields of all registers that contain a trace ID.
std::vector<TraceIdField> trace_id_fields() {
    std::vector<TraceIdField> out;
    for (const Protocol* protocol : protocols())
        if (const auto field = protocol->trace_id()) out.push_back(*field);
    return out;
}

/// The given word of each protocol whose flow is decoded, and whose sources are described in snapshots.
std::string of_decoded(std::string_view protocol::Words::*word) {
    std::string out;
    for (const Protocol* protocol : protocols()) {
        if (!protocol->decodes_flow() || protocol->words().types.empty()) continue;
        if (!out.empty()) out += ", ";
        out += protocol->words().*word;
    }
    return out;
}

}  // namespace

std::span<const Protocol* const> protocols() {
    static const std::array rows{
        &pft::row(),     //
        &etm3::row(),    //
        &etm4::row(),    //
        &spe::row(),     //
        &dpu::row(),     //
        &stacks::row(),  //
        &stm::row(),     //
        &mtb::row(),     //
        &itm::row(),
    };
    return rows;
}

const Protocol* protocol_of(std::string_view source_type) {
    for (const Protocol* protocol : protocols())
        if (protocol->is_type(source_type)) return protocol;
    return nullptr;
}

const Protocol* protocol_of_option(std::string_view name) {
    for (const Protocol* protocol : protocols())
        if (!protocol->type_of_option(name).empty()) return protocol;
    return nullptr;
}

const Protocol* protocol_of_unit(std::string_view unit) {
    for (const Protocol* protocol : protocols()) {
        if (protocol->words().unit == unit) return protocol;
        for (const std::string_view type : protocol->words().type_names)
            if (!type.empty() && protocol->unit_of(type) == unit) return protocol;
    }
    return nullptr;
}

std::optional<std::uint8_t> trace_id(const std::vector<RegisterValue>& registers) {
    constexpr unsigned mask = 0x7f;
    for (const TraceIdField& field : trace_id_fields())
        if (const RegisterValue* r = find_register(registers, field.register_name))
            return static_cast<std::uint8_t>(r->value >> field.lowest_bit & mask);
    return std::nullopt;
}

protocol::TraceIdField trace_id_field(const std::vector<RegisterValue>& registers, std::string_view source_type) {
    for (const TraceIdField& field : trace_id_fields())
        if (find_register(registers, field.register_name) != nullptr) return field;
    if (const Protocol* protocol = protocol_of(source_type); protocol != nullptr && protocol->trace_id())
        return *protocol->trace_id();
    // An unknown type uses the register of the first protocol, which older macrocells have too.
    return trace_id_fields().front();
}

std::string_view trace_id_register(const std::vector<RegisterValue>& registers, std::string_view source_type) {
    return trace_id_field(registers, source_type).register_name;
}

std::string decoded_types() { return of_decoded(&protocol::Words::types); }
std::string decoded_trace() { return of_decoded(&protocol::Words::trace); }

std::vector<const flow::UnitFactory*> flow_units() {
    std::vector<const flow::UnitFactory*> out;
    for (const Protocol* const row : protocols()) out.insert(out.end(), row->units().begin(), row->units().end());
    return out;
}

std::string option_name(const flow::UnitFactory& units) {
    std::string name(units.name());
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    return name;
}

std::string flow_unit_names() {
    std::string out;
    const auto units = flow_units();
    for (std::size_t i = 0; i < units.size(); ++i)
        out += (i == 0 ? "" : i + 1 == units.size() ? " and " : ", ") + option_name(*units[i]);
    return out;
}

std::string aarch64_unit_names() {
    std::string out;
    for (const flow::UnitFactory* const units : flow_units())
        if (units->traces_aarch64()) out += (out.empty() ? "" : " or ") + option_name(*units);
    return out;
}

}  // namespace waymark::pipeline
