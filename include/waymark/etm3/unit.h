/// ETMv3 as `waymark record` drives it (flow/unit.h).
#pragma once

#include "waymark/flow/unit.h"

namespace waymark::etm3 {

[[nodiscard]] const flow::UnitFactory& unit_factory();

}  // namespace waymark::etm3
