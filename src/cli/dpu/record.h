/// `waymark record --unit dpu`: a 32-bit Arm program stands in for the DSP core that a Debug and Profiling Unit
/// watches.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>
#include "../command_line.h"

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record_dpu/dpu_options.h"

namespace waymark::cli {

struct DpuRecordOptions {
    std::string mode = "flow", buffer_mode = "overwrite", nexus = "off", loops = "hardware";
    std::vector<std::string> events, core, marks, edca;
    std::array<std::string, record::services> routines;  ///< files; empty: none
    std::uint64_t initial = 0x7fffffff, sample_every = 0;
    std::uint32_t bus_cycles = 1;
    bool no_user_data = false;
    std::vector<Option> not_with_registers;

    /// Adds the options to the command, and appends them to `added`.
    void add_to(const Command& command, std::vector<Option>& added);
    /// The part of them that --registers replaces.
    void add_program_to(const Command& command, std::vector<Option>& added);
};

/// Reads the options of add_program_to(), and `registers` and `buffer` of `common`. Errors: `usage`, `unreadable`.
[[nodiscard]] waymark::Status read_program_options(const record::FlowRecording& common, const DpuRecordOptions& options,
                                                   record::DpuOptions& to);

/// Errors: `usage`, `unreadable`: invalid options; the errors of record::record_dpu.
[[nodiscard]] Result<record::RecordOutcome> run_record_dpu(const record::FlowRecording& common,
                                                           const DpuRecordOptions& options,
                                                           const record::ShowRecording& show);

}  // namespace waymark::cli
