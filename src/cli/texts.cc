#include "commands.h"

#include <array>

namespace waymark::cli {

namespace {

constexpr auto texts = std::to_array<std::string_view>({
#include "texts/answers.txt"
#include "texts/branches.txt"
#include "texts/calls.txt"
#include "texts/coverage.txt"
#include "texts/diff.txt"
#include "texts/doctor.txt"
#include "texts/dpu-data.txt"
#include "texts/dpu-functions.txt"
#include "texts/dpu-health.txt"
#include "texts/dpu-interrupts.txt"
#include "texts/dpu-loops.txt"
#include "texts/dpu-paths.txt"
#include "texts/dpu-program.txt"
#include "texts/dpu-ranges.txt"
#include "texts/dpu-ratios.txt"
#include "texts/dpu-report.txt"
#include "texts/dpu-run.txt"
#include "texts/dpu-tasks.txt"
#include "texts/dpu-timeline.txt"
#include "texts/dpu.txt"
#include "texts/exceptions.txt"
#include "texts/explain.txt"
#include "texts/export.txt"
#include "texts/fleet-add.txt"
#include "texts/fleet-cancel.txt"
#include "texts/fleet-local.txt"
#include "texts/fleet-merge.txt"
#include "texts/fleet-plan.txt"
#include "texts/fleet-resume.txt"
#include "texts/fleet-run-shard.txt"
#include "texts/fleet-status.txt"
#include "texts/fleet-submit.txt"
#include "texts/fleet.txt"
#include "texts/flow.txt"
#include "texts/info.txt"
#include "texts/loops.txt"
#include "texts/merge.txt"
#include "texts/messages.txt"
#include "texts/packets.txt"
#include "texts/pgo.txt"
#include "texts/profile.txt"
#include "texts/program.txt"
#include "texts/query.txt"
#include "texts/record.txt"
#include "texts/report.txt"
#include "texts/serve.txt"
#include "texts/shared-capture.txt"
#include "texts/shared-counters.txt"
#include "texts/shared-fleet.txt"
#include "texts/shared-record-cortex-m.txt"
#include "texts/shared-record-dpu.txt"
#include "texts/shared-record-perf.txt"
#include "texts/shared-record-spe.txt"
#include "texts/shared-samples.txt"
#include "texts/shared-unit-program.txt"
#include "texts/shared-views.txt"
#include "texts/spe-branches.txt"
#include "texts/spe-explain.txt"
#include "texts/spe-quality.txt"
#include "texts/spe-records.txt"
#include "texts/spe-report.txt"
#include "texts/spe-sharing.txt"
#include "texts/spe.txt"
#include "texts/verify.txt"
#include "texts/waymark.txt"
});

}  // namespace

const command_line::Texts& all_texts() {
    static const command_line::Texts all(texts);
    return all;
}

}  // namespace waymark::cli
