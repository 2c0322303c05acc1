/// A Program Trace Macrocell for recordings: pft::Model behind the interface that all protocols share.
#pragma once

#include "waymark/flow/unit.h"

namespace waymark::pft {

/// Checks the options that a PTM and an ETMv3 have in common: sizes of the Context ID, of the synchronisation period
/// and of the FIFO. Errc::usage.
[[nodiscard]] Status check_macrocell(const flow::UnitOptions& options);

/// Macrocells of a Cortex-A9 (PFT v1.0) and a Cortex-A15 (PFT v1.1).
[[nodiscard]] const flow::UnitFactory& unit_factory();

}  // namespace waymark::pft
