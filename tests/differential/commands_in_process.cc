#include "differential/commands_in_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include "waymark/core/result.h"

namespace waymark::cli {
int run(int argc, char** argv);
}

namespace waymark::account_test {

namespace {

std::string contents(int file) {
    std::string out;
    std::array<char, 1 << 16> piece{};
    for (off_t at = 0;;) {
        const ssize_t n = ::pread(file, piece.data(), piece.size(), at);
        if (n <= 0) return out;
        out.append(piece.data(), static_cast<std::size_t>(n));
        at += n;
    }
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& arguments) {
    const auto threads = std::filesystem::directory_iterator("/proc/self/task");
    WM_CHECK(std::distance(begin(threads), end(threads)) == 1);
    const int out = ::memfd_create("out", 0), errors = ::memfd_create("errors", 0);
    WM_CHECK(out >= 0 && errors >= 0);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    WM_CHECK(child >= 0);
    if (child == 0) {
        const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(errors, STDERR_FILENO);
        std::vector<std::string> words{"waymark"};
        words.insert(words.end(), arguments.begin(), arguments.end());
        std::vector<char*> argv;
        for (std::string& word : words) argv.push_back(word.data());
        argv.push_back(nullptr);
        const int status = cli::run(static_cast<int>(words.size()), argv.data());
        std::fflush(nullptr);
        ::_exit(status);
    }
    int status = 0;
    WM_CHECK(::waitpid(child, &status, 0) == child);
    CommandResult result{WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(errors)};
    ::close(out);
    ::close(errors);
    return result;
}

}  // namespace waymark::account_test
