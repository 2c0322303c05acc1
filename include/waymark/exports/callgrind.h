/// Exports answers in Callgrind's format: KCachegrind, QCachegrind, callgrind_annotate.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct CallgrindOptions {
    std::size_t metric = 0;  ///< metric in the first column; the file contains all metrics
};

/// Costs by instruction and line, calls with their inclusive costs, jumps with their counts. Without instructions,
/// costs by function, at the function's first line. Errors: `not_found`: there are no costs.
[[nodiscard]] Result<ExportReport> write_callgrind(const answers::Answers& answers, const CallgrindOptions& options,
                                                   ByteSink& sink);

}  // namespace waymark::exports
