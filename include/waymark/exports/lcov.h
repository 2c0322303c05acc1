/// Exports answers as a coverage tracefile of lcov, for genhtml and most viewers of coverage.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/covered_sources.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

/// Lines, functions and conditional branches, with their execution counts. Code that was not observed, because flow was
/// lost where it could have run, has no class of its own in the format: it counts as not executed, and the report
/// states how much. Errors: `not_found`: no source lines are known, the options select none, or the counts come from
/// samples, which do not show what did not run.
[[nodiscard]] Result<ExportReport> write_lcov(const answers::Answers& answers, const CoveredSources& options,
                                              ByteSink& sink);

}  // namespace waymark::exports
