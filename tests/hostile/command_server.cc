/// Runs commands of the program, and the examples of the C interface, each in a fork: to start a program with
/// sanitizers takes 50 ms, and a fork of the started program 2 ms. For campaign_test.py.
///
///     command_server                     requests from standard input until it ends
///     command_server WORD…               the program itself, for commands that start it again
///
/// A request is a line of words with a NUL after each: working folder, standard input, standard output, standard error,
/// largest processor time in seconds, largest time in seconds, and the words of the command. The first of them is
/// `waymark`, `decode`, `live` or `planted`. The answer is a line: exit status, or the negative number of the signal
/// that ended it; processor time in microseconds; largest memory in KiB.
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::cli {
int run(int argc, char** argv);
}
extern "C" {
int decode_main(int argc, char** argv);
int live_main(int argc, char** argv);
}

namespace {

/// Faults that the campaign must find: its self-test requests each. `number` keeps compilers from seeing them.
int planted(std::string_view what, volatile int number) {
    if (what == "crash") {
        std::raise(SIGSEGV);
    } else if (what == "overread") {
        const std::vector<char> bytes(static_cast<std::size_t>(number), 'x');
        std::printf("%d\n", bytes.data()[number]);
    } else if (what == "overflow") {
        std::printf("%d\n", number + 0x7fffffff);
    } else if (what == "allocation") {
        const std::size_t size = std::size_t{2} << 30;
        std::vector<char> bytes(size, static_cast<char>(number));
        std::printf("%d\n", bytes.at(size - 1));
    } else if (what == "endless") {
        for (;;) number = (number + 1) % 1000;
    } else if (what == "left") {
        if (std::FILE* const file = std::fopen("left.tmp", "w")) std::fclose(file);
        std::printf("made\n");
    } else if (what == "word") {
        std::printf("made\n");
    }
    return 0;
}

int run_command(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int argc = static_cast<int>(words.size());
    if (words[0] == "decode") return decode_main(argc, argv.data());
    if (words[0] == "live") return live_main(argc, argv.data());
    if (words[0] == "planted") return planted(words.at(1), argc);
    return waymark::cli::run(argc, argv.data());
}

/// In the child: does not return.
[[noreturn]] void run_request(const std::vector<std::string>& request) {
    // Processes that it starts end with it.
    ::setpgid(0, 0);
    const int input = ::open(request[1].c_str(), O_RDONLY | O_CLOEXEC);
    const int out = ::open(request[2].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    const int errors = ::open(request[3].c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    WM_CHECK(input >= 0 && out >= 0 && errors >= 0);
    ::dup2(input, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    WM_CHECK(::chdir(request[0].c_str()) == 0);
    ::setenv("TMPDIR", request[0].c_str(), 1);
    const rlim_t seconds = std::stoul(request[4]);
    const rlimit core{0, 0}, processor{seconds, seconds + 1}, file{rlim_t{1} << 30, rlim_t{1} << 30};
    ::setrlimit(RLIMIT_CORE, &core);
    ::setrlimit(RLIMIT_CPU, &processor);
    ::setrlimit(RLIMIT_FSIZE, &file);
    const int status = run_command({request.begin() + 6, request.end()});
    std::fflush(nullptr);
    // At a normal end, AddressSanitizer writes to its record of each global variable, which takes 9 ms.
    ::_exit(status);
}

/// Whether the process ends within `seconds`. A signal does not end the wait.
bool ends_in_time(int process, int seconds) {
    using Clock = std::chrono::steady_clock;
    const auto last = Clock::now() + std::chrono::seconds(seconds);
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(last - Clock::now()).count();
        pollfd waits{process, POLLIN, 0};
        const int ready = ::poll(&waits, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
        if (ready >= 0) return ready == 1;
        WM_CHECK(errno == EINTR);
    }
}

void answer(const std::vector<std::string>& request) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    WM_CHECK(child >= 0);
    if (child == 0) run_request(request);
    const int ends = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    WM_CHECK(ends >= 0);
    const bool in_time = ends_in_time(ends, std::stoi(request[5]));
    ::close(ends);
    if (!in_time) ::kill(child, SIGKILL);
    int status = 0;
    rusage used{};
    WM_CHECK(::wait4(child, &status, 0, &used) == child);
    // Processes that it left running.
    ::kill(-child, SIGKILL);
    const auto microseconds = [](const timeval& time) { return time.tv_sec * 1'000'000 + time.tv_usec; };
    std::printf("%d %ld %ld\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
                microseconds(used.ru_utime) + microseconds(used.ru_stime), used.ru_maxrss);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1) return waymark::cli::run(argc, argv);
    for (std::string line; std::getline(std::cin, line);) {
        std::vector<std::string> words;
        for (std::size_t at = 0; at < line.size();) {
            const std::size_t end = line.find('\0', at);
            WM_CHECK(end != std::string::npos);
            words.push_back(line.substr(at, end - at));
            at = end + 1;
        }
        WM_CHECK(words.size() > 6);
        answer(words);
    }
}
