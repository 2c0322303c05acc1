/// ETMv4 and ETE trace units for recordings: etm4::Model as a flow::Unit, the interface that all protocols share.
#pragma once

#include <array>

#include "waymark/flow/unit.h"

namespace waymark::etm4 {

/// The factories for an ETE 1.0 of an Armv9 core, and for the ETMv4 of a Cortex-A53, in this order.
[[nodiscard]] const std::array<const flow::UnitFactory*, 2>& unit_factories();

}  // namespace waymark::etm4
