/// The recording of a statistical profile from beginning to end: run the program, report the outcome.
#pragma once

#include <string>
#include <vector>

#include "waymark/core/result.h"
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

/// Runs `to.command` under QEMU. `show` may be null. Errors: `usage`: impossible options of unit or machine;
/// `not_found`, `unsupported`: the program or QEMU; the errors of Profiler::create and run_qemu.
[[nodiscard]] Result<RecordOutcome> record_profile(ProfilerOptions to, const ProfiledProgram& program,
                                                   const ShowRecording& show);

}  // namespace waymark::record
