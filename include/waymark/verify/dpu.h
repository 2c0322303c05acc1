/// Compares a recording of a Debug and Profiling Unit with its truth.
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
    bool cut = false;          ///< the file does not have all of the trace
    record::DpuCompared compared;
    std::vector<std::string> warnings;  ///< problems that decoding found, with the words of every view
};

/// Errors: the errors of decoding.
[[nodiscard]] Result<VerifiedDpu> verify_dpu(const doctor::DpuInput& input, const record::DpuTruth& truth);

}  // namespace waymark::verify
