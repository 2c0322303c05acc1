/// The description of CoreSight trace units in perf.data, for writers (docs/spec/spe.md, section 5.7): the event's
/// config word, and the words of AUXTRACE_INFO. Registers are identified by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/core/register_value.h"
#include "waymark/core/result.h"

namespace waymark::capture::perf {

/// Terms of a `cs_etm` event. Each has a bit in the event's config word, and sets other bits in the unit's registers.
struct CsEtmTerms {
    bool branch_broadcast{}, cycle_accurate{}, context_id{}, timestamps{}, return_stack{};
    bool context_id2{};  ///< the thread in the VMID, for a kernel at EL2
    /// Trace in bursts, with the stored configuration `autofdo`: `window` cycles out of every `window * period`. 0:
    /// everything.
    std::uint64_t window{}, period{};

    /// attr.config and attr.config2.
    [[nodiscard]] std::uint64_t config() const;
    [[nodiscard]] std::uint64_t config2() const;
    /// TRCCONFIGR as perf writes it: only these bits, so that bit 0, which reads as 1, is 0.
    [[nodiscard]] std::uint64_t trcconfigr() const;
    /// The bits of TRCCONFIGR that no term sets; they must have their reset values.
    [[nodiscard]] static std::uint64_t other_trcconfigr_bits();
    /// The event on the command line: `cs_etm/contextid,timestamp/u`. perf has no terms for window and period, which
    /// are parameters of the configuration; here they are appended to its name.
    [[nodiscard]] std::string event() const;
};

/// A burst of trace: the unit traces for `window` cycles, once in `period` times that time.
struct Strobing {
    std::string configuration;         ///< such as `autofdo`; empty: its name is not known
    std::uint64_t window{}, period{};  ///< 0: not known
    friend bool operator==(const Strobing&, const Strobing&) = default;
};
/// How a file's event traced, or may have traced, in bursts (docs/spec/perf-cs-etm.md, section 1.2); nullopt: it traced
/// everything.
[[nodiscard]] std::optional<Strobing> strobing_of(const PerfData& data, std::uint32_t pmu_type);

/// The first word of the block of a PTM or ETMv3 unit in AUXTRACE_INFO.
inline constexpr std::uint64_t etmv3_magic = 0x3030303030303030, etmv4_magic = 0x4040404040404040,
                               ete_magic = 0x5050505050505050;

/// The layout of such a block.
struct CsEtmBlock {
    std::uint64_t magic{};
    std::span<const std::string_view> registers;  ///< in their order
    std::size_t version_0{};        ///< number of registers in a block of version 0; 0: that version does not exist
    std::string_view event_word{};  ///< the register whose position contains the event's config word
};
/// ETE, ETMv4, and PTM with ETMv3: each has registers that the next one does not have.
[[nodiscard]] std::span<const CsEtmBlock> cs_etm_blocks();
/// The first layout for which all registers exist, except TS_SOURCE and TRCAUTHSTATUS, which units of snapshots do not
/// have; null if there is none.
[[nodiscard]] const CsEtmBlock* cs_etm_block_for(const std::vector<RegisterValue>& registers);

struct CsEtmUnit {
    std::uint32_t cpu{};
    std::vector<RegisterValue> registers;
};

/// AUXTRACE_INFO with a block for each unit, in ascending order of their CPUs. `version`: 0, which ETE does not have,
/// 1, or 2, which perf reads from 6.3 on and which has TS_SOURCE. Errors: `usage`: a unit has no layout in that
/// version.
[[nodiscard]] Result<AuxtraceInfo> cs_etm_info(unsigned version, std::uint32_t pmu_type, bool snapshot,
                                               const CsEtmTerms& terms, std::span<const CsEtmUnit> units);

/// AUX_OUTPUT_HW_ID of a trace source ID that is unique in the system (minor version 0).
[[nodiscard]] constexpr std::uint64_t cs_etm_hardware_id(std::uint8_t trace_id) { return trace_id; }
/// The same for an ID that is unique in its sink (minor version 1).
[[nodiscard]] constexpr std::uint64_t cs_etm_hardware_id(std::uint8_t trace_id, std::uint32_t sink) {
    return std::uint64_t{1} << 56 | std::uint64_t{sink} << 8 | trace_id;
}

/// The trace ID that Linux assigns to the unit of a CPU, as long as there are IDs of this form.
inline constexpr std::uint32_t most_cs_etm_cpus = 48;
[[nodiscard]] constexpr std::uint8_t cs_etm_trace_id(std::uint32_t cpu) {
    return static_cast<std::uint8_t>(0x10 + 2 * cpu);
}

/// AUX flag: the bytes come from one unit and are not CoreSight frames.
inline constexpr std::uint64_t cs_etm_raw = 0x0100, cs_etm_format_mask = 0xff00;

}  // namespace waymark::capture::perf
