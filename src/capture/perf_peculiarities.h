/// What of docs/spec/perf-cs-etm.md, section 8, a file shows.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/perf_cs_etm.h"

namespace waymark::capture::perf {

/// What is known about a file after reading it; every member is borrowed.
struct CsFile {
    const PerfData& data;
    const CsInfo& info;
    const CsRings& rings;
    const std::map<std::uint32_t, CsHardwareId>& ids;  ///< of AUX_OUTPUT_HW_ID, by CPU
    std::optional<bool> context_in_vmid;               ///< nothing: the metadata have no context IDs
    bool kernel_timestamps;                            ///< of every unit
};

/// In the order of section 8, whose numbers the kinds follow; those that only packets show are not among them.
[[nodiscard]] std::vector<Peculiarity> peculiarities_of(const CsFile& file);

/// Samples that perf made of CoreSight trace, in a file with that trace or without: traps 10 and 11. `attrs` decide
/// whether they have branch stacks.
[[nodiscard]] std::vector<Peculiarity> made_samples(const PerfData& data);

}  // namespace waymark::capture::perf
