/// A job under Slurm (22.05 and later): arrays of plain commands. Everything that is known of a job is in its folder,
/// so what becomes of Slurm's own state does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// How a job is submitted; kept in its folder, for later rounds.
struct SlurmOptions {
    std::vector<std::string> sbatch;  ///< passed on to every sbatch, after Waymark's own options
    std::uint64_t retries = 2;        ///< how often what is missing is submitted again
    std::uint64_t array_size = 0;     ///< most tasks of an array; 0: Slurm's MaxArraySize
    std::string program;              ///< path of waymark on the nodes
    std::vector<std::string> run;     ///< further options of every run-shard
};

/// One sbatch.
struct SlurmJob {
    std::string id;
    std::string what;  ///< `shards`, `next` (looks for what is missing, or merges), `merge`
    std::uint64_t round{}, tasks{};
};

struct Submission {
    std::vector<SlurmJob> jobs;         ///< of this call
    std::uint64_t shards{};             ///< submitted
    std::uint64_t round{};              ///< 0: the first
    bool merge_now{};                   ///< nothing is left to submit: the caller merges
    std::vector<std::string> problems;  ///< arrays that Slurm refused, with what it said
};

/// What Slurm says of the job's tasks: how many, by what they are for, state and reason.
struct QueuedTasks {
    std::string what, state, reason;
    std::uint64_t tasks{};
};

/// Submits all shards that are not done in arrays, and a job after them that goes on (next_round). Errors: `usage`:
/// the job's Slurm jobs are still queued; `unreadable`: Slurm's commands are missing, or refused everything.
[[nodiscard]] Result<Submission> submit_job(const JobFolder& job, const SlurmOptions& options);
/// What the job after a round does: submits what is missing once more, or levels of merging, or says that the caller
/// merges. Waits for a controller that does not answer, for some minutes.
[[nodiscard]] Result<Submission> next_round(const JobFolder& job);
/// As submit_job, with the options of the earlier submission. `not_found`: it was never submitted.
[[nodiscard]] Result<Submission> resume_job(const JobFolder& job);

/// The job was submitted once.
[[nodiscard]] bool was_submitted(const JobFolder& job);
/// Its tasks that Slurm has. Errors: `unreadable`: Slurm does not answer, or is not there.
[[nodiscard]] Result<std::vector<QueuedTasks>> queued_tasks(const JobFolder& job);
/// Cancels all that was submitted; how many jobs were queued. Errors: as above.
[[nodiscard]] Result<std::uint64_t> cancel_job(const JobFolder& job);

}  // namespace waymark::fleet
