/// The options that program a trace unit of program flow, shared by `record` and `program`.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "waymark/record/flow_recording.h"

namespace waymark::cli {

/// Adds --core, --cycle-accurate and the like, up to --trigger-at, which fill `flow`, and returns them in this order.
[[nodiscard]] std::vector<CLI::Option*> add_unit_program(CLI::App& command, record::FlowRecording& flow);

}  // namespace waymark::cli
