/// Code in perf.data that the kernel compiled or patched itself (docs/spec/perf-cs-etm.md, section 2).
#pragma once

#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

/// Reads feature 25. Programs that are cut off in the bytes are omitted.
[[nodiscard]] std::vector<BpfFunction> bpf_functions(Bytes feature);

/// Changes by TEXT_POKE records and BPF programs, sorted by time.
[[nodiscard]] std::vector<CodeChange> kernel_code_changes(const PerfData& data);

}  // namespace waymark::capture::perf
