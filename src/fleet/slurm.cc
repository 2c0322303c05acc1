#include "waymark/fleet/slurm.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "command.h"
#include "durable_file.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/fleet/merge.h"
#include "waymark/fleet/status.h"
#include "whole_number.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// The script of an array's tasks. The shard's number is a line of a list, so that any set of shards can form an array.
constexpr std::string_view shards_script = R"(#!/bin/sh
# waymark fleet submit: a task of an array decodes one shard. Arguments: waymark, the job's folder, a list of shards, and
# options of run-shard.
waymark=$1 job=$2 list=$3
shift 3
shard=$(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" "$list")
[ -n "$shard" ] || { echo "no shard in line $((SLURM_ARRAY_TASK_ID + 1)) of $list" >&2; exit 3; }
exec "$waymark" fleet run-shard "$job" "$shard" --jobs "${SLURM_CPUS_PER_TASK:-1}" --log "$@"
)";
constexpr std::string_view next_script = R"(#!/bin/sh
# waymark fleet submit: after a round, submits what is missing again, or merges. Arguments: waymark, the job's folder.
exec "$1" fleet resume "$2" --next-round
)";
constexpr std::string_view merge_script = R"(#!/bin/sh
# waymark fleet submit: a task of an array makes one intermediate sum. Arguments: waymark, the job's folder, the level.
exec "$1" fleet merge "$2" --level "$3" --node "$SLURM_ARRAY_TASK_ID"
)";

struct SubmissionState {
    SlurmOptions options;
    std::uint64_t round{};
    bool merging{};  // jobs that merge levels were submitted
};

fs::path state_file(const JobFolder& job) { return job.slurm() / "submission.json"; }
fs::path jobs_file(const JobFolder& job) { return job.slurm() / "jobs.json"; }

/// Writes a file of a submission, and removes unfinished copies of a killed process. The caller holds the lock.
Status write_of_submission(const fs::path& place, std::string_view text) {
    capture::TemporaryName::remove_leftovers(place);
    return write_durably(place, text);
}

Status write_state(const JobFolder& job, const SubmissionState& state) {
    return write_of_submission(state_file(job), json{{"sbatch", state.options.sbatch},
                                                     {"retries", state.options.retries},
                                                     {"array_size", state.options.array_size},
                                                     {"program", state.options.program},
                                                     {"run", state.options.run},
                                                     {"round", state.round},
                                                     {"merging", state.merging}}
                                                        .dump(1) +
                                                    "\n");
}

Result<SubmissionState> read_state_of_submission(const JobFolder& job) {
    auto text = read_small_file(state_file(job));
    if (!text && text.error().code == Errc::not_found)
        return Error{Errc::not_found, fmt::format("the job in {} was not submitted; waymark fleet submit {} submits it",
                                                  job.path().string(), shell_file(job.path().string()))};
    if (!text) return std::move(text.error());
    try {
        const json value = json::parse(*text);
        SubmissionState out;
        out.options.sbatch = value.at("sbatch").get<std::vector<std::string>>();
        out.options.retries = whole<std::uint64_t>(value.at("retries"));
        out.options.array_size = whole<std::uint64_t>(value.at("array_size"));
        out.options.program = value.at("program").get<std::string>();
        out.options.run = value.at("run").get<std::vector<std::string>>();
        out.round = whole<std::uint64_t>(value.at("round"));
        out.merging = value.at("merging").get<bool>();
        return out;
    } catch (const json::exception& error) {
        return Error{Errc::bad_format,
                     fmt::format("{} is damaged: {}; submit the job anew", state_file(job).string(), error.what())};
    }
}

/// All Slurm jobs that were ever submitted for this job.
std::vector<SlurmJob> submitted_jobs(const JobFolder& job) {
    std::vector<SlurmJob> out;
    const auto text = read_small_file(jobs_file(job));
    if (!text) return out;
    try {
        for (const json& j : json::parse(*text))
            out.push_back({j.at("id").get<std::string>(), j.at("what").get<std::string>(),
                           whole<std::uint64_t>(j.at("round")), whole<std::uint64_t>(j.at("tasks"))});
    } catch (const json::exception&) {
        out.clear();
    }
    return out;
}

Status add_jobs(const JobFolder& job, const std::vector<SlurmJob>& added) {
    json all = json::array();
    std::vector<SlurmJob> jobs = submitted_jobs(job);
    jobs.insert(jobs.end(), added.begin(), added.end());
    for (const SlurmJob& j : jobs)
        all.push_back({{"id", j.id}, {"what", j.what}, {"round", j.round}, {"tasks", j.tasks}});
    return write_of_submission(jobs_file(job), all.dump(1) + "\n");
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Runs a command of Slurm. Errors: `unreadable`: the command is missing, or it failed; the message contains its
/// output.
Result<std::string> ask_slurm(const std::vector<std::string>& words) {
    auto result = run_command(words);
    if (!result)
        return Error{Errc::unreadable, fmt::format("{}: the commands of Slurm are needed here (Debian package "
                                                   "slurm-client); waymark fleet local needs none of them",
                                                   result.error().message)};
    if (result->status != 0)
        return Error{Errc::unreadable,
                     fmt::format("{} failed with status {}: {}", words[0], result->status,
                                 first_line(result->errors.empty() ? result->output : result->errors))};
    return std::move(result->output);
}

/// The same with retries: a controller may be restarting.
Result<std::string> ask_slurm_patiently(const std::vector<std::string>& words, bool patient) {
    constexpr unsigned most_tries = 20;
    constexpr std::chrono::seconds pause(15);
    for (unsigned tries = 1;; ++tries) {
        auto answer = ask_slurm(words);
        const bool silent = !answer && answer.error().message.find("ontroller") != std::string::npos;
        if (!silent || !patient || tries == most_tries) return answer;
        std::this_thread::sleep_for(pause);
    }
}

std::optional<std::uint64_t> number_in(std::string_view text) {
    std::uint64_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} ? std::optional(out) : std::nullopt;
}

/// The setting MaxArraySize: an index must be smaller.
Result<std::uint64_t> max_array_size(bool patient) {
    WM_ASSIGN_OR_RETURN(const std::string config, ask_slurm_patiently({"scontrol", "show", "config"}, patient));
    std::istringstream in(config);
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("MaxArraySize")) continue;
        const std::size_t at = line.find_first_of("0123456789");
        if (at == line.npos) break;
        if (const auto size = number_in(std::string_view(line).substr(at)); size && *size > 0) return *size;
    }
    constexpr std::uint64_t default_size = 1001;
    return default_size;
}

/// A task in Slurm's queue.
struct QueueLine {
    std::string id, what, state, reason;
};

Result<std::vector<QueueLine>> queue_of(const JobFolder& job, bool patient = false) {
    std::map<std::string, std::string> ours;
    for (const SlurmJob& j : submitted_jobs(job)) ours[j.id] = j.what;
    WM_ASSIGN_OR_RETURN(const std::string queue,
                        ask_slurm_patiently({"squeue", "--noheader", "--array", "--me", "--format=%F|%T|%r"}, patient));
    std::vector<QueueLine> out;
    std::istringstream in(queue);
    for (std::string line; std::getline(in, line);) {
        const std::size_t state = line.find('|'), reason = line.find('|', state + 1);
        if (state == line.npos || reason == line.npos) continue;
        const auto found = ours.find(line.substr(0, state));
        if (found == ours.end()) continue;
        out.push_back(
            {found->first, found->second, line.substr(state + 1, reason - state - 1), line.substr(reason + 1)});
    }
    return out;
}

/// Creates the folders for a submission. Only the process with the lock submits, so that jobs.json contains every job.
Result<FolderLock> begin_submitting(const JobFolder& job, FolderLock::Held held) {
    std::error_code error;
    for (const fs::path& folder : {job.slurm(), job.logs()}) {
        fs::create_directories(folder, error);
        if (error)
            return Error{Errc::unreadable,
                         fmt::format("cannot create the folder {}: {}", folder.string(), error.message())};
    }
    return FolderLock::take(job.slurm(),
                            "another 'waymark fleet submit' or 'fleet resume' is submitting the job; wait until it has "
                            "ended",
                            held);
}

/// Submits; used by one process at a time (begin_submitting).
class Submitter {
public:
    Submitter(const JobFolder& job, SubmissionState state, bool patient)
        : job_(job),
          folder_(fs::absolute(job.path()).lexically_normal()),
          state_(std::move(state)),
          patient_(patient) {}

    /// Submits arrays of shards, and the jobs that depend on them.
    Result<Submission> shards(const std::vector<std::uint32_t>& numbers) {
        out_.round = state_.round;
        state_.merging = false;
        WM_RETURN_IF_ERROR(write_state(job_, state_));
        std::uint64_t size = state_.options.array_size;
        if (size == 0) {
            WM_ASSIGN_OR_RETURN(size, max_array_size(patient_));
        }
        std::vector<std::string> ids;
        for (std::size_t at = 0; at < numbers.size(); at += size) {
            const std::size_t count = std::min<std::size_t>(size, numbers.size() - at);
            const fs::path list = job_.slurm() / fmt::format("round-{}-{}.list", state_.round, at / size);
            std::string text;
            for (std::size_t i = at; i < at + count; ++i) text += fmt::format("{}\n", numbers[i]);
            WM_RETURN_IF_ERROR(write_of_submission(list, text));
            std::vector<std::string> arguments{fs::absolute(list).string()};
            arguments.insert(arguments.end(), state_.options.run.begin(), state_.options.run.end());
            const auto id = submit("shards", count, {fmt::format("--array=0-{}", count - 1)}, shards_script, arguments);
            if (id) {
                ids.push_back(*id);
                out_.shards += count;
            } else {
                // A job that Slurm refuses now, for example because of a limit of jobs, is submitted again in the next
                // round.
                out_.problems.push_back(id.error().message);
            }
        }
        if (ids.empty()) return Error{Errc::unreadable, out_.problems.front()};
        WM_ASSIGN_OR_RETURN(const std::string next, submit("next", 1, {after(ids)}, next_script, {}));
        return finish();
    }

    /// Submits the levels of merging, each depending on the level below, and the last merge.
    Result<Submission> merging(std::uint64_t shard_count) {
        out_.round = state_.round;
        state_.merging = true;
        WM_RETURN_IF_ERROR(write_state(job_, state_));
        std::uint64_t size = state_.options.array_size;
        if (size == 0) {
            WM_ASSIGN_OR_RETURN(size, max_array_size(patient_));
        }
        std::vector<std::string> ids;
        for (unsigned level = 1; level <= merge_levels(shard_count); ++level) {
            const std::uint32_t nodes = nodes_of_level(shard_count, level);
            std::vector<std::string> options;
            if (!ids.empty()) options.push_back(after(ids));
            // Sums beyond the size of an array are computed by the level above, from their inputs.
            options.push_back(fmt::format("--array=0-{}", std::min<std::uint64_t>(nodes, size) - 1));
            WM_ASSIGN_OR_RETURN(const std::string id,
                                submit("merge", nodes, options, merge_script, {std::to_string(level)}));
            ids = {id};
        }
        WM_ASSIGN_OR_RETURN(const std::string last, submit("next", 1, {after(ids)}, next_script, {}));
        return finish();
    }

private:
    static std::string after(const std::vector<std::string>& ids) {
        // afterany also runs after failed tasks, which the next step handles.
        return fmt::format("--dependency=afterany:{}", fmt::join(ids, ":"));
    }
    Result<std::string> submit(const char* what, std::uint64_t tasks, const std::vector<std::string>& options,
                               std::string_view script, const std::vector<std::string>& arguments) {
        const fs::path file = folder_ / "slurm" / fmt::format("{}.sh", what);
        WM_RETURN_IF_ERROR(write_of_submission(file, script));
        std::vector<std::string> words{
            "sbatch", "--parsable", fmt::format("--job-name=waymark-{}", what),
            fmt::format("--output={}", slurm_output((folder_ / "slurm" / "output.txt").string())),
            "--open-mode=append"};
        words.insert(words.end(), state_.options.sbatch.begin(), state_.options.sbatch.end());
        words.insert(words.end(), options.begin(), options.end());
        words.insert(words.end(), {file.string(), state_.options.program, folder_.string()});
        words.insert(words.end(), arguments.begin(), arguments.end());
        WM_ASSIGN_OR_RETURN(const std::string answer, ask_slurm_patiently(words, patient_));
        // An answer such as `1234` or `1234;cluster`.
        const std::string id = answer.substr(0, answer.find_first_not_of("0123456789"));
        if (id.empty())
            return Error{Errc::unreadable,
                         fmt::format("sbatch printed no number of a job, but: {}", first_line(answer))};
        out_.jobs.push_back({id, what, state_.round, tasks});
        if (Status noted = add_jobs(job_, {out_.jobs.back()}); !noted) {
            // A job whose number is not stored could not be cancelled later.
            const auto cancelled = ask_slurm({"scancel", id});
            if (!cancelled) noted.error().message += fmt::format("; cancel its job {} by hand: scancel {}", id, id);
            return std::move(noted.error());
        }
        return id;
    }
    Result<Submission> finish() { return std::move(out_); }

    const JobFolder& job_;
    fs::path folder_;
    SubmissionState state_;
    bool patient_;
    Submission out_;
};

/// Whether another round is already running, as when Slurm runs this job again after it had submitted a round. The
/// tasks for which this job waited have ended.
Result<bool> newer_round_queued(const JobFolder& job) {
    const char* const own = std::getenv("SLURM_JOB_ID");
    WM_ASSIGN_OR_RETURN(const std::vector<QueueLine> lines, queue_of(job, true));
    return std::any_of(lines.begin(), lines.end(), [&](const QueueLine& line) {
        return line.state != "COMPLETING" && (own != nullptr ? line.id != own : line.what != "next");
    });
}

Result<Submission> begin(const JobFolder& job, SlurmOptions options) {
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers, shards_to_run(job, true));
    std::optional<FolderLock> lock;
    if (!numbers.empty()) {
        WM_ASSIGN_OR_RETURN(FolderLock taken, begin_submitting(job, FolderLock::Held::fails));
        lock.emplace(std::move(taken));
    }
    if (was_submitted(job)) {
        WM_ASSIGN_OR_RETURN(const std::vector<QueuedTasks> queued, queued_tasks(job));
        if (!queued.empty()) {
            std::uint64_t tasks = 0;
            for (const QueuedTasks& q : queued) tasks += q.tasks;
            return Error{Errc::usage,
                         fmt::format("{} of the job in {} {} still queued or running; wait, or waymark "
                                     "fleet cancel {}",
                                     counted(tasks, "task"), job.path().string(), are(tasks), job.path().string())};
        }
    }
    Submitter submitter(job, {std::move(options), 0, false}, false);
    if (!numbers.empty()) return submitter.shards(numbers);
    Submission out;
    out.merge_now = true;
    return out;
}

}  // namespace

Result<Submission> submit_job(const JobFolder& job, const SlurmOptions& options) { return begin(job, options); }

Result<Submission> resume_job(const JobFolder& job) {
    WM_ASSIGN_OR_RETURN(SubmissionState state, read_state_of_submission(job));
    return begin(job, std::move(state.options));
}

Result<Submission> next_round(const JobFolder& job) {
    // Take the lock first: its earlier holder may have begun another round.
    WM_ASSIGN_OR_RETURN(const FolderLock lock, begin_submitting(job, FolderLock::Held::waits));
    WM_ASSIGN_OR_RETURN(SubmissionState state, read_state_of_submission(job));
    WM_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(job));
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint32_t> numbers, shards_to_run(job, true));
    const bool again = !numbers.empty() && state.round < state.options.retries;
    const bool levels = !state.merging && merge_levels(manifest.shards) > 0;
    if ((again && !state.merging) || levels) {
        WM_ASSIGN_OR_RETURN(const bool newer, newer_round_queued(job));
        if (newer) return Submission{};
    }
    if (again && !state.merging) {
        ++state.round;
        return Submitter(job, std::move(state), true).shards(numbers);
    }
    if (levels) return Submitter(job, std::move(state), true).merging(manifest.shards);
    Submission out;
    out.round = state.round;
    out.merge_now = true;
    return out;
}

bool was_submitted(const JobFolder& job) {
    std::error_code none;
    return fs::exists(jobs_file(job), none);
}

Result<std::vector<QueuedTasks>> queued_tasks(const JobFolder& job) {
    WM_ASSIGN_OR_RETURN(const std::vector<QueueLine> lines, queue_of(job));
    std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> tasks;
    for (const QueueLine& line : lines) ++tasks[{line.what, line.state, line.reason}];
    std::vector<QueuedTasks> out;
    for (const auto& [key, count] : tasks) out.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
    return out;
}

Result<std::uint64_t> cancel_job(const JobFolder& job) {
    if (!was_submitted(job))
        return Error{Errc::not_found, fmt::format("the job in {} was not submitted", job.path().string())};
    WM_ASSIGN_OR_RETURN(const std::vector<QueueLine> lines, queue_of(job));
    if (lines.empty()) return std::uint64_t{0};
    // Cancel all at once, so that no job starts because those before it end.
    std::set<std::string> ids;
    for (const QueueLine& line : lines) ids.insert(line.id);
    std::vector<std::string> words{"scancel"};
    words.insert(words.end(), ids.rbegin(), ids.rend());
    WM_RETURN_IF_ERROR(ask_slurm(words));
    return lines.size();
}

}  // namespace waymark::fleet
