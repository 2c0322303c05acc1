/// Runs a job under Slurm (22.05 and later), as arrays of plain commands. The job's state is completely in its folder,
/// so the state of Slurm itself does not matter.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"

namespace waymark::fleet {

/// Options of submitting a job; stored in its folder for later rounds.
struct SlurmOptions {
    std::vector<std::string> sbatch;  ///< passed to every sbatch, after Waymark's own options
    std::uint64_t retries = 2;        ///< how often missing shards are submitted again
    std::uint64_t array_size = 0;     ///< maximum number of tasks in an array; 0: Slurm's MaxArraySize
    std::string program;              ///< path of waymark on the nodes
    std::vector<std::string> run;     ///< further options of every run-shard
};

/// One sbatch.
struct SlurmJob {
    std::string id;
    std::string what;  ///< `shards`, `next` (submits missing shards, or merges), `merge`
    std::uint64_t round{}, tasks{};
};

struct Submission {
    std::vector<SlurmJob> jobs;         ///< of this call
    std::uint64_t shards{};             ///< submitted
    std::uint64_t round{};              ///< 0: the first
    bool merge_now{};                   ///< nothing is left to submit: the caller should merge
    std::vector<std::string> problems;  ///< arrays that Slurm refused, with its messages
};

/// Number of the job's tasks in Slurm, by purpose, state and reason.
struct QueuedTasks {
    std::string what, state, reason;
    std::uint64_t tasks{};
};

/// Submits all shards that are not done in arrays, and a job after them that continues (next_round). Errors: `usage`:
/// the job's Slurm jobs are still queued; `unreadable`: Slurm's commands are missing, or refused everything.
[[nodiscard]] Result<Submission> submit_job(const JobFolder& job, const SlurmOptions& options);
/// The work of the job after a round: submits missing shards again, or levels of merging, or states that the caller
/// should merge. Waits some minutes for a controller that does not answer.
[[nodiscard]] Result<Submission> next_round(const JobFolder& job);
/// Like submit_job, with the options of the earlier submission. `not_found`: it was never submitted.
[[nodiscard]] Result<Submission> resume_job(const JobFolder& job);

/// Whether the job was ever submitted.
[[nodiscard]] bool was_submitted(const JobFolder& job);
/// The job's tasks in Slurm. Errors: `unreadable`: Slurm does not answer, or is not installed.
[[nodiscard]] Result<std::vector<QueuedTasks>> queued_tasks(const JobFolder& job);
/// Cancels everything submitted; returns the number of queued jobs. Errors: as above.
[[nodiscard]] Result<std::uint64_t> cancel_job(const JobFolder& job);

}  // namespace waymark::fleet
