/// `waymark record --unit dpu`: a 32-bit Arm program stands in for the DSP core that a Debug and Profiling Unit
/// watches.
#pragma once

#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record_dpu/dpu_settings.h"

namespace waymark::cli {

struct DpuRecordOptions : record::DpuSettings {
    std::vector<Option> not_with_registers;

    /// Adds the options to the command, and appends them to `added`.
    void add_to(const Command& command, std::vector<Option>& added);
    /// The part of them that --registers replaces.
    void add_program_to(const Command& command, std::vector<Option>& added);
};

/// Errors: `usage`, `unreadable`: invalid options; the errors of record::record_dpu.
[[nodiscard]] Result<record::RecordOutcome> run_record_dpu(const record::FlowRecording& common,
                                                           const DpuRecordOptions& options,
                                                           const record::ShowRecording& show);

}  // namespace waymark::cli
