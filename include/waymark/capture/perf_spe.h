/// The description of SPE units in a perf.data file (docs/spec/spe.md, 5.3).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "waymark/capture/perf_data.h"
#include "waymark/core/result.h"

namespace waymark::capture::perf {

/// One CPU's unit.
struct SpeCpu {
    std::uint32_t midr{};          ///< MIDR_EL1; 0: not given
    std::uint64_t pmu_type{};      ///< all ones: the CPU has no unit
    std::uint64_t min_interval{};  ///< 0: not given
    std::uint64_t event_filter{};  ///< events by which the unit can filter; 0: not given
    friend bool operator==(const SpeCpu&, const SpeCpu&) = default;
};

struct SpeInfo {
    enum class Form : std::uint8_t { version_1, version_2, simpleperf };
    Form form{};
    std::uint32_t pmu_type{};
    std::map<std::uint32_t, SpeCpu> cpus{};  ///< by number; none in version 1
    friend bool operator==(const SpeInfo&, const SpeInfo&) = default;
};

/// Errors: `unsupported`: trace of another kind of unit; `bad_format`: the words contradict each other.
[[nodiscard]] Result<SpeInfo> spe_info(const AuxtraceInfo& info);

/// MIDR_EL1 of a CPU: from its own block, otherwise from the file's `cpuid` feature; without a CPU number, if all CPUs
/// agree. 0: not known.
[[nodiscard]] std::uint32_t spe_midr(const PerfData& data, const SpeInfo& info, std::uint32_t cpu);

}  // namespace waymark::capture::perf
