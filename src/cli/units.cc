#include <array>

#include "commands.h"

namespace waymark::cli {

// In src/cli/dpu and src/cli/spe.
Run add_dpu(CLI::App& app);
Run add_spe(CLI::App& app);

std::span<Run (*const)(CLI::App& app)> unit_commands() {
    static constexpr std::array commands{add_spe, add_dpu};
    return commands;
}

}  // namespace waymark::cli
