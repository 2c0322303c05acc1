/// Answers → a pre-aggregated profile for BOLT: `perf2bolt --pa`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct BoltOptions {
    std::string image{};  ///< name of the program or library it is for; empty: the program, which has `main`
    bool traces = false;  ///< of exact counts: `T` and `R` lines, which BOLT of LLVM 20 and later reads
    answers::Index index = answers::none;  ///< this image instead
};

/// `B` lines: how often each branch was taken, and mispredicted where samples show it; `F` lines: how often code ran on
/// without one. With `traces` a branch and the range that ran behind it are one line, `T FROM TO LAST TIMES`, or `R` if
/// the branch is a return; where several ranges begin at a target, and branches lead there from several places, which
/// followed which is not known, and the lines have the right sums. Addresses as traced. Errors: `not_found`: no edges
/// are known, or no such image, with those there are.
[[nodiscard]] Result<ExportReport> write_bolt(const answers::Answers& answers, const BoltOptions& options,
                                              ByteSink& sink);

}  // namespace waymark::exports
