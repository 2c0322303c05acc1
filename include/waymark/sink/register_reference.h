/// The registers of trace buffers (ETB, TMC) for reading: docs/registers/tmc.md.
#pragma once

#include <vector>

#include "waymark/core/register_reference.h"

namespace waymark::sink {

[[nodiscard]] UnitReference register_reference();
/// The registers of funnel, replicator, trace port and cross-trigger interface, each a document.
[[nodiscard]] std::vector<UnitReference> path_register_references();

}  // namespace waymark::sink
