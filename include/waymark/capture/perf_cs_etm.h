/// perf.data files with CoreSight trace as captures (docs/spec/perf-cs-etm.md): the trace units (AUXTRACE_INFO), the
/// trace bytes of each unit, and the mappings of each process over time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/perf_data.h"
#include "waymark/core/result.h"

namespace waymark::capture::perf {

/// One CPU's trace unit (section 1.3).
struct CsUnit {
    enum class Kind : std::uint8_t { etmv3, ptm, etmv4, ete } kind{};
    std::uint32_t cpu{};
    std::vector<Register> registers{};         ///< as in the file, without the trace ID
    std::uint8_t trace_id{};                   ///< as in the metadata: only used without AUX_OUTPUT_HW_ID
    std::optional<std::uint64_t> ts_source{};  ///< the clock of its timestamps: 1 is the kernel's own counter
    bool wrong_magic{};                        ///< the block has ETE's magic, but TRCDEVARCH is that of an ETMv4
    friend bool operator==(const CsUnit&, const CsUnit&) = default;
};

/// Text such as `PTM1.1`, `ETM4.2`, `ETE`: as in Source::type.
[[nodiscard]] std::string source_type(const CsUnit& unit);

struct CsInfo {
    static constexpr std::uint64_t newest_version = 2;
    std::uint64_t version{};
    std::uint32_t pmu_type{};
    bool snapshot{};
    std::vector<CsUnit> units{};          ///< in file order
    std::vector<std::string> problems{};  ///< sentences: what was found, what was expected
    friend bool operator==(const CsInfo&, const CsInfo&) = default;

    [[nodiscard]] const CsUnit* unit(std::uint32_t cpu) const;
};

/// Reads every version; unknown versions are read like the newest known one. Damaged blocks are omitted and reported as
/// a problem. Errors: `unsupported`: trace of another kind of unit; `bad_format`: there is no header.
[[nodiscard]] Result<CsInfo> cs_info(const AuxtraceInfo& info);

/// AUX_OUTPUT_HW_ID (section 1.5).
struct CsHardwareId {
    std::uint8_t trace_id{};
    unsigned major{}, minor{};
    std::optional<std::uint32_t> sink{};
};
[[nodiscard]] CsHardwareId cs_hardware_id(std::uint64_t id);

/// The range of an AUX record, with the pieces of AUXTRACE records that contain it (section 1.4).
struct CsRange {
    std::size_t aux{};  ///< index in PerfData::aux; `no_aux`: a chunk without an AUX record
    std::vector<BufferPart>
        parts{};              ///< all parts except the first follow directly, unless bytes between them are missing
    bool raw{};               ///< bytes of one unit; otherwise formatter frames
    std::uint64_t missing{};  ///< number of bytes that are in no chunk
    std::uint64_t again{};    ///< number of bytes that an earlier range already contained
    std::optional<std::uint32_t> cpu{};  ///< from the AUX record's trailer
    static constexpr std::size_t no_aux = ~std::size_t{0};
};
/// The data of one AUX ring: of a CPU, or of a thread (then cpu is `nobody`).
struct CsRing {
    std::uint32_t cpu = nobody, tid = nobody;
    std::vector<CsRange> ranges{};    ///< in file order
    std::uint64_t chunk_bytes{};      ///< bytes in its AUXTRACE records
    std::uint64_t uncovered_bytes{};  ///< those in no AUX record's range, although there are AUX records
    bool wrapped{};                   ///< it is a snapshot, and older trace was or may have been overwritten
    std::uint64_t overwritten{};      ///< bytes that the ring held once; the trace buffer may have lost others
};
struct CsRings {
    std::vector<CsRing> rings{};
    bool without_aux{};  ///< there are no AUX records: a range consists of adjacent chunks
    std::uint64_t unplaced_ranges{}, unplaced_bytes{};  ///< AUX records of rings without any chunk
    std::vector<std::uint32_t> unplaced_cpus{};
};
[[nodiscard]] CsRings cs_rings(const PerfData& data);

/// The threads that ran, and the memory of each. `kernel_timestamps`: the trace has timestamps, and they use the
/// kernel's clock. `modules`: output.
[[nodiscard]] std::shared_ptr<const AddressSpaces> address_spaces(std::shared_ptr<const PerfData> data,
                                                                  std::optional<bool> context_in_vmid,
                                                                  bool kernel_timestamps, ModuleMap& modules);

/// The error if a file has a cs_etm event but no AUXTRACE_INFO, as after perf inject; empty otherwise.
[[nodiscard]] std::vector<Peculiarity> without_cs_trace(const PerfData& data);

/// The file as a capture: a source for each CPU (`cpu3`), a buffer for each AUX ring (`aux_cpu3`, or `aux_thread_123`;
/// if a ring has both kinds, raw trace has a separate buffer). `file` stays open as long as the capture. Errors: the
/// errors of `cs_info`.
[[nodiscard]] Result<Capture> cs_etm_capture(const std::filesystem::path& path, std::shared_ptr<const ByteFile> file,
                                             PerfData data);

}  // namespace waymark::capture::perf
