/// Explains from its registers why a Debug and Profiling Unit writes trace or does not, in the terms shared by all
/// units.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "waymark/dpu/config.h"
#include "waymark/dpu/registers.h"
#include "waymark/protocol/explanation.h"

namespace waymark::dpu {

struct ExplainOptions {
    protocol::Given given = [](std::string_view) { return true; };  ///< by name: `DP_TC`
    std::optional<EonceSetup> eonce{};                              ///< none: not known
};

/// Sections refer to docs/spec/dpu.md.
[[nodiscard]] protocol::UnitExplanation explain(const Registers& registers, const ExplainOptions& options);

}  // namespace waymark::dpu
