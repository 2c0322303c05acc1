/// `waymark info`, `packets` and `flow` for the capture of a Debug and Profiling Unit.
#pragma once

#include <string>
#include <vector>

#include "../options.h"
#include "input.h"
#include "waymark/answers/account.h"
#include "waymark/command_line/output.h"

namespace waymark::cli {

/// The first option of `input` that has no meaning for a capture with one unit and a dpu.ini; empty if there is none.
[[nodiscard]] std::string not_for_dpu(const InputOptions& input);

/// How much of the run the trace covers; empty if nothing was decoded. Errors: the buffer cannot be read.
[[nodiscard]] Result<answers::Account> dpu_account_of(const DpuInput& input);

[[nodiscard]] ExitStatus run_dpu_info(const InputOptions& input, const std::string& format);
/// `types`: names of entry types; empty: all.
[[nodiscard]] ExitStatus run_dpu_packets(const InputOptions& input, const std::string& format,
                                         const std::vector<std::string>& types);
[[nodiscard]] ExitStatus run_dpu_flow(const InputOptions& input, const std::string& format, bool strict);

}  // namespace waymark::cli
