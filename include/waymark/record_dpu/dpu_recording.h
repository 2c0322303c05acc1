/// The recording of a Debug and Profiling Unit from beginning to end: run the program, report the outcome.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record/record_outcome.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::record {

/// Errors: `not_found`, `unsupported`: the program cannot stand in for the unit's core.
[[nodiscard]] Status check_dpu_program(const std::string& program);

/// Runs `to.command` under QEMU. `show` may be null; `why_empty` states why a written trace has no entry; empty: not
/// known. Precondition: resolve(to). Errors: the errors of QEMU, DpuRecorder::create and run_qemu.
[[nodiscard]] Result<RecordOutcome> record_dpu(const DpuOptions& to, const std::string& sysroot,
                                               const std::vector<std::string>& qemu_options, const ShowRecording& show,
                                               const std::function<std::string()>& why_empty);

}  // namespace waymark::record
