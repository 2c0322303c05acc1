/// The recording of a statistical profile from beginning to end: run the program, report the outcome.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/record_outcome.h"
#include "waymark/record_spe/profile.h"

namespace waymark::record {

/// How QEMU runs the program.
struct ProfiledProgram {
    std::string sysroot{};                    ///< of a Linux program
    std::vector<std::string> qemu_options{};  ///< further arguments
    std::string machine{};                    ///< of a system; empty: QEMU's board virt with all exception levels
    unsigned processors = 1;                  ///< of a system
};

/// Sets what is for a system alone. Messages name the options of the command line. Errors: `usage`, `unreadable`,
/// `bad_format`: an option is not for this program, or is not valid.
[[nodiscard]] Status set_system(const FlowRecording& common, ProfilerOptions& to);

/// Runs `to.command` under QEMU. `show` may be null. Errors: `usage`: impossible options of unit or machine;
/// `not_found`, `unsupported`: the program or QEMU; the errors of Profiler::create and run_qemu.
[[nodiscard]] Result<RecordOutcome> record_profile(ProfilerOptions to, const ProfiledProgram& program,
                                                   const ShowRecording& show);

}  // namespace waymark::record
