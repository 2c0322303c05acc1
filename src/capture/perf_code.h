/// Code in perf.data: what the kernel compiled or changed itself (docs/spec/perf-cs-etm.md, section 2).
#pragma once

#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

/// Feature 25. Programs that the bytes have only in part are left out.
[[nodiscard]] std::vector<BpfFunction> bpf_functions(Bytes feature);

/// TEXT_POKE and BPF programs, by time.
[[nodiscard]] std::vector<CodeChange> kernel_code_changes(const PerfData& data);

}  // namespace waymark::capture::perf
