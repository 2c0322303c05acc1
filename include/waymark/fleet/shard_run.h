/// Decodes a shard: its captures give one answers file. Independent of batch systems: anything that can run a command
/// with a number can run shards.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/receipt.h"

namespace waymark::fleet {

/// Decodes one capture with the options of the job. Called in a separate process.
using DecodeCapture = std::function<Result<answers::Answers>(const PlannedCapture& capture)>;

struct ShardOptions {
    std::string version;           ///< version of Waymark, which must match the plan's
    double progress_seconds = 10;  ///< interval between two updates of the task's progress
};

struct ShardOutcome {
    bool was_done{};  ///< before this call
    /// The reason why there are no answers, in a sentence, which is also written as last words. Empty: the shard is
    /// done.
    std::string failure{};
    Receipt receipt{};  ///< if the shard is done
};

/// Decodes shard `number` unless it is done. The receipt names the captures that cannot be decoded, and the others are
/// decoded. A capture cannot be decoded if it changed since the plan, if it cannot be read, or if the decoder crashes,
/// which therefore runs in a child process. Several processes may call it for one shard at once: all write the same
/// answers. Errors: the errors of the plan; `usage`: another version of Waymark.
[[nodiscard]] Result<ShardOutcome> run_shard(const JobFolder& job, std::uint32_t number, const DecodeCapture& decode,
                                             const ShardOptions& options);

}  // namespace waymark::fleet
