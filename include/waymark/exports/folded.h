/// Exports answers as folded stacks, one on each line: `main;sort;compare 42`, for flamegraph.pl, inferno, speedscope.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct FoldedOptions {
    std::size_t metric = 0;  ///< index of Answers::metrics
};

/// Every path of the call tree that has costs of its own. Without a call tree, every function alone, and the report
/// states this. Errors: `not_found`: there are no costs.
[[nodiscard]] Result<ExportReport> write_folded(const answers::Answers& answers, const FoldedOptions& options,
                                                ByteSink& sink);

}  // namespace waymark::exports
