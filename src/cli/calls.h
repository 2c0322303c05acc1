/// Who called whom, as text.
#pragma once

#include "output.h"
#include "waymark/analysis/answers.h"

namespace waymark::cli {

/// The call tree with what each function took, the dearest branches first.
void print_calls(Output& out, const analysis::Answers& answers);

}  // namespace waymark::cli
