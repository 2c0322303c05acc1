/// Plans the shards of a job: `waymark fleet plan` and `add`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/image/program_file.h"

namespace waymark::fleet {

struct PlanRequest {
    std::vector<std::string> inputs;   ///< as for find_captures
    std::string version;               ///< of Waymark
    std::vector<std::string> options;  ///< Manifest::options
    bool bare{};                       ///< the options describe bare trace files
    image::FileSearch files;           ///< where to search for files that ran
    std::vector<std::string> given;    ///< files in the options that may have run
    unsigned cores = 1;                ///< number of cores on which the job will run
    double shard_seconds = 0;     ///< estimated seconds for each shard; 0: chosen by the amount of work and `cores`
    double bytes_per_second = 0;  ///< decoding rate on one core; 0: the figures of docs/fleet.md
    /// Receives the numbers of captures examined so far, and in total. May be null.
    std::function<void(std::uint64_t, std::uint64_t)> progress{};
};

/// A file that ran but was not found.
struct MissingFile {
    RanFile file;
    std::string why;              ///< a sentence; empty: it was not found anywhere
    std::uint64_t captures{};     ///< that ran it
    std::uint64_t trace_bytes{};  ///< of these
    bool has_code{};              ///< its code is needed for decoding, not just its names
};

/// Facts known before anything runs.
struct PlanSummary {
    std::uint64_t captures{}, shards{};       ///< of this call; for `add`, the new ones
    std::uint64_t trace_bytes{}, bytes{};     ///< trace; all files
    double seconds{};                         ///< on one core
    double elapsed{};                         ///< on `cores`, at best
    double longest{};                         ///< the longest shard
    std::uint64_t answers_bytes{};            ///< estimated size of all answers files
    std::optional<std::uint64_t> free_bytes;  ///< free space at the job's folder; nullopt: not known
    std::uint64_t repeated{};                 ///< number of inputs that named a capture again
    std::uint64_t known{};                    ///< for `add`: number of captures that the plan already has
    std::vector<std::pair<std::string, std::uint64_t>> units;  ///< captures by unit; empty name: not known yet
    std::uint64_t machines{}, builds{};                        ///< number of distinct ones, as far as known
    std::vector<MissingFile> missing;    ///< sorted by the amount of trace in their captures, largest first
    std::vector<NotDecoded> unreadable;  ///< inputs that are in no shard
    std::vector<std::string> barren;     ///< folders without any capture
};

/// Creates a job. Errors: `usage`: the folder has a plan, no capture was named, or captures have several units, whose
/// answers cannot be added; `not_found`, `unreadable`: inputs; `unreadable`: the folder cannot be written.
[[nodiscard]] Result<PlanSummary> plan_job(const JobFolder& job, const PlanRequest& request);

/// Adds captures to a job, in new shards: `options`, `version` and `bare` are the plan's. Errors: as above; `usage`: a
/// capture of the plan changed.
[[nodiscard]] Result<PlanSummary> add_to_job(const JobFolder& job, const PlanRequest& request);

/// Divides captures into shards of about `target` seconds, with captures that ran the same files together; the longest
/// come first. Numbers and identities are not set yet. `seconds`: cost of a capture. Deterministic.
[[nodiscard]] std::vector<Shard> make_shards(std::vector<PlannedCapture> captures, double target,
                                             const std::function<double(const PlannedCapture&)>& seconds);

}  // namespace waymark::fleet
