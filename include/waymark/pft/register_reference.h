/// The registers of a Program Trace Macrocell for reading: docs/registers/ptm.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::pft {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::pft
