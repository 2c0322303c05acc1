/// The plan of a fleet job: the captures, their division into shards, and the options of decoding. docs/fleet.md
/// describes the files.
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
    std::string name;        ///< path on the recorded machine
    std::string build_id{};  ///< hexadecimal; empty: none, or not known
    friend auto operator<=>(const RanFile&, const RanFile&) = default;
};

/// A capture in its state when the job was planned.
struct PlannedCapture {
    std::string path;             ///< absolute: a file or a folder
    std::string unit{};           ///< unit of its trace, as Answers::unit; empty: known only after decoding
    std::uint64_t trace_bytes{};  ///< bytes of trace
    std::uint64_t bytes{};        ///< size of all its files
    std::int64_t changed{};       ///< latest modification of its files: ns since 1970, by the clock of the file system
    std::string sample{};         ///< hash of names, sizes and sampled blocks of its files (survey.h)
    std::string machine{};        ///< recording machine; empty: not known
    bool needs_files{};           ///< its code is in the files that ran, not in the capture itself
    std::uint64_t recorded_ns{};  ///< time from its first record to its last; 0: not known
    bool timeline{};              ///< it is in the sample of timelines (answers::most_samples)
    std::vector<RanFile> ran{};   ///< sorted
};

/// The work of one task.
struct Shard {
    std::uint32_t number{};
    /// Hash of everything the answers depend on: captures (path, size, sample), options, version of Waymark.
    std::string identity{};
    double seconds{};  ///< estimated, on one core
    std::vector<PlannedCapture> captures{};

    [[nodiscard]] std::uint64_t trace_bytes() const;
};

/// A capture, or a part of a job, that is not in the sum, with the reason.
struct NotDecoded {
    std::string what;  ///< path of the capture
    std::string why;   ///< a sentence
    /// Whether trying again may succeed, because the reason is an error of reading. Otherwise the reason is in the
    /// capture itself.
    bool worth_retrying{};
    bool changed{};  ///< its files differed from the plan; trying again makes sense once they match
};

/// The head of a plan.
struct Manifest {
    std::string version;                 ///< of Waymark
    std::vector<std::string> options{};  ///< options of decoding: arguments of `waymark answers`, opaque to this layer
    std::uint64_t shards{}, captures{};  ///< numbers
    std::uint64_t trace_bytes{};         ///< of all captures
    double seconds{};                    ///< estimated, on one core
    std::vector<NotDecoded> unreadable{};  ///< inputs that planning could not read
};

/// Paths of the files of a job. All are in its folder, which can be moved.
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
    /// Path of an intermediate sum. `kind`: `answers` or `json`.
    [[nodiscard]] std::filesystem::path of_node(unsigned level, std::uint32_t node, const char* kind) const;
    [[nodiscard]] std::filesystem::path logs() const { return folder_ / "logs"; }
    [[nodiscard]] std::filesystem::path slurm() const { return folder_ / "slurm"; }

private:
    std::filesystem::path folder_;
};

/// The identity of a shard (Shard::identity).
[[nodiscard]] std::string identity_of(const Shard& shard, const Manifest& manifest);

/// Errors of all readers: `not_found`: the folder contains no plan; `bad_format`: it is damaged, with the line;
/// `unsupported`: written in a later version of the format.
[[nodiscard]] Result<Manifest> read_manifest(const JobFolder& job);
/// Calls `each` for the shards of the plan in order.
[[nodiscard]] Status read_shards(const JobFolder& job, const Manifest& manifest,
                                 const std::function<void(Shard&&)>& each);
/// `usage`: the plan has no such shard.
[[nodiscard]] Result<Shard> read_shard(const JobFolder& job, const Manifest& manifest, std::uint32_t number);

/// Appends shards to the plan that `manifest` describes, then replaces its head. If it is killed in between, the plan
/// is unchanged. Errors: `unreadable`: a file cannot be written.
[[nodiscard]] Status write_plan(const JobFolder& job, const Manifest& manifest, std::uint64_t shards_before,
                                const std::vector<Shard>& added);

}  // namespace waymark::fleet
