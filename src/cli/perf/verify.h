/// `waymark verify` of perf.data with CoreSight trace.
#pragma once

#include "../options.h"

namespace waymark::cli {

/// Compares the code that each thread executed with PATH.truth.txt, address by address if the recording was made with
/// --truth.
[[nodiscard]] ExitStatus verify_perf(const InputOptions& options);

}  // namespace waymark::cli
