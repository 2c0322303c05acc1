/// What the options of a perf recording mean: the events, the units, and what the file's headers say of both.
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
/// The places of the events among the attributes.
inline constexpr std::size_t etm_attr = 0, dummy_attr = 1;

/// The terms of the event that records the units so programmed.
[[nodiscard]] capture::perf::CsEtmTerms terms_of(const PerfRecorderOptions& options);

/// The attributes of all events.
[[nodiscard]] std::vector<capture::perf::Attr> attributes(const PerfRecorderOptions& options);

/// What describes the units.
[[nodiscard]] Result<capture::perf::AuxtraceInfo> auxtrace_info(const PerfRecorderOptions& options);

/// MIDR_EL1, or MIDR of a core in AArch32; 0: unknown.
[[nodiscard]] std::uint64_t midr_of(const std::string& core);

/// perf's command line that would have recorded it.
[[nodiscard]] std::vector<std::string> perf_command(const PerfRecorderOptions& options);

}  // namespace waymark::record
