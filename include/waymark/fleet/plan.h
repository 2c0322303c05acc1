/// Captures → shards: what `waymark fleet plan` and `add` do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/fleet/manifest.h"
#include "waymark/image/program_file.h"

namespace waymark::fleet {

struct PlanRequest {
    std::vector<std::string> inputs;   ///< as find_captures takes them
    std::string version;               ///< of Waymark
    std::vector<std::string> options;  ///< Manifest::options
    bool bare{};                       ///< the options say what bare trace files contain
    image::FileSearch files;           ///< where files that ran are looked for
    std::vector<std::string> given;    ///< files of the options that may be those that ran
    unsigned cores = 1;                ///< on which the job will run
    double shard_seconds = 0;          ///< estimated seconds of a shard; 0: chosen by the amount of work and `cores`
    double bytes_per_second = 0;       ///< of trace, on one core; 0: the figures of docs/fleet.md
    /// Takes the number of captures that were looked at, and of all. May be null.
    std::function<void(std::uint64_t, std::uint64_t)> progress{};
};

/// A file that ran and was not found.
struct MissingFile {
    RanFile file;
    std::string why;              ///< a sentence; empty: nowhere
    std::uint64_t captures{};     ///< that ran it
    std::uint64_t trace_bytes{};  ///< of these
    bool has_code{};              ///< its code is needed for decoding, not only its names
};

/// What is known before anything runs.
struct PlanSummary {
    std::uint64_t captures{}, shards{};                        ///< of this call: of `add`, the new ones
    std::uint64_t trace_bytes{}, bytes{};                      ///< trace; all files
    double seconds{};                                          ///< on one core
    double elapsed{};                                          ///< on `cores`, at best
    double longest{};                                          ///< the longest shard
    std::uint64_t answers_bytes{};                             ///< estimated size of all answers files
    std::uint64_t free_bytes{};                                ///< where the job's folder is
    std::uint64_t repeated{};                                  ///< inputs that named a capture again
    std::uint64_t known{};                                     ///< of `add`: captures that the plan has already
    std::vector<std::pair<std::string, std::uint64_t>> units;  ///< captures by unit; empty name: not known yet
    std::uint64_t machines{}, builds{};                        ///< different ones, as far as known
    std::vector<MissingFile> missing;                          ///< the file whose captures have most trace first
    std::vector<NotDecoded> unreadable;                        ///< inputs that are in no shard
    std::vector<std::string> barren;                           ///< folders without any capture
};

/// Makes a job. Errors: `usage`: the folder has a plan, no capture was named, or captures are of several units, whose
/// answers do not add up; `not_found`, `unreadable`: inputs; `unreadable`: the folder cannot be written.
[[nodiscard]] Result<PlanSummary> plan_job(const JobFolder& job, const PlanRequest& request);

/// Adds captures to a job, in shards of their own: `options`, `version` and `bare` are the plan's. Errors: as
/// above; `usage`: a capture of the plan changed.
[[nodiscard]] Result<PlanSummary> add_to_job(const JobFolder& job, const PlanRequest& request);

/// Captures in shards of about `target` seconds, in which those that ran the same files come together; the longest
/// first. Numbers, identities: none yet. `seconds`: of a capture. Deterministic.
[[nodiscard]] std::vector<Shard> make_shards(std::vector<PlannedCapture> captures, double target,
                                             const std::function<double(const PlannedCapture&)>& seconds);

}  // namespace waymark::fleet
