/// A recording of a Debug and Profiling Unit against its truth.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/record_dpu/dpu_comparison.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::verify {

struct VerifiedDpu {
    bool has_content = false;  ///< else nothing was compared
    bool cut = false;          ///< the file does not hold all of the trace
    record::DpuCompared compared;
    std::vector<std::string> warnings;  ///< what decoding found missing or doubtful, as every view says it
};

/// Errors: the errors of decoding.
[[nodiscard]] Result<VerifiedDpu> verify_dpu(const doctor::DpuInput& input, const record::DpuTruth& truth);

}  // namespace waymark::verify
