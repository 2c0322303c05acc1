/// How far the figures of a view of a DPU's trace can be believed: what the trace mode tells, and what it leaves open.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "dpu_answers.h"
#include "output.h"
#include "waymark/pipeline/dpu.h"

namespace waymark::cli {

/// Sentences; empty where there is nothing of the kind.
struct DpuTrust {
    std::string exact, estimated, unknown;

    void print(Output& out) const;
    [[nodiscard]] nlohmann::ordered_json json() const;
};

/// Of a view: `tasks`, `functions`, `paths`, `interrupts`, `ranges`, `timeline`, `loops`, `data`, `health`; of `report`
/// what holds for its rows of tasks.
[[nodiscard]] DpuTrust trust_in(std::string_view view, const DpuInput& input, const analysis::DpuCosts& costs,
                                const pipeline::DpuDecoded& decoded);

}  // namespace waymark::cli
