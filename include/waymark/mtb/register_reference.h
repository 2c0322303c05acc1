/// The registers of a Micro Trace Buffer for reading: docs/registers/mtb.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::mtb {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::mtb
