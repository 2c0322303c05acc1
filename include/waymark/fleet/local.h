/// Runs a job on the cores of this machine, with a process for each shard.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/shard_run.h"

namespace waymark::fleet {

struct LocalOptions {
    unsigned workers = 1;      ///< number of concurrent processes
    std::uint64_t retries{1};  ///< how often a failed shard is run again
    ShardOptions shard;
    /// Called when a shard ends, and regularly, with the numbers of shards done, failed, and to do. May be null.
    std::function<void(std::uint64_t done, std::uint64_t failed, std::uint64_t all)> progress{};
};

struct LocalOutcome {
    std::uint64_t shards{};            ///< of the plan
    std::uint64_t were_done{}, ran{};  ///< shards done before; shards decoded now
    std::vector<std::uint32_t> failed;
};

/// Decodes shards that are not done. Output of a shard's process goes to its log. Precondition: this process has one
/// thread. Errors: the errors of the plan, and `unreadable`: no process can be started.
[[nodiscard]] Result<LocalOutcome> run_locally(const JobFolder& job, const DecodeCapture& decode,
                                               const LocalOptions& options);

}  // namespace waymark::fleet
