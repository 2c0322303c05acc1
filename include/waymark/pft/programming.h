/// How software programs a macrocell: the registers that it writes, their order, and the states for which it waits
/// (docs/spec/pft.md, 3 and 3.1).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/flow/register_steps.h"
#include "waymark/pft/registers.h"

namespace waymark::pft {

/// The writes from setting the Programming bit to clearing it. `all`: every register that the unit has, for programs
/// that use counters, the sequencer, or comparators in special ways; otherwise only registers that decide which code is
/// traced.
[[nodiscard]] std::vector<flow::RegisterStep> program_steps(const Registers& wanted, bool all);

/// The same with locks and power, the way back, and the requirements on the unit.
[[nodiscard]] flow::ComponentProgram program_of(const Registers& wanted, bool all);

/// A unit with the features of `unit`, and arbitrary contents of its registers, generated from `seed`.
[[nodiscard]] Registers found_registers(const Registers& unit, std::uint64_t seed);

}  // namespace waymark::pft
