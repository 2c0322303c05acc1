/// `waymark verify` of a DPU's recording: what is decoded, against the truth beside it.
#pragma once

#include <string>

#include "output.h"

namespace waymark::cli {

[[nodiscard]] Status verify_dpu(const std::string& folder, const std::string& output);

}  // namespace waymark::cli
