/// Answers → a profile in Callgrind's format: KCachegrind, QCachegrind, callgrind_annotate.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct CallgrindOptions {
    std::size_t metric = 0;  ///< the first column; all are in the file
};

/// Costs per instruction and line, calls with what passed in them, jumps with their counts. Where there are no
/// instructions, costs per function, at the line it begins in. Errors: `not_found`: there are no costs.
[[nodiscard]] Result<ExportReport> write_callgrind(const answers::Answers& answers, const CallgrindOptions& options,
                                                   ByteSink& sink);

}  // namespace waymark::exports
