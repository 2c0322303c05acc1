/// Branch stacks as a row of the registry of protocols.
#pragma once

#include <memory>

#include "waymark/protocol/protocol.h"
#include "waymark/stacks/decoder.h"

namespace waymark::stacks {

[[nodiscard]] const protocol::Protocol& row();

/// Source types: the recorder, and the instruction set.
inline constexpr std::string_view lbr_type = "LBR", brbe_type = "BRBE", made_a64_type = "STACKS.A64",
                                  made_x86_64_type = "STACKS.X86-64",
                                  assumed_type = "STACKS";  ///< of an unknown machine, taken for AArch64

[[nodiscard]] std::shared_ptr<const protocol::Configuration> configuration(const Config& config,
                                                                           std::string_view source_type = brbe_type);

}  // namespace waymark::stacks
