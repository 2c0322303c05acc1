/// How software programs a Debug and Profiling Unit: the accesses to its registers in legal order, and their proof on
/// the unit's model (docs/spec/dpu.md, 3 and 5).
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/core/result.h"
#include "waymark/program/plan.h"
#include "waymark/record_dpu/dpu_options.h"

namespace waymark::program {

struct CounterWanted {
    record::DpuOptions options{};         ///< after record::resolve()
    std::uint32_t buffer = 0;             ///< address of the virtual trace buffer
    std::optional<std::uint64_t> base{};  ///< address of the unit's registers
};
/// A plan with the unit alone. Errors: `usage`: the buffer is impossible, with the reason.
[[nodiscard]] Result<Plan> make_counter_plan(const CounterWanted& wanted);

/// Two models of the unit are given the same events and items. One is programmed as `record` does it; the other was
/// used for something else, with other values in all registers, and is programmed by the plan. Errors: `bad_format`:
/// the model refuses an access; the message names the register.
[[nodiscard]] Result<Proof> prove_counters(const CounterWanted& wanted, const Plan& plan, std::uint64_t seed = 1);

}  // namespace waymark::program
