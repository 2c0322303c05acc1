/// Shared code of the commands that read captures of a Debug and Profiling Unit.
#pragma once

#include <string>

#include "../options.h"
#include "waymark/command_line/output.h"
#include "waymark/doctor/dpu_input.h"

namespace waymark::cli {

using doctor::DpuInput;
using doctor::FileBytes;

/// Prints the layout of the trace's words, at the head of a text listing.
void say_layout(const std::string& format);
/// Refuses an option of `input` that has no meaning for a capture of one unit.
[[nodiscard]] ExitStatus refuse(const InputOptions& input);
/// The messages of the Nexus interface; empty if there are none. Errors: `unreadable`.
[[nodiscard]] Result<FileBytes> nexus_bytes(const DpuInput& input);

/// Prints the capture's problems as warnings.
void warn(const DpuInput& input);

}  // namespace waymark::cli
