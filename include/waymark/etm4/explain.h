/// Why an ETMv4 or ETE trace unit traces, or nothing (docs/spec/etm4-registers.md, 1 and 2).
#pragma once

#include "waymark/etm4/config.h"
#include "waymark/etm4/registers.h"
#include "waymark/protocol/explanation.h"

namespace waymark::etm4 {

/// `given`: a register that was not given is not judged; a unit whose ID registers were not given has everything that
/// there can be. A finding of effect `stops` means that Model, with these registers, traces nothing at that level; a
/// level without obstacles, in an explanation without `stops` and `may`, that it traces everything there.
[[nodiscard]] protocol::UnitExplanation explain(const Registers& registers, CoreProfile profile,
                                                const protocol::Given& given);

}  // namespace waymark::etm4
