/// The registers of trace buffers (ETB, TMC) for reading: docs/registers/tmc.md.
#pragma once

#include "waymark/core/register_reference.h"

namespace waymark::sink {

[[nodiscard]] UnitReference register_reference();

}  // namespace waymark::sink
