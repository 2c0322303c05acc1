/// Exports answers as a sample profile of LLVM in text form: `clang -fprofile-sample-use`, `llvm-profdata merge
/// --sample`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// For each function the number of entries, and for each line and discriminator the most executed instruction, with its
/// calls. Inlined calls are nested in their callers, where clang expects them. Lines are relative to the line of the
/// function's declaration in debug information; if there is none, to the first line of the function's code.
/// Discriminators are written only for code that LLVM compiled, since other compilers' discriminators have another
/// meaning. From program flow, lines that never ran have a count of 0. Code without source line or linkage name is
/// omitted, and the report states how much. Errors: `not_found`: no source lines are known.
[[nodiscard]] Result<ExportReport> write_autofdo(const answers::Answers& answers, ByteSink& sink);

}  // namespace waymark::exports
