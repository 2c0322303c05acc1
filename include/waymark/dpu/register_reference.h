/// The registers of the Debug and Profiling Unit for reading: docs/registers/dpu.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::dpu {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::dpu
