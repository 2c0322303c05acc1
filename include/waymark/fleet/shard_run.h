/// Decoding a shard: captures → one answers file. Knows no batch system: whatever can run a command with a number can
/// run shards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/receipt.h"

namespace waymark::fleet {

/// Answers of one capture, decoded with the options of the job. Called in a process of its own.
using DecodeCapture = std::function<Result<answers::Answers>(const PlannedCapture& capture)>;

struct ShardOptions {
    std::string version;           ///< of Waymark: must be that of the plan
    double progress_seconds = 10;  ///< between two writes of how far the task is
};

struct ShardOutcome {
    bool was_done{};  ///< before this call
    /// Why there are no answers, in a sentence; also written as last words. Empty: the shard is done.
    std::string failure{};
    Receipt receipt{};  ///< if it is done
};

/// Decodes shard `number` unless it is done. Captures that cannot be decoded are named in the receipt, and the others
/// are decoded: those that changed since the plan, that cannot be read, and those at which the decoder crashes, which
/// runs in a child process for that reason. May be called for one shard by several processes at once: all write the
/// same answers. Errors: the errors of the plan; `usage`: this is another version of Waymark.
[[nodiscard]] Result<ShardOutcome> run_shard(const JobFolder& job, std::uint32_t number, const DecodeCapture& decode,
                                             const ShardOptions& options);

}  // namespace waymark::fleet
