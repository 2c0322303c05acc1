/// decode_instr() for A64.
#pragma once

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

/// Branches are those of the table in a64.cc. What that does not know may be newer than it, and is no reason to stop;
/// only UDF is sure never to be passed.
[[nodiscard]] Instruction decode_a64_instr(Address address, std::uint32_t word);

}  // namespace waymark::isa
