/// `waymark record --unit dpu`: a 32-bit Arm program stands in for the DSP core that a Debug and Profiling Unit
/// watches.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "../output.h"
#include "../spe/record.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::cli {

struct DpuRecordOptions {
    std::string mode = "flow", buffer_mode = "overwrite", nexus = "off", loops = "hardware";
    std::string registers;  ///< --registers, which other units have too
    std::vector<std::string> events, core, marks, edca;
    std::uint64_t initial = 0x7fffffff, sample_every = 0;
    std::uint32_t bus_cycles = 1;
    bool no_user_data = false;
    std::vector<CLI::Option*> not_with_registers;

    /// Adds them to the command; what was added is appended to `added`.
    void add_to(CLI::App& command, std::vector<CLI::Option*>& added);
};

/// Where a symbol or address of the program is, for the option named.
using ResolvePlace = std::function<Result<Address>(const std::string& text, const char* option)>;

[[nodiscard]] ExitStatus run_record_dpu(const RecordCommon& common, std::uint64_t buffer_bytes,
                                        const DpuRecordOptions& options, const ResolvePlace& place);

}  // namespace waymark::cli
