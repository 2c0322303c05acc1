/// `waymark verify` of a DPU's recording: what is decoded, against the truth beside it.
#pragma once

#include <string>

#include "../output.h"

namespace waymark::cli {

/// The exit status of `verify` where trace and truth cannot be compared.
inline constexpr int not_compared = 4;

[[nodiscard]] ExitStatus run_verify_dpu(const std::string& folder, const std::string& output);

}  // namespace waymark::cli
