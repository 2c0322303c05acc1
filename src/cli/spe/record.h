/// `waymark record --unit spe`: a statistical profile of an AArch64 program or of a whole system.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
#include "waymark/command_line/command.h"

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"

namespace waymark::cli {

struct SpeRecordOptions {
    std::string event = "arm_spe//", machine_file;
    std::vector<std::string> machine;
    std::uint32_t period = 4096;
    std::uint64_t buffer_kib = 1024, seed = 1;
    unsigned info_version = 1;

    /// Whether an option that is otherwise only for the units of program flow is also for this unit.
    [[nodiscard]] static bool shares(std::string_view option);
    /// Adds the options to the command, and appends them to `added`.
    void add_to(const Command& command, std::vector<Option>& added);
};

/// Errors: `usage`, `unreadable`: invalid options; the errors of record::record_profile.
[[nodiscard]] Result<record::RecordOutcome> run_record_spe(const record::FlowRecording& common,
                                                           const SpeRecordOptions& options,
                                                           const record::ShowRecording& show);

}  // namespace waymark::cli
