#include <array>

#include "commands.h"

namespace waymark::cli {

// Defined in src/cli/unit_messages.cc, src/cli/dpu and src/cli/spe.
Run add_messages(const Command& app);
Run add_dpu(const Command& app);
Run add_spe(const Command& app);

std::span<const NamedCommand> unit_commands() {
    static constexpr std::array commands{NamedCommand{"messages", add_messages}, NamedCommand{"spe", add_spe},
                                         NamedCommand{"dpu", add_dpu}};
    return commands;
}

}  // namespace waymark::cli
