#include <array>

#include "commands.h"

namespace waymark::cli {

// Defined in src/cli/unit_messages.cc, src/cli/dpu and src/cli/spe.
Run add_messages(CLI::App& app);
Run add_dpu(CLI::App& app);
Run add_spe(CLI::App& app);

std::span<const Command> unit_commands() {
    static constexpr std::array commands{Command{"messages", add_messages}, Command{"spe", add_spe},
                                         Command{"dpu", add_dpu}};
    return commands;
}

}  // namespace waymark::cli
