/// Answers → a sample profile of LLVM as text: `clang -fprofile-sample-use`, `llvm-profdata merge --sample`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Per function its entries, and per line the most often executed instruction, with what it called. Lines are counted
/// from the one the function's code begins at, which is that of its name if its brace stands there too. Code inlined
/// from elsewhere is left out, and the report says how much of all that is. Errors: `not_found`: no source lines are
/// known.
[[nodiscard]] Result<ExportReport> write_autofdo(const analysis::Answers& answers, ByteSink& sink);

}  // namespace waymark::exports
