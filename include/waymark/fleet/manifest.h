/// The plan of a fleet job: which captures are decoded, in which shards and with which options. docs/fleet.md describes
/// the files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::fleet {

/// A program or library that ran in a capture.
struct RanFile {
    std::string name;        ///< as the recorded machine called it
    std::string build_id{};  ///< hexadecimal; empty: none, or not known
    friend auto operator<=>(const RanFile&, const RanFile&) = default;
};

/// A capture as it was when the job was planned.
struct PlannedCapture {
    std::string path;             ///< absolute: a file or a folder
    std::string unit{};           ///< of its trace, as Answers::unit; empty: known only after decoding
    std::uint64_t trace_bytes{};  ///< bytes of trace
    std::uint64_t bytes{};        ///< of all its files
    std::int64_t changed{};       ///< latest change of its files: ns since 1970, by the clock of the file system
    std::string sample{};         ///< hash of names, sizes and sampled blocks of its files (survey.h)
    std::string machine{};        ///< that recorded it; empty: not known
    bool needs_files{};           ///< its code is in the files that ran, not in the capture itself
    std::uint64_t recorded_ns{};  ///< time from its first record to its last; 0: not known
    bool timeline{};              ///< it is in the sample of timelines (answers::most_samples)
    std::vector<RanFile> ran{};   ///< sorted
};

/// What one task decodes.
struct Shard {
    std::uint32_t number{};
    /// Hash of all that the answers depend on: captures (path, size, sample), options, version of Waymark.
    std::string identity{};
    double seconds{};  ///< estimated, on one core
    std::vector<PlannedCapture> captures{};

    [[nodiscard]] std::uint64_t trace_bytes() const;
};

/// A capture, or a part of a job, that is not in the sum, and why.
struct NotDecoded {
    std::string what;  ///< path of the capture
    std::string why;   ///< a sentence
    /// The reason may be gone next time: an error of reading. Otherwise it is in the capture itself.
    bool worth_retrying{};
    bool changed{};  ///< it was not the file of the plan; worth a try once it is again
};

/// The head of a plan.
struct Manifest {
    std::string version;                   ///< of Waymark
    std::vector<std::string> options{};    ///< of decoding: arguments of `waymark answers`, opaque to this layer
    std::uint64_t shards{}, captures{};    ///< numbers
    std::uint64_t trace_bytes{};           ///< of all captures
    double seconds{};                      ///< estimated, on one core
    std::vector<NotDecoded> unreadable{};  ///< inputs that planning could not read
};

/// Where the files of a job are. All are in its folder, which can be moved.
class JobFolder {
public:
    explicit JobFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

    [[nodiscard]] const std::filesystem::path& path() const { return folder_; }
    [[nodiscard]] std::filesystem::path manifest() const { return folder_ / "manifest.json"; }
    [[nodiscard]] std::filesystem::path shards() const { return folder_ / "shards.jsonl"; }
    [[nodiscard]] std::filesystem::path result() const { return folder_ / "result.answers"; }
    [[nodiscard]] std::filesystem::path report() const { return folder_ / "report.txt"; }
    /// `kind`: `answers`, `json` (the receipt), `failed` (last words), `progress`.
    [[nodiscard]] std::filesystem::path of_shard(std::uint32_t shard, const char* kind) const;
    [[nodiscard]] std::filesystem::path log_of_shard(std::uint32_t shard) const;
    /// Intermediate sums. `kind`: `answers` or `json`.
    [[nodiscard]] std::filesystem::path of_node(unsigned level, std::uint32_t node, const char* kind) const;
    [[nodiscard]] std::filesystem::path logs() const { return folder_ / "logs"; }
    [[nodiscard]] std::filesystem::path slurm() const { return folder_ / "slurm"; }

private:
    std::filesystem::path folder_;
};

/// The identity of a shard (Shard::identity).
[[nodiscard]] std::string identity_of(const Shard& shard, const Manifest& manifest);

/// Errors of all readers: `not_found`: the folder contains no plan; `bad_format`: it is damaged, with the line;
/// `unsupported`: of a later version of the format.
[[nodiscard]] Result<Manifest> read_manifest(const JobFolder& job);
/// `each` takes the shards of the plan in order.
[[nodiscard]] Status read_shards(const JobFolder& job, const Manifest& manifest,
                                 const std::function<void(Shard&&)>& each);
/// `usage`: the plan has no such shard.
[[nodiscard]] Result<Shard> read_shard(const JobFolder& job, const Manifest& manifest, std::uint32_t number);

/// Appends shards to the plan that `manifest` describes, then replaces its head. Killed in between, it leaves
/// the plan as it was. Errors: `unreadable`: a file cannot be written.
[[nodiscard]] Status write_plan(const JobFolder& job, const Manifest& manifest, std::uint64_t shards_before,
                                const std::vector<Shard>& added);

}  // namespace waymark::fleet
