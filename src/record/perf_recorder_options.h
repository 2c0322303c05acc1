/// Derives events, units and the file's headers from the options of a perf recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/capture/perf_cs_etm_writer.h"
#include "waymark/record/perf_recorder.h"

namespace waymark::record {

/// The kernel assigns type numbers to PMUs when it starts; any number works here.
inline constexpr std::uint32_t cs_etm_pmu = 8;
/// Indices of the events among the attributes.
inline constexpr std::size_t etm_attr = 0, dummy_attr = 1;

/// The terms of a perf event that programs the units like this.
[[nodiscard]] capture::perf::CsEtmTerms terms_of(const PerfRecorderOptions& options);

/// The attributes of all events.
[[nodiscard]] std::vector<capture::perf::Attr> attributes(const PerfRecorderOptions& options);

/// The description of the units in AUXTRACE_INFO.
[[nodiscard]] Result<capture::perf::AuxtraceInfo> auxtrace_info(const PerfRecorderOptions& options);

/// MIDR_EL1 of a core, or MIDR in AArch32; 0: unknown.
[[nodiscard]] std::uint64_t midr_of(const std::string& core);

/// The command line with which perf would have recorded it.
[[nodiscard]] std::vector<std::string> perf_command(const PerfRecorderOptions& options);

}  // namespace waymark::record
