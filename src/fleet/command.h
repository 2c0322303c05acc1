/// Runs programs and captures their output.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::fleet {

struct CommandResult {
    int status{};        ///< exit status, or 128 + signal
    std::string output;  ///< standard output
    std::string errors;  ///< standard error
};

/// Runs a program, found in PATH, to its end. Errors: `not_found` if there is no such program; `unreadable` if it
/// cannot be started.
[[nodiscard]] Result<CommandResult> run_command(const std::vector<std::string>& words);

}  // namespace waymark::fleet
