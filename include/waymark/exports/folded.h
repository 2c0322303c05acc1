/// Answers → folded stacks, a line each: `main;sort;compare 42`, for flamegraph.pl, inferno, speedscope.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct FoldedOptions {
    std::size_t metric = 0;  ///< index of Answers::metrics
};

/// Every path of the call tree with costs of its own. Where there is no call tree, every function by itself, and the
/// report says so. Errors: `not_found`: there are no costs at all.
[[nodiscard]] Result<ExportReport> write_folded(const answers::Answers& answers, const FoldedOptions& options,
                                                ByteSink& sink);

}  // namespace waymark::exports
