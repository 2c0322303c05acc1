/// The registers of a System Trace Macrocell that decide how its bytes are read: docs/registers/stm.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::stm {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::stm
