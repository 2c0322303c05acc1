/// A perf.data file during recording: the file and its records about processes, which are the same for every unit. The
/// recorder of the unit adds the trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/perf_part.h"
#include "waymark/capture/perf_writer.h"
#include "waymark/core/result.h"
#include "waymark/record/mapped_file.h"
#include "waymark/record/output_lock.h"
#include "waymark/record/ring.h"

namespace waymark::record {

/// The tracking event, which reports processes and mappings; its attribute is the last. `ids`: none is 0.
[[nodiscard]] capture::perf::Attr tracking_event(std::vector<std::uint64_t> ids);
/// Sets the sample flags and fields that the trace event and the tracking event have in common.
void like_tracking_event(capture::perf::Attr& attr);
/// Converts ticks of a counter with this frequency to nanoseconds of perf's clock. `zero`: the time at tick 0.
[[nodiscard]] capture::perf::TimeConversion conversion_of(std::uint64_t hz, std::uint64_t zero = 0);

class RecordedPerfFile {
public:
    /// Replaces an existing perf.data file, and no other file. Everything is written to the folder `PATH.part`, which
    /// is locked meanwhile, and moved to its place by `finish_with_truth`; without that call nothing remains, and an
    /// earlier file stays. Files of a killed recording in that folder are removed. Errors: `usage`: another recording
    /// writes there, or PATH is another kind of file; `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<RecordedPerfFile>> create(const std::filesystem::path& path,
                                                                          std::vector<capture::perf::Attr> attrs);
    ~RecordedPerfFile();
    RecordedPerfFile(const RecordedPerfFile&) = delete;
    RecordedPerfFile& operator=(const RecordedPerfFile&) = delete;

    [[nodiscard]] capture::perf::PerfWriter& writer() { return *writer_; }
    /// Whether another perf.data file was there before.
    [[nodiscard]] bool replaced() const { return replaced_; }
    /// The path, while recording, of a file that will be next to the perf.data file, with this suffix: `.truth.txt`.
    [[nodiscard]] std::filesystem::path beside(std::string_view suffix) const;
    /// An error about such a file, with the name that the file will have.
    [[nodiscard]] Error as_placed(Error error) const;

    /// Writes MMAP2 records for the executable pieces of a mapping of process `at.pid`, except those written since the
    /// file was mapped; `name` empty: no file.
    void mapped(const MapPart& part, std::string_view name, const capture::perf::PerfWriter::At& at);
    /// Process `pid` unmaps this. perf.data has no record for it, but the next mapping there counts as new.
    void unmapped(std::uint32_t pid, const UnmapPart& part);
    /// A child inherits the mappings of its parent.
    void forked(std::uint32_t parent, std::uint32_t child) { mapped_[child] = mapped_[parent]; }
    /// The features that describe machine and session.
    struct Machine {
        std::string arch;
        std::uint64_t midr{};
        std::uint32_t cpus{};
        std::map<std::uint32_t, std::string> pmus{};
        std::vector<std::string> command{};
        capture::perf::RecordedPart part{};
    };
    /// Ends the file: writes buffered records, then features, index and header. Errors: `unreadable`.
    [[nodiscard]] Status finish(const Machine& machine);

    /// Writes the truth next to the file, and moves all files to their places. Errors: `unreadable`.
    [[nodiscard]] Status finish_with_truth(std::string_view truth);

    /// Writes buffered records. Errors: `unreadable`: writing failed, now or before.
    [[nodiscard]] Status flush();
    /// Whether writing failed.
    [[nodiscard]] Status status() const;

private:
    class File;
    RecordedPerfFile(std::filesystem::path path, std::filesystem::path part, OutputLock lock,
                     std::unique_ptr<File> file, std::vector<capture::perf::Attr> attrs);

    std::filesystem::path path_, part_;
    OutputLock lock_;
    bool replaced_ = false;
    std::unique_ptr<File> file_;
    std::unique_ptr<capture::perf::PerfWriter> writer_;
    struct Mapped {
        MappedPiece piece;
        std::string file;
    };
    [[nodiscard]] Status place();
    static void forget(std::vector<Mapped>& known, std::uint64_t address, std::uint64_t bytes);
    std::map<std::uint32_t, std::vector<Mapped>> mapped_;  ///< by process: the contents of its MMAP2 records
    std::vector<capture::perf::BuildId> build_ids_;        ///< build IDs of the mapped files
};

/// The path `FILE.truth.txt`.
[[nodiscard]] std::filesystem::path perf_truth_file(const std::filesystem::path& file);

}  // namespace waymark::record
