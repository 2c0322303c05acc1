/// A Program Trace Macrocell for recordings: pft::Model behind the interface that all protocols share.
#pragma once

#include "waymark/flow/unit.h"

namespace waymark::pft {

/// Macrocells of a Cortex-A9 (PFT v1.0) and a Cortex-A15 (PFT v1.1).
[[nodiscard]] const flow::UnitFactory& unit_factory();

}  // namespace waymark::pft
