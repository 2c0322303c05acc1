/// The options that program a trace unit of program flow, shared by `record` and `program`.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/record/flow_recording.h"

namespace waymark::cli {

/// Adds --core, --cycle-accurate and the like, up to --trigger-at, which fill `flow`, and returns them in this order.
[[nodiscard]] std::vector<Option> add_unit_program(const Command& command, record::FlowRecording& flow);

/// Sentences about registers of --registers that decide nothing, because the unit is enabled in any case, and
/// `trace_id` decides about its trace ID, such as `--trace-id gives`.
[[nodiscard]] std::vector<std::string> registers_without_effect(const flow::UnitOptions& unit,
                                                                std::string_view trace_id);

}  // namespace waymark::cli
