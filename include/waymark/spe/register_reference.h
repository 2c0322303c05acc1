/// The registers of the Statistical Profiling Extension, and the fields of other registers that affect it, for reading:
/// docs/registers/spe.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::spe {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::spe
