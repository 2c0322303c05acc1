/// How software programs a trace unit: which of its registers it writes, in which order, and on which states it waits
/// (docs/spec/etm4-registers.md, 1.1, 1.6 and 2.1).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/etm4/registers.h"
#include "waymark/flow/register_steps.h"

namespace waymark::etm4 {

/// The last register before the sequencer's: all up to it decide what is traced, even if they are 0.
inline constexpr unsigned last_control = Trcvipcssctlr::offset;

/// From TRCPRGCTLR.EN = 0 to TRCPRGCTLR.EN = 1. `all`: every register that the unit has, for programs that use
/// counters, the sequencer, or comparators in ways of their own; else those alone that decide what is traced.
[[nodiscard]] std::vector<flow::RegisterStep> program_steps(const Registers& wanted, bool all);

/// The same with locks and power around it, the way back, and what the unit needs.
[[nodiscard]] flow::ComponentProgram program_of(const Registers& wanted, bool all);

/// A unit that has what `unit` has, with the rest of its registers filled from `seed`.
[[nodiscard]] Registers found_registers(const Registers& unit, std::uint64_t seed);

}  // namespace waymark::etm4
