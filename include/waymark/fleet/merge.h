/// Merges the answers of all shards into one answers file, byte for byte the same for any order and tree of merging.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/fleet/spread.h"

namespace waymark::fleet {

/// Number of files that one task merges; so 2,000 shards take 42 tasks and then one.
inline constexpr unsigned merge_fan_in = 48;

struct MissingShard {
    std::uint32_t number{};
    std::uint64_t captures{};
    std::string why;  ///< its last words
};

struct MergeOutcome {
    std::uint64_t shards{}, merged{};       ///< shards in the plan; shards in the result
    std::uint64_t captures{};               ///< in the result
    std::uint64_t answers_bytes{};          ///< size of the result; 0: none was written, since no shard is done
    std::vector<MissingShard> missing;      ///< shards that are not done
    std::vector<NotDecoded> not_decoded;    ///< captures of merged shards, and inputs that planning could not read
    std::vector<NotDecoded> cut;            ///< captures of merged shards that were decoded as far as they can be read
    std::uint64_t machines{}, builds{};     ///< number of distinct machines and builds in the result, as far as known
    std::uint64_t recorded_ns{};            ///< total recorded time of the captures whose recorded time is known
    std::uint64_t timed_captures{};         ///< number of these captures
    std::vector<ProgramSpread> spread;      ///< of merged captures
    std::uint64_t intermediate_files{};     ///< sums of earlier levels that were used instead of shards
    std::vector<std::string> ignored;       ///< intermediate sums that were not used, with the reason
    double seconds{}, processor_seconds{};  ///< total wall and CPU time of the merged shards
    std::uint64_t memory_bytes{};           ///< maximum memory of a shard's task

    [[nodiscard]] bool complete() const {
        return merged == shards && missing.empty() && not_decoded.empty() && cut.empty();
    }
};

/// The recorded time as text: `12.5 hours`; empty if it is not known for any capture.
[[nodiscard]] std::string recorded_text(const MergeOutcome& outcome);

/// Merges finished shards into `output` (empty: JobFolder::result), with a warning in its health if anything is
/// missing. Checks each answers file against its receipt, and each receipt against the plan. Errors: `usage`: the
/// answers must not be added, because shards have several units, or programs with one name and without build IDs
/// differ; `unreadable`: the output cannot be written.
[[nodiscard]] Result<MergeOutcome> merge_job(const JobFolder& job, const std::string& output);

/// Number of levels of intermediate sums before the last merge: 0 up to `merge_fan_in` shards.
[[nodiscard]] unsigned merge_levels(std::uint64_t shards);
/// Number of sums in level `level`, which counts from 1.
[[nodiscard]] std::uint32_t nodes_of_level(std::uint64_t shards, unsigned level);

/// Merges shards (level 1) or sums of the level below into one intermediate sum, in `merged/`. merge_job uses it if it
/// still matches the shards; it saves time and is optional. Errors: as merge_job; `usage`: no such sum.
[[nodiscard]] Status merge_node(const JobFolder& job, unsigned level, std::uint32_t node);

}  // namespace waymark::fleet
