/// Instructions of x86-64, as far as samples of branches need them (docs/branch-stacks.md): the length and the target
/// of each. There is no instruction trace for them.
#pragma once

#include <cstddef>
#include <optional>

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

inline constexpr std::size_t longest_x86_instr = 15;

/// Classifies the instruction at the beginning of the bytes, in 64-bit mode. A waypoint is an instruction that can be
/// the source in a branch record: jumps, calls, returns, and returns from the kernel. System calls and interrupts are
/// not waypoints, since a record of user code alone omits them and continues after them. nullopt: the bytes are not an
/// instruction, or too few.
[[nodiscard]] std::optional<Instruction> decode_x86_instr(Address address, Bytes bytes);

}  // namespace waymark::isa
