/// Answers → a pre-aggregated profile for BOLT: `perf2bolt --pa`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct BoltOptions {
    std::string image{};  ///< name of the program or library it is for; empty: the program, which has `main`
};

/// `B` lines: how often each branch was taken, and mispredicted where samples show it; `F` lines: how often code ran on
/// without one. Addresses as traced. Errors: `not_found`: no edges are known, or no such image, with those there are.
[[nodiscard]] Result<ExportReport> write_bolt(const answers::Answers& answers, const BoltOptions& options,
                                              ByteSink& sink);

}  // namespace waymark::exports
