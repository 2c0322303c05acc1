/// Exports answers as a pre-aggregated profile for BOLT: `perf2bolt --pa`.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::exports {

struct BoltOptions {
    std::string image{};  ///< name of the program or library; empty: the program, which has `main`
    bool traces = false;  ///< for exact counts: `T` and `R` lines, which BOLT of LLVM 20 and later reads
    answers::Index index = answers::none;  ///< this image instead
};

/// `B` lines: how often each branch was taken, and mispredicted if samples show it; `F` lines: how often code fell
/// through. With `traces`, a branch and the range that ran after it are one line, `T FROM TO LAST TIMES`, or `R` if the
/// branch is a return. If several branches lead to a target at which several ranges begin, it is not known which range
/// followed which branch, and only the sums of the lines are right. Addresses are as traced. Errors: `not_found`: no
/// edges are known, or no such image, with the existing ones.
[[nodiscard]] Result<ExportReport> write_bolt(const answers::Answers& answers, const BoltOptions& options,
                                              ByteSink& sink);

}  // namespace waymark::exports
