/// The System Trace Macrocell as a row of the registry (protocol/protocol.h).
#pragma once

#include <memory>

#include "waymark/protocol/protocol.h"
#include "waymark/stm/config.h"

namespace waymark::stm {

[[nodiscard]] const protocol::Protocol& row();

/// Converts a configuration to the interface of the layers above, and back; it must belong to this protocol.
[[nodiscard]] std::shared_ptr<const protocol::Configuration> configuration(const Config& config);
[[nodiscard]] const Config& config_of(const protocol::Configuration& configuration);

}  // namespace waymark::stm
