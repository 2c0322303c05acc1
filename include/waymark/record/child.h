/// The program that a recorder starts: how it starts, and which signals are passed on to it.
#pragma once

#include <array>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::record {

/// While it lives, SIGINT, SIGTERM and SIGHUP, unless ignored, are passed on to a program; the second kills it, the
/// third ends this process. One lives at a time.
class SignalHandlers {
public:
    SignalHandlers();
    ~SignalHandlers();
    SignalHandlers(const SignalHandlers&) = delete;
    SignalHandlers& operator=(const SignalHandlers&) = delete;
    /// 0: to none.
    void pass_to(int program);
    /// The last signal.
    [[nodiscard]] std::optional<int> received() const;

private:
    static constexpr std::array<int, 3> signals{SIGINT, SIGTERM, SIGHUP};
    std::array<struct sigaction, 3> before_{};
};

/// Starts a program, which ends when this process does. `input`: standard input is the program's; else it is, if it is
/// a terminal. Errors: `unreadable`: it cannot be started.
[[nodiscard]] Result<int> start_program(const std::vector<std::string>& command, bool input);

}  // namespace waymark::record
