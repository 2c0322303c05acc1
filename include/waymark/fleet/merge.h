/// The answers of all shards → one answers file, byte for byte the same whatever order and tree it is made in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/spread.h"

namespace waymark::fleet {

/// How many files one task merges: tasks of a level read this many, so 2,000 shards take 42 and then one.
inline constexpr unsigned merge_fan_in = 48;

struct MissingShard {
    std::uint32_t number{};
    std::uint64_t captures{};
    std::string why;  ///< its last words
};

struct MergeOutcome {
    std::uint64_t shards{}, merged{};       ///< of the plan; that are in the result
    std::uint64_t captures{};               ///< in the result
    std::uint64_t answers_bytes{};          ///< size of the result; 0: none was written, for no shard is done
    std::vector<MissingShard> missing;      ///< shards that are not done
    std::vector<NotDecoded> not_decoded;    ///< captures of merged shards, and inputs that planning could not read
    std::vector<NotDecoded> cut;            ///< captures of merged shards that were decoded as far as they can be read
    std::uint64_t machines{}, builds{};     ///< different ones behind the result, as far as known
    std::uint64_t recorded_ns{};            ///< total recorded time of the captures whose recorded time is known
    std::uint64_t timed_captures{};         ///< number of these captures
    std::vector<ProgramSpread> spread;      ///< of merged captures
    std::uint64_t intermediate_files{};     ///< sums of earlier levels that were used instead of shards
    std::vector<std::string> ignored;       ///< intermediate sums that were not used, with the reason
    double seconds{}, processor_seconds{};  ///< of work of all merged shards
    std::uint64_t memory_bytes{};           ///< the most that a shard's task took

    [[nodiscard]] bool complete() const {
        return merged == shards && missing.empty() && not_decoded.empty() && cut.empty();
    }
};

/// The recorded time, in words: `12.5 hours`; empty: it is not known of any capture.
[[nodiscard]] std::string recorded_text(const MergeOutcome& outcome);

/// Merges what is done into `output` (empty: JobFolder::result), with a warning in its health if anything is missing.
/// Checks each answers file against its receipt, and each receipt against the plan. Errors: `usage`: the answers must
/// not be added, because shards are of several units, or programs of one name and without build IDs differ;
/// `unreadable`: the output cannot be written.
[[nodiscard]] Result<MergeOutcome> merge_job(const JobFolder& job, const std::string& output);

/// How many levels of intermediate sums a job takes before the last merge: 0 up to `merge_fan_in` shards.
[[nodiscard]] unsigned merge_levels(std::uint64_t shards);
/// How many sums level `level`, from 1 up, has.
[[nodiscard]] std::uint32_t nodes_of_level(std::uint64_t shards, unsigned level);

/// Merges shards (level 1) or sums of the level below into one intermediate sum, in `merged/`. merge_job uses it if it
/// is still what the shards give; it saves time and is never needed. Errors: as merge_job; `usage`: no such sum.
[[nodiscard]] Status merge_node(const JobFolder& job, unsigned level, std::uint32_t node);

}  // namespace waymark::fleet
