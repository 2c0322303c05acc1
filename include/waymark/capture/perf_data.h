/// perf.data, the container of Linux `perf record`, as far as it concerns trace (docs/spec/spe.md, section 5): the
/// events and their settings, the position of the trace bytes of each CPU or thread, and the threads that ran.
/// Independent of trace protocols: the words of AUXTRACE_INFO are kept unchanged.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture::perf {

/// Record types (section 5.2); others are counted and skipped.
enum class Type : std::uint32_t {
    mmap = 1,
    lost = 2,
    comm = 3,
    exit = 4,
    fork = 7,
    sample = 9,
    mmap2 = 10,
    aux = 11,
    itrace_start = 12,
    lost_samples = 13,
    context_switch = 14,
    context_switch_cpu_wide = 15,
    namespaces = 16,
    ksymbol = 17,
    bpf_event = 18,
    cgroup = 19,
    text_poke = 20,
    aux_output_hw_id = 21,
    header_attr = 64,
    header_build_id = 67,
    finished_round = 68,
    id_index = 69,
    auxtrace_info = 70,
    auxtrace = 71,
    auxtrace_error = 72,
    event_update = 78,
    time_conv = 79,
    header_feature = 80,
    compressed = 81,
    finished_init = 82,
    compressed2 = 83,
    // Types of simpleperf (docs/spec/perf-cs-etm.md, section 3.1).
    simpleperf_kernel_symbol = 32769,
    simpleperf_dso = 32770,
    simpleperf_symbol = 32771,
    simpleperf_split = 32772,
    simpleperf_split_end = 32773,
    simpleperf_event_id = 32774,
    simpleperf_callchain = 32775,
    simpleperf_unwinding_result = 32776,
    simpleperf_tracing_data = 32777,
    simpleperf_debug = 32778,
};
/// Text such as `AUXTRACE`; empty for types without a name in this layer.
[[nodiscard]] std::string_view name(Type type);

/// Bits of Attr::sample_type that decide which fields follow a record.
namespace sample {
inline constexpr std::uint64_t ip = 1, tid = 1U << 1, time = 1U << 2, addr = 1U << 3, read = 1U << 4,
                               callchain = 1U << 5, id = 1U << 6, cpu = 1U << 7, period = 1U << 8, stream_id = 1U << 9,
                               raw = 1U << 10, branch_stack = 1U << 11, identifier = 1U << 16;
}

/// How one event was recorded.
struct Attr {
    std::uint32_t type{};
    std::uint64_t config{}, sample_period{}, sample_type{}, read_format{}, flags{};
    std::uint64_t config1{}, config2{}, config3{}, config4{};
    std::uint64_t branch_sample_type{};  ///< the branches that stacks contain, and their fields
    std::uint32_t clock{};               ///< clock of times, if `clock_given`
    std::vector<std::uint64_t> ids{};
    std::string name{};  ///< if the file has one

    static constexpr std::uint32_t monotonic = 1;
    [[nodiscard]] bool clock_given() const { return (flags >> 25 & 1U) != 0; }
    [[nodiscard]] bool sample_id_all() const { return (flags >> 18 & 1U) != 0; }
    friend bool operator==(const Attr&, const Attr&) = default;
};

/// The fields after every record if sample_id_all is set, as far as present. A record that perf synthesised has 0 in
/// all of them: time 0, before everything, and no CPU.
struct SampleId {
    std::optional<std::uint32_t> pid{}, tid{}, cpu{};
    std::optional<std::uint64_t> time{};
    friend bool operator==(const SampleId&, const SampleId&) = default;
};

/// AUXTRACE_INFO: the type of trace unit, and words that only its protocol interprets.
struct AuxtraceInfo {
    static constexpr std::uint32_t cs_etm = 3, arm_spe = 4;
    std::uint32_t type{};
    std::vector<std::uint64_t> words{};
    friend bool operator==(const AuxtraceInfo&, const AuxtraceInfo&) = default;
};

/// Timer ticks ↔ nanoseconds of perf's clock (section 5.6).
struct TimeConversion {
    std::uint64_t shift{}, multiplier{}, zero{}, cycles{}, mask{~std::uint64_t{0}};
    bool short_counter{};  ///< cap_user_time_short: `cycles` and `mask` define how to extend a count

    [[nodiscard]] bool valid() const { return multiplier != 0 && shift < 64; }
    /// Precondition of both: `valid()`.
    [[nodiscard]] std::uint64_t to_ns(std::uint64_t ticks) const {
        if (short_counter) ticks = cycles + ((ticks - cycles) & mask);
        const std::uint64_t low = ticks & ((std::uint64_t{1} << shift) - 1);
        return zero + (ticks >> shift) * multiplier + static_cast<std::uint64_t>(Wide{low} * multiplier >> shift);
    }
    [[nodiscard]] std::uint64_t to_ticks(std::uint64_t ns) const;
    [[nodiscard]] double frequency_hz() const;
    friend bool operator==(const TimeConversion&, const TimeConversion&) = default;

private:
    __extension__ using Wide = unsigned __int128;
};

inline constexpr std::uint32_t nobody = 0xffffffff;  ///< no CPU, no thread

/// One AUXTRACE record: a piece of trace that perf copied from the ring.
struct Chunk {
    Offset record{};          ///< offset of the AUXTRACE record in the file
    std::uint64_t payload{};  ///< file offset of its bytes
    std::uint64_t bytes{};    ///< number of bytes in the file
    std::uint64_t missing{};  ///< announced in its header, but beyond the end of the file
    /// The file has `packed_bytes` at `payload`, which unpack (zstd) to `bytes`.
    bool packed{};
    std::uint64_t packed_bytes{};
    std::uint64_t ring{};  ///< position of the first byte in the AUX ring
    std::uint64_t reference{};
    std::uint32_t index{}, tid = nobody, cpu = nobody;
    friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// One AUX record: the kernel's description of a range of the AUX ring.
struct AuxRange {
    static constexpr std::uint64_t truncated = 1, overwrite = 2, partial = 4, collision = 8;
    std::uint64_t offset{}, bytes{}, flags{};
    SampleId id{};
    friend bool operator==(const AuxRange&, const AuxRange&) = default;
};

/// A mapping of executable (or other) memory.
struct Mapping {
    std::uint32_t pid{}, tid{};  ///< pid 0xffffffff: the kernel
    Address address{};
    std::uint64_t bytes{}, file_offset{};
    std::uint64_t time{};                 ///< 0: before everything
    std::uint32_t protection{}, flags{};  ///< MMAP2 only; protection 4: executable
    bool data{};                          ///< MMAP: not executable
    std::vector<std::uint8_t> build_id{};
    std::string file{};
    friend bool operator==(const Mapping&, const Mapping&) = default;
};

/// A change of a process or thread.
struct TaskEvent {
    enum class Kind : std::uint8_t { fork, exit, comm, exec };
    Kind kind{};
    std::uint32_t pid{}, tid{}, parent_pid{}, parent_tid{};
    std::uint64_t time{};
    std::string name{};  ///< comm and exec
    friend bool operator==(const TaskEvent&, const TaskEvent&) = default;
};

/// From `time` on, `tid` of `pid` runs on `cpu`; tid `nobody`: the thread is not known.
struct Switch {
    std::uint32_t cpu{}, pid = nobody, tid = nobody;
    std::uint64_t time{};
    friend bool operator==(const Switch&, const Switch&) = default;
};

/// A range of kernel code that is in no file.
struct KernelSymbol {
    Address address{};
    std::uint32_t bytes{};
    std::uint64_t time{};
    bool unregistered{};
    std::string name{};
    friend bool operator==(const KernelSymbol&, const KernelSymbol&) = default;
};

/// Kernel code that the kernel changed itself (TEXT_POKE).
struct TextPoke {
    Address address{};
    std::uint64_t time{};
    std::vector<std::uint8_t> before{}, after{};  ///< empty: there was, or is, no code
    friend bool operator==(const TextPoke&, const TextPoke&) = default;
};

/// A function of a BPF program as the kernel compiled it (feature 25).
struct BpfFunction {
    Address address{};
    std::vector<std::uint8_t> code{};
    std::string name{};  ///< name in its KSYMBOL record, or made from the program's name and tag
    friend bool operator==(const BpfFunction&, const BpfFunction&) = default;
};

struct BuildId {
    std::uint32_t pid{};
    std::vector<std::uint8_t> id{};
    std::string file{};
    friend bool operator==(const BuildId&, const BuildId&) = default;
};

/// AUX_OUTPUT_HW_ID: which trace source ID a CPU has.
struct HardwareId {
    std::uint64_t id{};
    SampleId where{};
    friend bool operator==(const HardwareId&, const HardwareId&) = default;
};

/// A sample with a branch stack: the thread, and the position of the entries (capture/branch_entry.h), the newest
/// first.
struct BranchSample {
    std::uint32_t pid = nobody, tid = nobody, cpu = nobody;
    std::optional<std::uint64_t> time{};
    std::uint64_t offset{};   ///< offset of the entries: in the file, or in PerfData::unpacked_branches
    std::uint32_t entries{};  ///< at least 1
    std::uint32_t event{};    ///< index in PerfData::attrs
    bool unpacked{};
    friend bool operator==(const BranchSample&, const BranchSample&) = default;
};

/// A range of invalid bytes in the file.
struct Loss {
    Offset first{}, end{};
    std::string message{};  ///< what was found, what was expected
    friend bool operator==(const Loss&, const Loss&) = default;
};

/// A perf.data file without its trace bytes and samples. Samples with branch stacks are stored as positions.
struct PerfData {
    bool pipe{};        ///< written by `perf record -o -`
    bool unfinished{};  ///< the recorder ended before it wrote the length of the data
    std::vector<Attr> attrs{};
    bool simpleperf{};              ///< written by Android's simpleperf
    bool index_without_count{};     ///< the AUXTRACE index has no count, as in files of older simpleperf
    bool indexed{};                 ///< it has an AUXTRACE index (feature 18)
    bool late_time_conversion{};    ///< TIME_CONV comes after AUXTRACE_INFO
    std::uint64_t split_records{};  ///< number of simpleperf records that are split into several SPLIT records
    bool branch_list{};             ///< it has simpleperf's branch lists instead of trace
    std::vector<std::uint8_t> branch_lists{};             ///< the file of branch lists in it
    std::map<std::string, std::uint64_t> code_offsets{};  ///< from simpleperf: offset of code in a module's memory
    std::map<std::string, std::string> meta_info{};       ///< of simpleperf
    std::string hostname{}, release{}, version{}, architecture{}, cpu_description{}, cpu_id{}, command_line{};
    std::optional<std::uint32_t> cpus_online{}, cpus_available{};
    std::map<std::uint32_t, std::string> pmus{};  ///< by type number: `arm_spe_0`
    std::optional<AuxtraceInfo> auxtrace_info{};
    std::optional<TimeConversion> time_conversion{};
    std::vector<Chunk> chunks{};  ///< in file order, like all members below
    std::vector<AuxRange> aux{};
    std::vector<Mapping> mappings{};
    std::vector<TaskEvent> tasks{};
    std::vector<Switch> switches{};
    std::vector<KernelSymbol> kernel_symbols{};
    std::vector<TextPoke> text_pokes{};
    std::vector<BpfFunction> bpf_functions{};
    std::vector<BuildId> build_ids{};
    std::vector<HardwareId> hardware_ids{};
    std::vector<BranchSample> branch_samples{};
    std::uint64_t empty_branch_samples{};           ///< samples whose branch stack has no entry
    std::vector<std::uint8_t> unpacked_branches{};  ///< entries of samples from compressed records
    std::uint64_t lost_records{};                   ///< sum of LOST and LOST_SAMPLES
    /// Number of records that name an event without an attribute. They count for the first event.
    std::uint64_t unknown_ids{};
    std::map<std::uint32_t, std::uint64_t>
        counts{};                ///< number of records by type, including those in compressed records
    std::vector<Loss> losses{};  ///< the first `max_losses`
    std::uint64_t loss_count{}, lost_bytes{};

    static constexpr std::size_t max_losses = 100;
    [[nodiscard]] std::uint64_t count(Type type) const {
        const auto found = counts.find(static_cast<std::uint32_t>(type));
        return found == counts.end() ? 0 : found->second;
    }
    /// Whether an event samples branch stacks.
    [[nodiscard]] bool has_branch_stacks() const;
    /// The CPU's MIDR_EL1 from the `cpuid` feature; 0 if there is none.
    [[nodiscard]] std::uint32_t midr() const;
};

/// True if the file begins as a perf.data file does, of either byte order.
[[nodiscard]] bool is_perf_data(Bytes first_bytes);

/// Receives the progress of reading, in bytes of the file; may be called often.
class Progress {
public:
    virtual ~Progress() = default;
    virtual void at(std::uint64_t bytes, std::uint64_t of) = 0;
};

/// Reads everything except trace bytes and samples. Memory grows with the number of processes, mappings, switches and
/// chunks, not with the trace. No length in the file is trusted: where the file's size or context contradicts it, a
/// `Loss` is added, and reading continues at the next place with records. Errors: `bad_format`: not a perf.data file,
/// or its header is invalid; `unsupported`: from a machine with the other byte order; `unreadable`.
[[nodiscard]] Result<PerfData> read_perf_data(const ByteFile& file, Progress* progress = nullptr);

/// The kind of contents, according to the file's description.
enum class Holds : std::uint8_t { cs_etm, other_trace, branch_stacks, nothing_known };
[[nodiscard]] Holds holds(const ByteFile& file);

/// The unit type of AUXTRACE_INFO (AuxtraceInfo::type), which is searched near the beginning; nullopt if there is none,
/// or the file cannot be read.
[[nodiscard]] std::optional<std::uint32_t> auxtrace_type(const ByteFile& file);

/// Consecutive trace bytes of a ring, which can be fed to a decoder without a break.
struct Stretch {
    std::uint64_t payload{};  ///< file offset
    std::uint64_t bytes{};    ///< without the padding that perf appends
    std::uint64_t ring{};
    std::size_t chunk{};  ///< index in PerfData::chunks
    bool follows{};       ///< follows the previous stretch directly
    friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// The trace of one CPU, or of one thread.
struct Stream {
    std::uint32_t cpu = nobody, tid = nobody, index{};
    bool overwrite{};  ///< a snapshot: its first bytes may be the middle of a packet
    std::vector<Stretch> stretches{};
    [[nodiscard]] std::uint64_t bytes() const;
    friend bool operator==(const Stream&, const Stream&) = default;
};

/// Chunks sorted into streams and joined (section 5.4), in the order of their first chunks.
[[nodiscard]] std::vector<Stream> streams(const PerfData& data);

/// Threads and mappings at any time.
class Tasks {
public:
    /// `data` is borrowed and must outlive this.
    explicit Tasks(const PerfData& data);
    ~Tasks();
    Tasks(Tasks&&) noexcept;

    struct Thread {
        std::uint32_t pid = nobody, tid = nobody;
        std::string_view name{};  ///< valid as long as the PerfData
    };
    /// The thread `tid` at `time`; its pid is `nobody` if no record names it.
    [[nodiscard]] Thread thread(std::uint32_t tid, std::uint64_t time) const;
    /// The thread that ran on `cpu` at `time`.
    [[nodiscard]] Thread running(std::uint32_t cpu, std::uint64_t time) const;
    /// The mapping of process `pid` (`nobody`: the kernel) that contained `address` at `time`; null if there was none.
    /// Fast for ascending times.
    [[nodiscard]] const Mapping* mapping(std::uint32_t pid, Address address, std::uint64_t time);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::capture::perf
