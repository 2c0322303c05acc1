/// The registers of an ETMv4 or ETE trace unit for reading: docs/registers/etm4.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::etm4 {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::etm4
