/// Statistical Profiling records as a row of the registry (protocol/protocol.h).
#pragma once

#include "waymark/protocol/protocol.h"

namespace waymark::spe {

[[nodiscard]] const protocol::Protocol& row();

}  // namespace waymark::spe
