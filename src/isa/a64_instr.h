/// decode_instr() for A64.
#pragma once

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

/// Branches are in the table of a64.cc, newer ones in the table of a64_instr.cc. An instruction in neither table may be
/// newer still, and does not end a walk; only UDF certainly does.
[[nodiscard]] Instruction decode_a64_instr(Address address, std::uint32_t word, const DecodeOptions& options);

}  // namespace waymark::isa
