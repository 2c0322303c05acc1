/// Sampled operations with the capture's information about each: CPU, thread, mapped file. From a perf.data file or the
/// raw bytes of a profiling buffer (docs/spec/spe.md, sections 4 and 5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/core/result.h"
#include "waymark/spe/record.h"

namespace waymark::analysis {

/// An opened capture. Movable; pointers into `data` stay valid.
struct SampleCapture {
    std::shared_ptr<const capture::ByteFile> file;
    std::unique_ptr<capture::perf::PerfData> data;  ///< never null
    capture::perf::SpeInfo info;
    std::vector<capture::perf::Stream> streams;
    std::vector<Error> damage;  ///< damage of a compressed file
    bool bare{};                ///< not perf.data: the bytes of one unit, without a description
    std::uint32_t midr{};       ///< if not 0, the MIDR_EL1 of every CPU, overriding the file

    /// MIDR_EL1 of a CPU; 0: not known.
    [[nodiscard]] std::uint32_t midr_of(std::uint32_t cpu) const;
    /// The events of profiling units.
    [[nodiscard]] std::vector<const capture::perf::Attr*> attrs() const;
    /// Fills `into` with trace of a stretch from its byte `from` on, and returns the number of bytes. Precondition:
    /// `from` is inside the stretch. `unreadable`: the file cannot be read, or became shorter.
    [[nodiscard]] Result<std::size_t> read(const capture::perf::Stretch& stretch, std::uint64_t from,
                                           std::span<std::uint8_t> into) const;
};

/// Opens a perf.data file; any other file is taken as the raw bytes of one unit. `midr` as SampleCapture::midr. Errors:
/// the errors of `open_byte_file`, `read_perf_data` and `spe_info`; `bad_format`: the file contains no trace of a unit.
[[nodiscard]] Result<SampleCapture> open_samples(const std::filesystem::path& path, std::uint32_t midr = 0,
                                                 capture::perf::Progress* progress = nullptr);
/// The same for a file or folder that is already open. `path`: for messages.
[[nodiscard]] Result<SampleCapture> open_samples(const std::filesystem::path& path, capture::perf::PerfFile file,
                                                 std::uint32_t midr = 0, capture::perf::Progress* progress = nullptr);

/// Facts that apply to a whole stream.
struct StreamFacts {
    std::uint32_t cpu{};  ///< `nobody` if the trace is of a thread
    std::uint32_t midr{};
};

/// Selected records of one stream that have a PC. Borrowed: valid during SampleSink::consume().
struct SampleBatch {
    const spe::RecordColumns& records;
    std::span<const std::uint16_t> rows;      ///< of `records`, ascending
    std::span<const std::uint32_t> mapping;   ///< by row: index in PerfData::mappings plus 1; 0: no known mapping
    std::span<const std::uint32_t> pid, tid;  ///< by row: `nobody` if not known; pid of the thread, not of the mapping
    StreamFacts stream;
};

/// Receives samples. A sink and its forks receive disjoint parts; joined, they have the same result as one sink that
/// received everything.
class SampleSink {
public:
    virtual ~SampleSink() = default;
    virtual void consume(const SampleBatch& batch) = 0;
    /// An empty sink for use in another thread, beside this one.
    [[nodiscard]] virtual std::unique_ptr<SampleSink> fork() const = 0;
    /// Joins a fork. The order of joins makes no difference.
    virtual void join(SampleSink& fork) = 0;
};

/// Whether data came from the cache of another core: by the Snooped event, or by the meaning of a data source code
/// (absent: none was recorded) on the core with this MIDR_EL1.
[[nodiscard]] bool from_another_core(std::uint64_t events, std::uint32_t midr, std::optional<std::uint16_t> source);

/// The selected samples; an empty member selects all.
struct Selection {
    std::vector<std::uint32_t> cpus, threads;
    std::vector<std::string> thread_names;
    /// Whether code at `pc` of a mapping (as in SampleBatch) is selected. Called once for each place and worker; never
    /// by two threads at once.
    std::function<bool(std::uint32_t mapping, std::uint64_t pc)> place{};
};

/// Totals of a stream.
struct StreamTotals {
    StreamFacts facts;
    std::uint32_t tid = capture::perf::nobody;
    spe::Totals totals;
    std::uint64_t selected{};                   ///< records given to sinks
    std::uint64_t no_pc{};                      ///< records that are not samples
    std::uint64_t missing_bytes{};              ///< bytes that headers announce beyond the end of the file
    std::uint64_t unread_bytes{};               ///< bytes that could not be read
    std::uint64_t timed{};                      ///< records without defects that have a timestamp
    std::uint64_t first_ticks{}, last_ticks{};  ///< the smallest and the largest timestamp among them; both 0: none
};

struct SampleTotals {
    std::vector<StreamTotals> streams{};  ///< as SampleCapture::streams
    std::uint64_t without_thread{};       ///< samples whose thread is not known
    std::uint64_t with_context{};         ///< samples that name their thread themselves
    std::uint64_t without_mapping{};      ///< samples whose PC is outside every known mapping
    std::uint64_t without_address{};      ///< samples of loads and stores without a data address
    std::uint64_t sve_without_address{};  ///< the part of `without_address` from SVE instructions
    std::vector<Error> errors{};          ///< of reading

    [[nodiscard]] std::uint64_t records() const;
    [[nodiscard]] std::uint64_t selected() const;
};

/// Decodes everything with `workers` forks of `sink`, which are joined to it at the end. The result does not depend on
/// `workers`. A stream is divided into parts of at least `part_bytes`, which begin where the kernel's writes do. If a
/// part turns out not to begin with a record, everything is decoded again, each stream as a whole. Memory: that of the
/// sinks, and for each worker 1 MB and the history of tasks.
[[nodiscard]] SampleTotals run_samples(const SampleCapture& capture, const Selection& selection, SampleSink& sink,
                                       unsigned workers, capture::perf::Progress* progress = nullptr,
                                       std::uint64_t part_bytes = 4 << 20);

}  // namespace waymark::analysis
