/// The progress of a job, from the files in its folder, and from captures that were left out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/merge.h"
#include "waymark/fleet/receipt.h"

namespace waymark::fleet {

struct RunningShard {
    std::uint32_t number{};
    ShardProgress progress;
    bool failed_before{};
};

struct JobStatus {
    Manifest manifest;
    std::uint64_t done{};                 ///< shards
    std::uint64_t failed{};               ///< shards that are not done and have last words or damaged output
    std::uint64_t begun{};                ///< other shards with a progress
    std::uint64_t waiting{};              ///< the rest
    std::uint64_t captures_done{};        ///< decoded
    std::uint64_t trace_bytes_done{};     ///< of these
    double seconds{};                     ///< time spent by tasks of finished shards
    double planned_seconds{};             ///< the plan's estimate for them
    double planned_left{};                ///< the plan's estimate for the others
    std::uint64_t answers_bytes{};        ///< size of all answers files
    std::uint64_t memory_bytes{};         ///< maximum memory of a task
    std::vector<RunningShard> running;    ///< shards with a progress
    std::vector<MissingShard> failures;   ///< one for each shard that `failed` counts
    std::vector<NotDecoded> not_decoded;  ///< captures that shards left out, and unreadable inputs
    std::vector<NotDecoded> cut;          ///< captures that were decoded as far as they can be read
    answers::Account account{};           ///< how much of their runs the decoded captures cover
    bool has_result{};                    ///< a merge has written the result

    /// Bytes of trace that a core decodes in a second; 0: not known yet.
    [[nodiscard]] double bytes_per_second() const {
        return seconds > 0 ? static_cast<double>(trace_bytes_done) / seconds : 0;
    }
    /// Remaining seconds of work on one core: the plan's estimate, corrected by the time that finished shards took.
    [[nodiscard]] double seconds_left() const {
        return planned_seconds > 0 ? planned_left * (seconds / planned_seconds) : planned_left;
    }
    [[nodiscard]] bool complete() const { return done == manifest.shards && not_decoded.empty() && cut.empty(); }
};

/// Reads all answers and compares their hashes with the receipts. Errors: the plan cannot be read.
[[nodiscard]] Result<JobStatus> read_status(const JobFolder& job);

/// Numbers of shards to run: unfinished shards, and with `retry` shards that left out captures which may be
/// readable now.
[[nodiscard]] Result<std::vector<std::uint32_t>> shards_to_run(const JobFolder& job, bool retry);

}  // namespace waymark::fleet
