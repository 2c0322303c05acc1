/// Files that a task writes besides its answers: a receipt, its last words, its progress.
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

/// Describes a shard's answers file. A shard is done if its receipt has the identity in the plan, and the answers file
/// exists with the receipt's size and hash.
struct Receipt {
    std::string identity;           ///< Shard::identity
    std::uint64_t answers_bytes{};  ///< size of the answers file; 0: none, since no capture could be decoded
    std::string answers_hash{};
    std::string unit{};
    std::uint64_t captures{};  ///< decoded
    std::uint64_t trace_bytes{};
    std::uint64_t recorded_ns{},
        timed_captures{};  ///< sum of PlannedCapture::recorded_ns; number of captures that have it
    std::vector<NotDecoded> not_decoded{};
    std::vector<NotDecoded> cut{};  ///< decoded as far as they can be read
    /// Programs without a build ID, which answers identify by name: hash of the file by name.
    std::map<std::string, std::string> nameless{};
    answers::Account account{};              ///< how much of the decoded captures' runs the answers cover
    std::vector<CaptureProfile> profiles{};  ///< of the decoded captures
    std::string input_hash{};                ///< hash of all bytes of all captures, in the order of the shard
    std::string host{};                      ///< that decoded it
    double seconds{};                        ///< of work
    double processor_seconds{};              ///< user and system time
    std::uint64_t memory_bytes{};            ///< most resident memory
};

/// How a task failed, as reported by itself or by the process that started it.
struct LastWords {
    std::string why;
    std::string host{};
    std::uint64_t attempts{};  ///< so far
    std::uint64_t seconds_since_1970{};
};

/// Progress of a task; rewritten at most every ten seconds.
struct ShardProgress {
    std::string host;
    std::int64_t process{};
    std::uint64_t captures_done{}, captures{};
    std::uint64_t bytes_done{}, bytes{};  ///< of trace
    std::string capture{};                ///< the capture being decoded
};

[[nodiscard]] Status write_receipt(const JobFolder& job, std::uint32_t shard, const Receipt& receipt);
/// Errors: `not_found`: there is none; `bad_format`: it is damaged.
[[nodiscard]] Result<Receipt> read_receipt(const JobFolder& job, std::uint32_t shard);

/// The receipt of a finished shard. Errors: `not_found`: it was not run; `bad_format`: the answers belong to another
/// plan, or are damaged, with the reason. `thorough`: compares the hash of the answers file, not only its size.
[[nodiscard]] Result<Receipt> finished_shard(const JobFolder& job, const Shard& shard, bool thorough);

/// Whether a capture that a shard left out now matches the plan; it may have differed when the shard ran.
[[nodiscard]] bool is_as_planned(const Shard& shard, const NotDecoded& left_out);
/// Whether a capture that is missing from a finished shard may be decoded now.
[[nodiscard]] bool is_worth_running_again(const Shard& shard, const Receipt& receipt);

[[nodiscard]] Status write_last_words(const JobFolder& job, std::uint32_t shard, LastWords words);
[[nodiscard]] std::optional<LastWords> read_last_words(const JobFolder& job, std::uint32_t shard);
[[nodiscard]] Status write_progress(const JobFolder& job, std::uint32_t shard, const ShardProgress& progress);
[[nodiscard]] std::optional<ShardProgress> read_progress(const JobFolder& job, std::uint32_t shard);

/// The reason why a shard is not done, in a sentence: its last words; if it ended without any, its progress and the
/// last line of its log; or that it never ran.
[[nodiscard]] std::string why_missing(const JobFolder& job, const Shard& shard);

}  // namespace waymark::fleet
