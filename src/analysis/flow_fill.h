/// The parts that `fill_flow_answers` is made of. Each adds to `functions.answers()`.
#pragma once

#include "flow_functions.h"
#include "flow_instructions.h"

namespace waymark::analysis {

void fill_calls(FlowFunctions& functions);
void fill_timeline(FlowFunctions& functions);
/// Sets `Code::unobserved`. Needs the calls.
void find_unobserved(FlowFunctions& functions, FlowInstructions& code);
/// Instructions, lines, branches and blocks.
void fill_instructions(FlowFunctions& functions, FlowInstructions& code);
/// Needs edges and instructions.
void fill_loops(FlowFunctions& functions, FlowInstructions& code);

}  // namespace waymark::analysis
