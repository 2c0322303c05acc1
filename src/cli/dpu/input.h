/// What the commands that read captures of a Debug and Profiling Unit have in common.
#pragma once

#include <string>

#include "../options.h"
#include "../output.h"
#include "waymark/doctor/dpu_input.h"

namespace waymark::cli {

using doctor::DpuInput;
using doctor::FileBytes;

/// Says which layout words of the trace have; a listing for reading has it at its head.
void say_layout(const std::string& format);
/// Refuses an option of `input` that makes no sense for a capture of one unit.
[[nodiscard]] ExitStatus refuse(const InputOptions& input);
/// The messages of the Nexus interface; empty: there are none. Errors: `unreadable`.
[[nodiscard]] Result<FileBytes> nexus_bytes(const DpuInput& input);

/// Says the capture's problems as warnings.
void warn(const DpuInput& input);

}  // namespace waymark::cli
