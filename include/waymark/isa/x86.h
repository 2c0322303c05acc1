/// Instructions of x86-64, as far as samples of branches need them (docs/branch-stacks.md): how long each one is, and
/// where it leads. Nothing traces them instruction by instruction.
#pragma once

#include <cstddef>
#include <optional>

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

inline constexpr std::size_t longest_x86_instr = 15;

/// Classifies the instruction that the bytes begin with, in 64-bit mode. A waypoint is what a branch record can have as
/// its source: jumps, calls, returns, and returns from the kernel. System calls and interrupts are none, since a record
/// of user code alone leaves them out and goes on behind them. Nothing: the bytes are no instruction, or too few.
[[nodiscard]] std::optional<Instruction> decode_x86_instr(Address address, Bytes bytes);

}  // namespace waymark::isa
