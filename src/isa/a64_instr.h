/// decode_instr() for A64.
#pragma once

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

/// Branches are in the table of a64.cc, newer ones in the table of a64_instr.cc. What neither knows may be newer still,
/// and is no reason to stop; only UDF is sure never to be passed.
[[nodiscard]] Instruction decode_a64_instr(Address address, std::uint32_t word, const DecodeOptions& options);

}  // namespace waymark::isa
