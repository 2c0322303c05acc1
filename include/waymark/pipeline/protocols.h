/// The registry: it has a row for every protocol that Waymark knows, and is the only list of protocols.
/// protocol/protocol.h describes a row; docs/how-to/add-a-protocol.md describes how to add one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/flow/unit.h"
#include "waymark/protocol/protocol.h"

namespace waymark::pipeline {

using protocol::Protocol;

/// All protocols, in the order in which bytes are tried and lists are printed: if two recognise the same bytes, the
/// first one is used.
[[nodiscard]] std::span<const Protocol* const> protocols();

/// The protocol of a source of this type (`PTM1.1`), or null.
[[nodiscard]] const Protocol* protocol_of(std::string_view source_type);
/// The protocol for `--protocol NAME`, or null.
[[nodiscard]] const Protocol* protocol_of_option(std::string_view name);
/// The protocol of this unit (`Answers::unit`), or null.
[[nodiscard]] const Protocol* protocol_of_unit(std::string_view unit);

/// The trace ID in these registers, for any unit whose ID register is known, decoded or not.
[[nodiscard]] std::optional<std::uint8_t> trace_id(const std::vector<RegisterValue>& registers);
/// Where a source has its trace ID, or would have it: in a register of its description, otherwise in the register of
/// its type.
[[nodiscard]] protocol::TraceIdField trace_id_field(const std::vector<RegisterValue>& registers,
                                                    std::string_view source_type);
/// The name of that register.
[[nodiscard]] std::string_view trace_id_register(const std::vector<RegisterValue>& registers,
                                                 std::string_view source_type);

/// Source types that are decoded, for sentences: `PTM1.x and PFT1.x`.
[[nodiscard]] std::string decoded_types();
/// The names of the decoded protocols: `Program Flow Trace`.
[[nodiscard]] std::string decoded_trace();

/// All units of program flow as models for record::Recorder.
[[nodiscard]] std::vector<const flow::UnitFactory*> flow_units();
/// The name of the unit for `record --unit`: `ptm`.
[[nodiscard]] std::string option_name(const flow::UnitFactory& units);
/// A list such as `ptm, ete and etmv4`.
[[nodiscard]] std::string flow_unit_names();
/// The units that trace AArch64 cores: `ete or etmv4`.
[[nodiscard]] std::string aarch64_unit_names();

}  // namespace waymark::pipeline
