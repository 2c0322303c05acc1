/// Exports answers as a profile of pprof (gzip'd profile.proto), for `go tool pprof`, Pyroscope, Parca, Polar Signals.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct PprofOptions {
    std::size_t metric = 0;  ///< metric shown first; the file contains all metrics
};

/// Paths of the call tree; without a tree, instructions with their lines. Errors: `not_found`: there are no costs.
[[nodiscard]] Result<ExportReport> write_pprof(const answers::Answers& answers, const PprofOptions& options,
                                               ByteSink& sink);

}  // namespace waymark::exports
