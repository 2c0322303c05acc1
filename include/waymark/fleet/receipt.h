/// What a task leaves beside its answers: a receipt, its last words, how far it is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/spread.h"

namespace waymark::fleet {

/// What a shard's answers file is of. A shard is done if its receipt has the identity of the plan and the answers file
/// is there, with the size and hash that it gives.
struct Receipt {
    std::string identity;           ///< Shard::identity
    std::uint64_t answers_bytes{};  ///< of the answers file; 0: there is none, since no capture could be decoded
    std::string answers_hash{};
    std::string unit{};
    std::uint64_t captures{};  ///< decoded
    std::uint64_t trace_bytes{};
    std::uint64_t recorded_ns{}, timed_captures{};  ///< sum of PlannedCapture::recorded_ns; captures that have it
    std::vector<NotDecoded> not_decoded{};
    std::vector<NotDecoded> cut{};  ///< decoded as far as they can be read
    /// Programs without a build ID, which answers identify by their names: hash of the file by name.
    std::map<std::string, std::string> nameless{};
    answers::Account account{};              ///< how much of the decoded captures' runs the answers are of
    std::vector<CaptureProfile> profiles{};  ///< of the decoded captures
    std::string input_hash{};                ///< of all bytes of all captures, in the order of the shard
    std::string host{};                      ///< that decoded it
    double seconds{};                        ///< of work
    double processor_seconds{};              ///< user and system time
    std::uint64_t memory_bytes{};            ///< most resident memory
};

/// What became of a task that failed, as it or who started it could say it.
struct LastWords {
    std::string why;
    std::string host{};
    std::uint64_t attempts{};  ///< so far
    std::uint64_t seconds_since_1970{};
};

/// How far a task is: rewritten at most every ten seconds.
struct ShardProgress {
    std::string host;
    std::int64_t process{};
    std::uint64_t captures_done{}, captures{};
    std::uint64_t bytes_done{}, bytes{};  ///< of trace
    std::string capture{};                ///< that is decoded now
};

[[nodiscard]] Status write_receipt(const JobFolder& job, std::uint32_t shard, const Receipt& receipt);
/// Errors: `not_found`: there is none; `bad_format`: it is damaged.
[[nodiscard]] Result<Receipt> read_receipt(const JobFolder& job, std::uint32_t shard);

/// The receipt of a shard that is done. Errors: `not_found`: it was not run; `bad_format`: the answers are of another
/// plan, or damaged, with the reason. `thorough`: the answers file is read and its hash compared, not its size alone.
[[nodiscard]] Result<Receipt> finished_shard(const JobFolder& job, const Shard& shard, bool thorough);

/// A capture that a shard left out is now as the plan describes it; it may have been another when the shard ran.
[[nodiscard]] bool is_as_planned(const Shard& shard, const NotDecoded& left_out);
/// Of a shard that is done: a capture that it lacks may be decoded now.
[[nodiscard]] bool is_worth_running_again(const Shard& shard, const Receipt& receipt);

[[nodiscard]] Status write_last_words(const JobFolder& job, std::uint32_t shard, LastWords words);
[[nodiscard]] std::optional<LastWords> read_last_words(const JobFolder& job, std::uint32_t shard);
[[nodiscard]] Status write_progress(const JobFolder& job, std::uint32_t shard, const ShardProgress& progress);
[[nodiscard]] std::optional<ShardProgress> read_progress(const JobFolder& job, std::uint32_t shard);

/// Why a shard is not done, in a sentence: its last words; else how far it came when it ended without any, with the
/// last line of its log; else that it never ran.
[[nodiscard]] std::string why_missing(const JobFolder& job, const Shard& shard);

}  // namespace waymark::fleet
