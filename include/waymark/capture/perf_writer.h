/// Writes perf.data files for `perf script` and `read_perf_data` (docs/spec/spe.md, section 5).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/types.h"

namespace waymark::capture::perf {

/// Numbers of the features perf may put after the data.
enum class Feature : std::uint8_t {
    build_id = 2,
    hostname,
    os_release,
    version,
    arch,
    cpus,
    cpu_description,
    cpu_id,
    command_line = 11,
    event_description,
    numa_topology = 14,
    pmu_mappings = 16,
    auxtrace_index = 18,
};

/// Writes the bytes of a file in order: construct with all attributes, then add records, then call finish(). Trace of
/// any length is passed on; only the index is kept in memory.
class PerfWriter {
public:
    enum class Form : std::uint8_t {
        file,  ///< finish() returns the bytes that replace those at the front
        pipe,  ///< attributes and features are records; no byte has to be replaced
    };

    /// `out` is borrowed and must outlive the writer. Attributes have ids that are distinct and not 0.
    PerfWriter(ByteSink& out, std::vector<Attr> attrs, Form form = Form::file);

    /// The trailer of kernel records. Time, CPU and tid are 0, as in records that perf synthesises.
    struct At {
        std::uint32_t pid{}, tid{}, cpu{};
        std::uint64_t time{};
        std::size_t attr{};  ///< index of the attribute whose identifier and trailer are used
    };

    void time_conversion(const TimeConversion& t);
    void auxtrace_info(const AuxtraceInfo& info);
    void mapping(const Mapping& m, const At& at);     ///< MMAP2, unless it is the kernel's: MMAP
    void task(const TaskEvent& event, const At& at);  ///< COMM, FORK, EXIT
    void switch_to(std::uint32_t pid, std::uint32_t tid,
                   const At& at);           ///< SWITCH_CPU_WIDE: the thread in `at` stops, pid/tid starts
    void switched(bool out, const At& at);  ///< SWITCH
    void itrace_start(std::uint32_t pid, std::uint32_t tid, const At& at);
    void kernel_symbol(const KernelSymbol& symbol, const At& at);
    void text_poke(const TextPoke& poke, const At& at);
    void build_id(const BuildId& id);
    void hardware_id(std::uint64_t id, const At& at);
    void lost(std::uint64_t id, std::uint64_t count, const At& at);
    void aux(const AuxRange& range, const At& at);
    /// `chunk` without places in the file; bytes are padded to a multiple of 8 as perf does.
    void auxtrace(const Chunk& chunk, Bytes trace);
    void finished_round();
    /// Any record; `body` follows the header. With `at`, a trailer follows.
    void record(Type type, std::uint16_t misc, Bytes body, const At* at = nullptr);

    /// Adds a feature. It is written by finish(), or at once into a pipe.
    void feature(Feature feature, std::vector<std::uint8_t> bytes);
    void feature_text(Feature feature, std::string_view text);
    void pmus(const std::map<std::uint32_t, std::string>& pmus);
    void cpus(std::uint32_t online, std::uint32_t available);
    void command_line(std::span<const std::string> words);
    /// Build IDs of mapped program files, not of the kernel; none: no feature. Their pid is `nobody`.
    void build_ids(std::span<const BuildId> ids);

    /// Before finish(), in a file: replaces an attribute whose values are known only at the end. Its ids and the size
    /// of the attributes stay the same.
    void change_attr(std::size_t attr, const Attr& to);

    /// Ends the data and writes the features. `index`: with an AUXTRACE index. Returns the bytes that the caller has to
    /// write over the front of the file; empty for a pipe.
    [[nodiscard]] std::vector<std::uint8_t> finish(bool index = true);

    /// Bytes written so far.
    [[nodiscard]] std::uint64_t size() const { return size_; }

private:
    void write(Bytes bytes);
    /// Header, ids and attributes.
    [[nodiscard]] std::vector<std::uint8_t> front(std::uint64_t data_bytes);
    [[nodiscard]] std::uint32_t attrs_bytes() const;

    ByteSink& out_;
    std::vector<Attr> attrs_;
    Form form_;
    std::uint64_t size_ = 0, data_at_ = 0;
    std::uint32_t least_attrs_bytes_ = 128;
    std::vector<std::uint64_t> index_;  // file offsets of AUXTRACE records
    std::map<std::uint8_t, std::vector<std::uint8_t>> features_;
};

}  // namespace waymark::capture::perf
