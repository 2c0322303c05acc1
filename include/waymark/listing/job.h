/// Plans, progress and results of jobs with many captures (fleet/), for reading, and the progress as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "waymark/fleet/merge.h"
#include "waymark/fleet/plan.h"
#include "waymark/fleet/slurm.h"
#include "waymark/fleet/status.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

void print_plan(TextSink& out, const fleet::PlanSummary& plan, unsigned cores);
/// `queued`: the job's tasks in Slurm's queue. `format`: text or json.
void print_job_status(TextSink& out, const fleet::JobStatus& status, const std::vector<fleet::QueuedTasks>& queued,
                      LineFormat format);
/// Prints at most `most` rows of each list.
void print_merged(TextSink& out, const fleet::MergeOutcome& merged, std::size_t most);

/// A duration as text: `1 h 12 min`, `35 s`.
[[nodiscard]] std::string elapsed_text(double seconds);

}  // namespace waymark::listing
