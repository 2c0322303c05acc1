#include "command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

extern char** environ;

namespace waymark::fleet {

namespace {

class Pipe {
public:
    Pipe() {
        if (::pipe2(ends_.data(), O_CLOEXEC) != 0) ends_ = {-1, -1};
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    ~Pipe() {
        close_end(0);
        close_end(1);
    }
    [[nodiscard]] int end(std::size_t which) const { return ends_[which]; }
    void close_end(std::size_t which) {
        if (ends_[which] >= 0) ::close(ends_[which]);
        ends_[which] = -1;
    }
    /// Returns false at the end of the input.
    bool read_into(std::string& text) {
        std::array<char, 4096> buffer{};
        const ssize_t have = ::read(ends_[0], buffer.data(), buffer.size());
        if (have > 0) text.append(buffer.data(), static_cast<std::size_t>(have));
        return have > 0 || (have < 0 && errno == EINTR);
    }

private:
    std::array<int, 2> ends_{-1, -1};
};

}  // namespace

Result<CommandResult> run_command(const std::vector<std::string>& words) {
    Pipe out, err;
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, out.end(1), STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, err.end(1), STDERR_FILENO);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0)
        return Error{error == ENOENT ? Errc::not_found : Errc::unreadable,
                     fmt::format("cannot run {}: {}", words[0], std::strerror(error))};
    out.close_end(1);
    err.close_end(1);
    CommandResult result;
    std::array<pollfd, 2> waiting{{{out.end(0), POLLIN, 0}, {err.end(0), POLLIN, 0}}};
    while (waiting[0].fd >= 0 || waiting[1].fd >= 0) {
        if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) break;
        if (waiting[0].revents != 0 && !out.read_into(result.output)) waiting[0].fd = -1;
        if (waiting[1].revents != 0 && !err.read_into(result.errors)) waiting[1].fd = -1;
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

}  // namespace waymark::fleet
