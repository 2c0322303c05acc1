/// Explains why an ETMv4 or ETE trace unit traces or does not (docs/spec/etm4-registers.md, 1 and 2).
#pragma once

#include "waymark/etm4/config.h"
#include "waymark/etm4/registers.h"
#include "waymark/protocol/explanation.h"

namespace waymark::etm4 {

/// `given`: a register that was not given is not judged. If ID registers were not given, the unit is assumed to have
/// every feature. A finding with effect `stops` means that Model, with these registers, traces nothing at that level.
/// If a level has no obstacles, and the explanation has neither `stops` nor `may`, Model traces everything at that
/// level.
[[nodiscard]] protocol::UnitExplanation explain(const Registers& registers, CoreProfile profile,
                                                const protocol::Given& given);

}  // namespace waymark::etm4
