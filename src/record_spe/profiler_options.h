/// Derives events and the file's headers from the options of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/record_spe/profile.h"

namespace waymark::record {

/// The kernel assigns type numbers to PMUs when it starts; any number works here.
inline constexpr std::uint32_t arm_spe_pmu = 10;
/// Indices of the events among the attributes.
inline constexpr std::size_t spe_attr = 0, tracking_attr = 1;

/// The attributes of all events.
[[nodiscard]] std::vector<capture::perf::Attr> attributes(const ProfilerOptions& options);

/// The description of the units in AUXTRACE_INFO.
[[nodiscard]] capture::perf::AuxtraceInfo auxtrace_info(const ProfilerOptions& options);

}  // namespace waymark::record
