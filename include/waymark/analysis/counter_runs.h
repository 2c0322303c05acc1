/// Several captures of counters as one (docs/spec/dpu.md, 12.2): six counters a run are few, so runs count different
/// events.
#pragma once

#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// As merge(), of captures of counters (unit `DPU`). An event that only some runs count is scaled to all of them, task
/// by task and function by function, by the counter that all have in common, CYCLES where they have it; its metric is
/// no longer exact, and says so. Table `runs` shows what each figure was in one run, and how far the runs lie apart;
/// other tables are named after their capture. Precondition: at least one run.
[[nodiscard]] answers::Answers merge_counter_runs(std::vector<answers::Answers> runs);

}  // namespace waymark::analysis
