/// Answers → a sample profile of LLVM as text: `clang -fprofile-sample-use`, `llvm-profdata merge --sample`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Per function its entries, and per line and discriminator the most often executed instruction, with what it called.
/// Inlined calls are nested in what they were inlined into, as clang looks for them. Lines are counted from that of the
/// function's name, as debug information has it; where it does not, from the line the function's code begins at.
/// Discriminators are written only for code that LLVM compiled: other compilers' discriminators mean something else. Of
/// program flow, lines that never ran have a count of 0. What has no source line or no linkage name is left out, and
/// the report says how much of all that is. Errors: `not_found`: no source lines are known.
[[nodiscard]] Result<ExportReport> write_autofdo(const answers::Answers& answers, ByteSink& sink);

}  // namespace waymark::exports
