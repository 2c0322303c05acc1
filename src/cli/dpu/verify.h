/// `waymark verify` of a DPU's recording: compares the decoded trace with the truth in the same folder.
#pragma once

#include <string>

#include "waymark/command_line/output.h"

namespace waymark::cli {

/// The exit status of `verify` if trace and truth cannot be compared.
inline constexpr int not_compared = 4;

[[nodiscard]] ExitStatus run_verify_dpu(const std::string& folder, const std::string& output);

}  // namespace waymark::cli
