/// The comparison of a recording with its truth (verify/), for reading.
#pragma once

#include <cstddef>

#include "waymark/listing/text.h"
#include "waymark/record/truth.h"
#include "waymark/record_dpu/dpu_comparison.h"
#include "waymark/verify/flow.h"
#include "waymark/verify/perf.h"

namespace waymark::listing {

/// Prints the result for each source. `complete`: as of record::Truth.
void print_verified(TextSink& out, const verify::VerifiedFlow& all, bool complete);
/// Prints the verdict: `equal: 1,234 instructions of 1 source; NOT COMPARED: ITM_0`.
void print_verdict(TextSink& out, const verify::VerifiedFlow& all);

/// Prints the result for each thread.
void print_verified(TextSink& out, const verify::VerifiedPerf& all);
/// `threads`: of the truth.
void print_verdict(TextSink& out, const verify::VerifiedPerf& all, std::size_t threads);

/// Prints the figures, the differences, and the verdict.
void print_verified(TextSink& out, const record::DpuCompared& compared);

}  // namespace waymark::listing
