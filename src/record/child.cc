#include "waymark/record/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace waymark::record {

namespace {

volatile std::sig_atomic_t child = 0;
volatile std::sig_atomic_t interrupt = 0, received_signals = 0;

/// A terminal sends its signals to the program too; signals from elsewhere are passed on. The second signal ends the
/// program, and the third ends this process at once.
void pass_on(int number, siginfo_t* info, void*) {
    received_signals = received_signals + 1;
    interrupt = number;
    constexpr int most = 2;
    if (received_signals > most) _exit(128 + number);
    if (child == 0) return;
    if (received_signals == most)
        kill(child, SIGKILL);
    else if (info->si_code != SI_KERNEL)
        kill(child, number);
}

/// Replaces standard input by an empty one; false if that fails.
bool close_input() {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0;
}

}  // namespace

SignalHandlers::SignalHandlers() {
    interrupt = 0;
    received_signals = 0;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigemptyset(&action.sa_mask);
    for (std::size_t i = 0; i < signals.size(); ++i) {
        sigaction(signals[i], &action, &before_[i]);
        // The same as nohup does. A shell ignores SIGINT for background jobs, but it may be sent to them explicitly.
        if (signals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) sigaction(signals[i], &before_[i], nullptr);
    }
}

SignalHandlers::~SignalHandlers() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
    child = 0;
}

void SignalHandlers::pass_to(int program) { child = program; }

std::optional<int> SignalHandlers::received() const {
    if (interrupt == 0) return std::nullopt;
    return static_cast<int>(interrupt);
}

Result<int> start_program(const std::vector<std::string>& command, bool input) {
    std::vector<char*> arguments;
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return Error{Errc::unreadable, fmt::format("cannot start {}: {}", command[0], std::strerror(errno))};
    if (pid > 0) return pid;
    // If the recorder dies, nothing empties the ring, and the program would wait for ever.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    std::signal(SIGXFSZ, SIG_DFL);
    // The serial port of a system would consume input for a later command, as in a loop over the lines of a file.
    if (!input && isatty(STDIN_FILENO) == 0 && !close_input()) _exit(127);
    execv(arguments[0], arguments.data());
    _exit(127);
}

}  // namespace waymark::record
