/// Answers → a coverage tracefile of lcov: genhtml, and most that shows coverage.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/covered_sources.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Lines, functions and conditional branches, with how often each ran. What was not observed, because flow was lost
/// where it could have run, has no class of its own there: it counts as not executed, and the report says how much that
/// is. Errors: `not_found`: no source lines are known, none is of what the options ask for, or the counts come from
/// samples, which do not show what did not run.
[[nodiscard]] Result<ExportReport> write_lcov(const answers::Answers& answers, const CoveredSources& options,
                                              ByteSink& sink);

}  // namespace waymark::exports
