/// The registers of an Instrumentation Trace Macrocell that decide how its bytes are read: docs/registers/itm.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::itm {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::itm
