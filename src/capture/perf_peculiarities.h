/// Finds the peculiarities of docs/spec/perf-cs-etm.md, section 8, in a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/perf_cs_etm.h"

namespace waymark::capture::perf {

/// Facts about a file after reading it; every member is borrowed.
struct CsFile {
    const PerfData& data;
    const CsInfo& info;
    const CsRings& rings;
    const std::map<std::uint32_t, CsHardwareId>& ids;  ///< from AUX_OUTPUT_HW_ID records, by CPU
    std::optional<bool> context_in_vmid;               ///< nullopt: the metadata have no context IDs
    bool kernel_timestamps;                            ///< of every unit
};

/// In the order and with the numbers of section 8, without the peculiarities that only packets show.
[[nodiscard]] std::vector<Peculiarity> peculiarities_of(const CsFile& file);

/// Traps 10 and 11: samples that perf synthesised from CoreSight trace. The file may still have the trace or not.
/// `attrs` show whether the samples have branch stacks.
[[nodiscard]] std::vector<Peculiarity> made_samples(const PerfData& data);

}  // namespace waymark::capture::perf
