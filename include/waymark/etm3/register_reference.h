/// The registers of an ETMv3 that decide how its bytes are read: docs/registers/etm3.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::etm3 {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::etm3
