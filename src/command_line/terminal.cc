#include "waymark/command_line/terminal.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "wrap.h"

namespace waymark::command_line {

namespace {

constexpr std::size_t most_columns = 100;

bool pager_refused = false, output_began = false, lines_wrap = false;
volatile std::sig_atomic_t pager_runs = 0;
pid_t pager_process = -1;

std::string& kept_lines() {
    static std::string lines;
    return lines;
}

std::string_view environment_value(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : value;
}

/// Closing standard output ends the input of the pager, which runs until the user leaves it.
void wait_for_pager() {
    ::close(STDOUT_FILENO);
    while (::waitpid(pager_process, nullptr, 0) == -1 && errno == EINTR) {
    }
    pager_runs = 0;
}

/// The shell must not print its prompt while the pager is on the screen.
void end_by_signal(int signal) {
    if (pager_runs != 0) wait_for_pager();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

bool is_installed(const std::string& program) {
    if (program.find('/') != program.npos) return ::access(program.c_str(), X_OK) == 0;
    const std::string_view path = environment_value("PATH");
    for (std::size_t at = 0; at <= path.size();) {
        const std::size_t end = std::min(path.find(':', at), path.size());
        if (::access((std::string(path.substr(at, end - at)) + "/" + program).c_str(), X_OK) == 0) return true;
        at = end + 1;
    }
    return false;
}

/// The command of the pager; empty if there is none.
std::string pager_command() {
    if (pager_refused || environment_value("TERM").empty() || environment_value("TERM") == "dumb") return {};
    if (std::getenv("PAGER") == nullptr) return is_installed("less") ? "less" : std::string();
    const std::string command(environment_value("PAGER"));
    if (command == "cat" || !is_installed(command.substr(0, command.find(' ')))) return {};
    return command;
}

/// Starts the pager, which reads everything that is written to standard output from now on.
void start_pager(const std::string& command) {
    std::array<int, 2> pipe_ends{};
    if (::pipe2(pipe_ends.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipe_ends[0], STDIN_FILENO);
    // F: ends if all fits the screen; R: shows colours; X: leaves the text on the screen.
    std::string less_options = "LESS=FRX";
    std::vector<char*> environment;
    for (char** each = environ; *each != nullptr; ++each) environment.push_back(*each);
    if (std::getenv("LESS") == nullptr) environment.push_back(less_options.data());
    environment.push_back(nullptr);
    std::string shell = "sh", option = "-c", run = "exec " + command;
    const std::array<char*, 4> arguments{shell.data(), option.data(), run.data(), nullptr};
    const int error = ::posix_spawn(&pager_process, "/bin/sh", &actions, nullptr, arguments.data(), environment.data());
    posix_spawn_file_actions_destroy(&actions);
    ::close(pipe_ends[0]);
    if (error == 0) {
        std::fflush(stdout);
        ::dup2(pipe_ends[1], STDOUT_FILENO);
        pager_runs = 1;
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) std::signal(signal, end_by_signal);
    }
    ::close(pipe_ends[1]);
}

}  // namespace

bool to_terminal() {
    static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    return terminal;
}

std::size_t terminal_columns() {
    if (!to_terminal()) return 0;
    // Uses a descriptor that still refers to the terminal.
    for (const int file : {STDOUT_FILENO, STDERR_FILENO, STDIN_FILENO}) {
        winsize size{};
        if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
    }
    const std::string columns(environment_value("COLUMNS"));
    const unsigned long given = std::strtoul(columns.c_str(), nullptr, 10);
    constexpr unsigned long usual = 80;
    return given == 0 ? usual : given;
}

std::size_t text_columns() {
    const std::size_t columns = terminal_columns();
    return columns == 0 ? most_columns : std::min(columns, most_columns);
}

void wrap_lines() { lines_wrap = true; }

std::size_t wrap_columns() {
    // Narrower text is hard to read.
    constexpr std::size_t least = 40;
    const std::size_t columns = lines_wrap ? terminal_columns() : 0;
    return columns < least ? 0 : columns;
}

void refuse_pager() { pager_refused = true; }

void begin_terminal_output() {
    if (output_began) return;
    output_began = true;
    if (!to_terminal()) return;
    if (const std::string command = pager_command(); !command.empty()) start_pager(command);
}

bool keep_for_later(const std::string& line) {
    if (pager_runs == 0 || ::isatty(STDERR_FILENO) == 0) return false;
    kept_lines() += line;
    return true;
}

void end_terminal_output() {
    if (pager_runs == 0) return;
    std::fflush(stdout);
    wait_for_pager();
    std::fwrite(kept_lines().data(), 1, kept_lines().size(), stderr);
    kept_lines().clear();
}

}  // namespace waymark::command_line
