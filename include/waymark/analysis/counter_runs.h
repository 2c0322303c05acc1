/// Combines several captures of counters (docs/spec/dpu.md, 12.2): a run has only six counters, so runs count different
/// events.
#pragma once

#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// Like merge(), for captures of counters (unit `DPU`). An event that only some runs count is scaled to all runs, by
/// task and by function, using a counter that all runs have in common, CYCLES if possible. The metric of such an event
/// is marked as not exact. Table `runs` shows each figure in each run, and the spread between runs; other tables are
/// named after their capture. Precondition: at least one run.
[[nodiscard]] answers::Answers merge_counter_runs(std::vector<answers::Answers> runs);

}  // namespace waymark::analysis
