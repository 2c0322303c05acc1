/// The program that a recorder starts: how it starts, and which signals are passed on to it.
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::record {

/// While this object exists, SIGINT, SIGTERM and SIGHUP, unless ignored, are passed on to a program. The second signal
/// kills the program, and the third ends this process. Only one such object may exist at a time.
class SignalHandlers {
public:
    SignalHandlers();
    ~SignalHandlers();
    SignalHandlers(const SignalHandlers&) = delete;
    SignalHandlers& operator=(const SignalHandlers&) = delete;
    /// With 0, signals are passed to no program.
    void pass_to(int program);
    /// The last signal.
    [[nodiscard]] std::optional<int> received() const;

private:
    static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, 3> before_{};
};

/// Starts a program, which ends when this process ends. With `input`, standard input belongs to the program; otherwise
/// only if it is a terminal. Errors: `unreadable`: it cannot be started.
[[nodiscard]] Result<int> start_program(const std::vector<std::string>& command, bool input);

}  // namespace waymark::record
