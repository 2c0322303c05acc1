/// How software programs a macrocell: which of its registers it writes, in which order, and on which states it waits
/// (docs/spec/pft.md, 3 and 3.1).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/flow/register_steps.h"
#include "waymark/pft/registers.h"

namespace waymark::pft {

/// From setting the Programming bit to clearing it. `all`: every register that the unit has, for programs that use
/// counters, the sequencer, or comparators in ways of their own; else those alone that decide what is traced.
[[nodiscard]] std::vector<flow::RegisterStep> program_steps(const Registers& wanted, bool all);

/// The same with locks and power around it, the way back, and what the unit needs.
[[nodiscard]] flow::ComponentProgram program_of(const Registers& wanted, bool all);

/// A unit that has what `unit` has, with the rest of its registers filled from `seed`.
[[nodiscard]] Registers found_registers(const Registers& unit, std::uint64_t seed);

}  // namespace waymark::pft
