/// The properties of an instruction that the unit samples.
#pragma once

#include "waymark/isa/a64.h"
#include "waymark/spe/record.h"
#include "waymark/spe/sampling.h"

namespace waymark::record {

[[nodiscard]] spe::Operation operation_of(const isa::A64Instruction& instruction);

}  // namespace waymark::record
