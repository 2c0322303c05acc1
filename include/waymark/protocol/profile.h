/// The profile of a core in a capture's description.
#pragma once

#include "waymark/isa/cores.h"
#include "waymark/protocol/protocol.h"

namespace waymark::protocol {

/// The profile of the source's core. A type that is not known becomes a problem, and counts as profile A.
[[nodiscard]] isa::CoreProfile profile_of(const Description& source, Configured& out);

}  // namespace waymark::protocol
