/// The words of a Debug and Profiling Unit as a row of the registry (protocol/protocol.h).
#pragma once

#include "waymark/protocol/protocol.h"

namespace waymark::dpu {

[[nodiscard]] const protocol::Protocol& row();

}  // namespace waymark::dpu
