/// How software programs a trace unit: the registers that it writes, their order, and the states for which it waits
/// (docs/spec/etm4-registers.md, 1.1, 1.6 and 2.1).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/etm4/registers.h"
#include "waymark/flow/register_steps.h"

namespace waymark::etm4 {

/// The last register before the sequencer's registers. All registers up to this one decide which code is traced, even
/// if they are 0.
inline constexpr unsigned last_control = Trcvipcssctlr::offset;

/// The writes from TRCPRGCTLR.EN = 0 to TRCPRGCTLR.EN = 1. `all`: every register that the unit has, for programs that
/// use counters, the sequencer, or comparators in special ways; otherwise only registers that decide which code is
/// traced.
[[nodiscard]] std::vector<flow::RegisterStep> program_steps(const Registers& wanted, bool all);

/// The same with locks and power, the way back, and the requirements on the unit.
[[nodiscard]] flow::ComponentProgram program_of(const Registers& wanted, bool all);

/// A unit with the features of `unit`, and arbitrary contents of its registers, generated from `seed`.
[[nodiscard]] Registers found_registers(const Registers& unit, std::uint64_t seed);

}  // namespace waymark::etm4
