#include "waymark/fleet/local.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <utility>

#include "waymark/fleet/receipt.h"
#include "waymark/fleet/status.h"

namespace waymark::fleet {

namespace {

/// Redirects standard error and output of this process to a file; keeps them if that fails.
void redirect_output(const std::filesystem::path& log) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return;
    ::dup2(file, STDOUT_FILENO);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
}

class Workers {
public:
    Workers(const JobFolder& job, const DecodeCapture& decode, const LocalOptions& options)
        : job_(job), decode_(decode), options_(options) {}

    Result<LocalOutcome> run() {
        WM_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(job_));
        out_.shards = manifest.shards;
        WM_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> shards, shards_to_run(job_, true));
        waiting_.assign(shards.begin(), shards.end());
        out_.were_done = out_.shards - shards.size();
        std::error_code none;
        std::filesystem::create_directories(job_.logs(), none);
        report_progress();
        while (!waiting_.empty() || !running_.empty()) {
            while (!waiting_.empty() && running_.size() < std::max(1U, options_.workers)) {
                WM_RETURN_IF_ERROR(start(waiting_.front()));
                waiting_.pop_front();
            }
            WM_RETURN_IF_ERROR(wait_for_one());
            report_progress();
        }
        std::sort(out_.failed.begin(), out_.failed.end());
        return std::move(out_);
    }

private:
    Status start(std::uint32_t shard) {
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child < 0) return Error{Errc::unreadable, fmt::format("cannot start a process: {}", std::strerror(errno))};
        if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(failure);
            redirect_output(job_.log_of_shard(shard));
            const auto outcome = run_shard(job_, shard, decode_, options_.shard);
            if (!outcome) {
                static_cast<void>(write_last_words(job_, shard, {outcome.error().message}));
                ::_exit(failure);
            }
            ::_exit(outcome->failure.empty() ? 0 : failure);
        }
        running_[child] = shard;
        return Nothing{};
    }

    Status wait_for_one() {
        int status = 0;
        const pid_t child = ::waitpid(-1, &status, 0);
        if (child < 0 && errno == EINTR) return Nothing{};
        if (child < 0) return Error{Errc::unreadable, fmt::format("cannot wait: {}", std::strerror(errno))};
        const auto at = running_.find(child);
        if (at == running_.end()) return Nothing{};
        const std::uint32_t shard = at->second;
        running_.erase(at);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            ++out_.ran;
            return Nothing{};
        }
        if (WIFSIGNALED(status))
            WM_RETURN_IF_ERROR(write_last_words(
                job_, shard,
                {fmt::format("it was ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))}));
        if (attempts_[shard]++ < options_.retries)
            waiting_.push_back(shard);
        else
            out_.failed.push_back(shard);
        return Nothing{};
    }

    void report_progress() const {
        if (options_.progress) options_.progress(out_.were_done + out_.ran, out_.failed.size(), out_.shards);
    }

    static constexpr int failure = 3;
    const JobFolder& job_;
    const DecodeCapture& decode_;
    const LocalOptions& options_;
    std::deque<std::uint32_t> waiting_;
    std::map<pid_t, std::uint32_t> running_;
    std::map<std::uint32_t, std::uint64_t> attempts_;
    LocalOutcome out_;
};

}  // namespace

Result<LocalOutcome> run_locally(const JobFolder& job, const DecodeCapture& decode, const LocalOptions& options) {
    return Workers(job, decode, options).run();
}

}  // namespace waymark::fleet
