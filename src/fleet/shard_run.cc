// Runs a shard with two processes: a supervisor, which does nothing that can fail, and a child, which decodes.
#include "waymark/fleet/shard_run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "durable_file.h"
#include "hasher.h"
#include "waymark/answers/file.h"
#include "waymark/answers/sum.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/numbers.h"
#include "waymark/fleet/survey.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

double seconds_since(Clock::time_point began) { return std::chrono::duration<double>(Clock::now() - began).count(); }

/// Memory that supervisor and child share.
class SharedNote {
public:
    struct Contents {
        std::atomic<std::uint32_t> capture;  ///< index of the capture being decoded; `none`: all are decoded
        std::array<char, 4000> message;      ///< why the child gave up; zero-terminated
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};

    SharedNote()
        : memory_(::mmap(nullptr, sizeof(Contents), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
        WM_CHECK(memory_ != MAP_FAILED);
        new (memory_) Contents{};
        reset();
    }
    SharedNote(const SharedNote&) = delete;
    SharedNote& operator=(const SharedNote&) = delete;
    ~SharedNote() { ::munmap(memory_, sizeof(Contents)); }

    void reset() const {
        at().capture = none;
        at().message[0] = 0;
    }
    [[nodiscard]] Contents& at() const { return *static_cast<Contents*>(memory_); }
    void say(const std::string& text) const {
        const std::size_t size = std::min(text.size(), at().message.size() - 1);
        std::memcpy(at().message.data(), text.data(), size);
        at().message[size] = 0;
    }

private:
    void* memory_;
};

bool is_elf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::array<char, 4> head{};
    return in.read(head.data(), head.size()) && std::memcmp(head.data(),
                                                            "\x7f"
                                                            "ELF",
                                                            head.size()) == 0;
}

/// The work of the child.
class ShardDecoding {
public:
    ShardDecoding(const JobFolder& job, const Shard& shard, const DecodeCapture& decode, const ShardOptions& options,
                  const std::map<std::uint32_t, NotDecoded>& left_out, const SharedNote& note)
        : job_(job), shard_(shard), decode_(decode), options_(options), left_out_(left_out), note_(note) {}

    Status run() {
        const Clock::time_point began = Clock::now();
        receipt_.identity = shard_.identity;
        receipt_.host = host_name();
        Hasher inputs;
        for (std::uint32_t n = 0; n < shard_.captures.size(); ++n) {
            const PlannedCapture& capture = shard_.captures[n];
            if (const auto found = left_out_.find(n); found != left_out_.end()) {
                receipt_.not_decoded.push_back(found->second);
                continue;
            }
            note_.at().capture = n;
            note_progress(n);
            // The whole file is read here once, in order; decoding then finds it in the page cache.
            const auto hash = checked_hash(capture);
            if (!hash) {
                leave_out(capture, hash.error(), hash.error().code == Errc::bad_format);
                continue;
            }
            auto answers = decode_(capture);
            const Status taken = answers ? take(std::move(*answers), capture) : std::move(answers.error());
            if (!taken) {
                leave_out(capture, taken.error());
                continue;
            }
            inputs.add(*hash);
            ++receipt_.captures;
            receipt_.trace_bytes += capture.trace_bytes;
            receipt_.recorded_ns += capture.recorded_ns;
            receipt_.timed_captures += capture.recorded_ns != 0 ? 1 : 0;
        }
        note_.at().capture = SharedNote::none;
        receipt_.input_hash = inputs.text();
        if (!sum_.empty()) {
            const answers::Answers sum = sum_.take();
            receipt_.account = sum.account;
            WM_ASSIGN_OR_RETURN(const WrittenFile file,
                                write_durably(job_.of_shard(shard_.number, "answers"),
                                              [&](ByteSink& sink) { answers::write_answers(sum, sink); }));
            receipt_.answers_bytes = file.bytes;
            receipt_.answers_hash = file.hash;
        }
        receipt_.seconds = seconds_since(began);
        struct rusage used {};
        ::getrusage(RUSAGE_SELF, &used);
        const auto seconds = [](const timeval& t) {
            return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
        };
        receipt_.processor_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
        receipt_.memory_bytes = static_cast<std::uint64_t>(used.ru_maxrss) * 1024;
        return write_receipt(job_, shard_.number, receipt_);
    }

private:
    static Result<std::string> checked_hash(const PlannedCapture& capture) {
        WM_ASSIGN_OR_RETURN(const FileState now, file_state(capture.path));
        // The modification time may differ: a copy of the capture on another server is accepted.
        if (now.bytes != capture.bytes || now.sample != capture.sample)
            return Error{
                Errc::bad_format,
                fmt::format("it changed since the job was planned: found {} with sample {}, expected {} with {}",
                            counted(now.bytes, "byte"), now.sample, counted(capture.bytes, "byte"), capture.sample)};
        return whole_hash(capture.path);
    }

    void leave_out(const PlannedCapture& capture, const Error& error, bool changed = false) {
        const bool retry = error.code == Errc::unreadable || error.code == Errc::not_found;
        receipt_.not_decoded.push_back({capture.path, error.message, retry, changed});
    }
    /// The reason why the answers cover only a part of their capture; if there are several reasons, the worst.
    static std::string why_cut(const answers::Answers& answers) {
        return answers.health.empty() ? "it could not be read to its end" : answers.health.front().what;
    }

    /// Errors: `bad_format`: the answers cannot be added to the earlier ones.
    Status take(answers::Answers answers, const PlannedCapture& capture) {
        if (!receipt_.unit.empty() && receipt_.unit != answers.unit)
            return Error{Errc::bad_format,
                         fmt::format("it is of unit {}, and captures before it of unit {}: their figures do "
                                     "not add up; plan a job for each unit",
                                     answers.unit, receipt_.unit)};
        std::map<std::string, std::string> nameless = receipt_.nameless;
        for (const answers::Image& image : answers.images) {
            if (!image.build_id.empty() || image.path.empty() || !is_elf(image.path)) continue;
            WM_ASSIGN_OR_RETURN(const std::string hash, hash_of_program(image.path));
            const auto [at, fresh] = nameless.try_emplace(image.name, hash);
            if (at->second != hash)
                return Error{Errc::bad_format,
                             fmt::format("{} has no build ID and is not the {} of captures before it, so their figures "
                                         "must not be added; plan a job for each build, or link with --build-id",
                                         image.path, image.name)};
        }
        receipt_.nameless = std::move(nameless);
        receipt_.unit = answers.unit;
        answers.capture = capture.path;
        if (answers.cut) receipt_.cut.push_back({capture.path, why_cut(answers)});
        if (CaptureProfile profile = profile_of(answers, capture); profile.cost != 0)
            receipt_.profiles.push_back(std::move(profile));
        sum_.add(std::move(answers));
        return Nothing{};
    }
    Result<std::string> hash_of_program(const std::string& path) {
        const auto known = programs_.find(path);
        if (known != programs_.end()) return known->second;
        WM_ASSIGN_OR_RETURN(const WrittenFile file, hash_of_file(path));
        return programs_[path] = file.hash;
    }

    void note_progress(std::uint32_t capture) {
        if (noted_ && seconds_since(*noted_) < options_.progress_seconds) return;
        noted_ = Clock::now();
        ShardProgress progress{receipt_.host,
                               ::getppid(),
                               capture,
                               shard_.captures.size(),
                               0,
                               shard_.trace_bytes(),
                               shard_.captures[capture].path};
        for (std::uint32_t n = 0; n < capture; ++n) progress.bytes_done += shard_.captures[n].trace_bytes;
        // Progress only serves `status`, so an error is ignored.
        static_cast<void>(write_progress(job_, shard_.number, progress));
    }

    const JobFolder& job_;
    const Shard& shard_;
    const DecodeCapture& decode_;
    const ShardOptions& options_;
    const std::map<std::uint32_t, NotDecoded>& left_out_;
    const SharedNote& note_;
    Receipt receipt_;
    answers::AnswersSum sum_;
    std::map<std::string, std::string> programs_;  // hashes by path
    std::optional<Clock::time_point> noted_;
};

constexpr int exit_done = 0, exit_gave_up = 3;

/// Runs the child; returns its status.
int decode_in_child(ShardDecoding& decoding, const SharedNote& note, const Shard& shard) {
    try {
        const Status status = decoding.run();
        if (status) return exit_done;
        note.say(status.error().message);
    } catch (const std::bad_alloc&) {
        const std::uint32_t at = note.at().capture;
        note.say("out of memory" + (at < shard.captures.size() ? " at " + shard.captures[at].path : std::string()));
    } catch (const std::exception& error) {
        note.say(error.what());
    }
    return exit_gave_up;
}

/// Passes SIGTERM and SIGINT on to the child; the supervisor then explains the child's end.
class PassedOnSignals {
public:
    explicit PassedOnSignals(pid_t child) {
        child_of_supervisor = child;
        struct sigaction pass {};
        pass.sa_handler = [](int signal) { ::kill(child_of_supervisor, signal); };
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &pass, &before_[i]);
    }
    PassedOnSignals(const PassedOnSignals&) = delete;
    PassedOnSignals& operator=(const PassedOnSignals&) = delete;
    ~PassedOnSignals() {
        for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &before_[i], nullptr);
    }

private:
    static constexpr std::array signals{SIGTERM, SIGINT};
    static inline volatile pid_t child_of_supervisor = 0;
    std::array<struct sigaction, signals.size()> before_{};
};

/// Whether a signal is caused by the program itself, not sent from outside.
bool is_crash(int signal) {
    return signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
           signal == SIGTRAP || signal == SIGSYS;
}

}  // namespace

Result<ShardOutcome> run_shard(const JobFolder& job, std::uint32_t number, const DecodeCapture& decode,
                               const ShardOptions& options) {
    WM_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(job));
    if (manifest.version != options.version)
        return Error{Errc::usage, fmt::format("{} was planned with waymark {}, and this is {}: all machines need the "
                                              "same version; or plan a job anew",
                                              job.path().string(), manifest.version, options.version)};
    WM_ASSIGN_OR_RETURN(const Shard shard, read_shard(job, manifest, number));
    ShardOutcome out;
    if (auto receipt = finished_shard(job, shard, true); receipt) {
        if (!is_worth_running_again(shard, *receipt)) {
            out.was_done = true;
            out.receipt = std::move(*receipt);
            return out;
        }
    }
    for (const char* kind : {"answers", "json"}) capture::TemporaryName::remove_leftovers(job.of_shard(number, kind));
    std::map<std::uint32_t, NotDecoded> left_out;
    const SharedNote note;
    const auto failed = [&](std::string why) -> Result<ShardOutcome> {
        out.failure = std::move(why);
        WM_RETURN_IF_ERROR(write_last_words(job, number, {out.failure}));
        return out;
    };
    for (;;) {
        note.reset();
        const SharedNote::Contents& contents = note.at();
        ShardDecoding decoding(job, shard, decode, options, left_out, note);
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child < 0) return failed(fmt::format("cannot start a process: {}", std::strerror(errno)));
        if (child == 0) {
            // Kill the child if the supervisor dies.
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(exit_gave_up);
            ::_exit(decode_in_child(decoding, note, shard));
        }
        int status = 0;
        const PassedOnSignals passed_on(child);
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == exit_done) break;
        // Another process with the same shard may have been faster, and removed the files of this one.
        if (finished_shard(job, shard, true)) break;
        if (WIFEXITED(status) && WEXITSTATUS(status) == exit_gave_up && contents.message[0] != 0)
            return failed(contents.message.data());
        const std::uint32_t at = contents.capture;
        const std::string how = WIFSIGNALED(status)
                                    ? fmt::format("signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                    : fmt::format("status {}", WEXITSTATUS(status));
        // Only a crash is the fault of the capture.
        const bool crash = !WIFSIGNALED(status) || is_crash(WTERMSIG(status));
        if (!crash || at >= shard.captures.size())
            return failed(fmt::format("it was ended by {}{}", how,
                                      at < shard.captures.size() ? " at " + shard.captures[at].path : std::string()));
        left_out[at] = {shard.captures[at].path, fmt::format("the decoder crashed with {}", how)};
    }
    auto receipt = finished_shard(job, shard, false);
    if (!receipt) return failed(receipt.error().message);
    out.receipt = std::move(*receipt);
    std::error_code none;
    fs::remove(job.of_shard(number, "failed"), none);
    fs::remove(job.of_shard(number, "progress"), none);
    return out;
}

}  // namespace waymark::fleet
