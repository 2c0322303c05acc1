/// Functions that `fill_flow_answers` consists of. Each adds to `functions.answers()`.
#pragma once

#include "flow_functions.h"
#include "flow_instructions.h"

namespace waymark::analysis {

void fill_calls(FlowFunctions& functions);
void fill_timeline(FlowFunctions& functions);
/// Sets `Code::unobserved`. Call it after the calls are filled.
void find_unobserved(FlowFunctions& functions, FlowInstructions& code);
/// Adds instructions, lines, branches and blocks.
void fill_instructions(FlowFunctions& functions, FlowInstructions& code);
/// Call it after edges and instructions are filled.
void fill_loops(FlowFunctions& functions, FlowInstructions& code);

}  // namespace waymark::analysis
