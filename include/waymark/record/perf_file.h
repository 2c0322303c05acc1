/// A perf.data file while it is recorded: the file itself, and what the kernel and perf say in it of processes, the
/// same for every unit. Trace is for the unit's own recorder to add.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/perf_writer.h"
#include "waymark/core/result.h"
#include "waymark/record/mapped_file.h"
#include "waymark/record/ring.h"

namespace waymark::record {

/// Of perf's events, the one that brings what happens to processes; the attribute at the end. `ids`: none is 0.
[[nodiscard]] capture::perf::Attr tracking_event(std::vector<std::uint64_t> ids);
/// Flags and fields of the samples that the event with the trace has like the tracking event.
void like_tracking_event(capture::perf::Attr& attr);
/// Nanoseconds of perf's clock from the ticks of a counter with this frequency. `zero`: the time at tick 0.
[[nodiscard]] capture::perf::TimeConversion conversion_of(std::uint64_t hz, std::uint64_t zero = 0);

class RecordedPerfFile {
public:
    /// Replaces a perf.data file that is there, and nothing else.
    /// Errors: `usage`: something else is there, or another recording writes there; `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<RecordedPerfFile>> create(const std::filesystem::path& path,
                                                                          std::vector<capture::perf::Attr> attrs);
    ~RecordedPerfFile();
    RecordedPerfFile(const RecordedPerfFile&) = delete;
    RecordedPerfFile& operator=(const RecordedPerfFile&) = delete;

    [[nodiscard]] capture::perf::PerfWriter& writer() { return *writer_; }

    /// MMAP2 records for the executable pieces of a mapping of process `at.pid`, but for those it has had since the
    /// file was mapped; `name` empty: of no file.
    void mapped(const MapPart& part, std::string_view name, const capture::perf::PerfWriter::At& at);
    /// Process `pid` unmaps this, which perf.data has no record for; what is mapped there next is new.
    void unmapped(std::uint32_t pid, const UnmapPart& part);
    /// A child has what its parent has mapped.
    void forked(std::uint32_t parent, std::uint32_t child) { mapped_[child] = mapped_[parent]; }
    /// What perf says of machine and session beside the records.
    struct Machine {
        std::string arch;
        std::uint64_t midr{};
        std::uint32_t cpus{};
        std::map<std::uint32_t, std::string> pmus{};
        std::vector<std::string> command{};
    };
    /// The end: what is in memory is written, then features, index and header. Errors: `unreadable`.
    [[nodiscard]] Status finish(const Machine& machine);

    /// Writes out what is in memory. Errors: `unreadable`: something could not be written, now or before.
    [[nodiscard]] Status flush();
    /// Whether something could not be written.
    [[nodiscard]] Status status() const;

private:
    class File;
    RecordedPerfFile(std::filesystem::path path, std::unique_ptr<File> file, std::vector<capture::perf::Attr> attrs);

    std::filesystem::path path_;
    std::unique_ptr<File> file_;
    std::unique_ptr<capture::perf::PerfWriter> writer_;
    struct Mapped {
        MappedPiece piece;
        std::string file;
    };
    static void forget(std::vector<Mapped>& known, std::uint64_t address, std::uint64_t bytes);
    std::map<std::uint32_t, std::vector<Mapped>> mapped_;  ///< by process: what its MMAP2 records say
    std::vector<capture::perf::BuildId> build_ids_;        ///< of the files that were mapped
};

/// `FILE.truth.txt`.
[[nodiscard]] std::filesystem::path perf_truth_file(const std::filesystem::path& file);

}  // namespace waymark::record
