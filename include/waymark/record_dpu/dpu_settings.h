/// The options of a DPU's recording as users give them, read. Messages name the options of the command line.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record_dpu/dpu_options.h"

namespace waymark::record {

struct DpuSettings {
    // How the unit is programmed; FlowRecording::registers and `buffer` belong here too.
    std::string mode = "flow", buffer_mode = "overwrite", nexus = "off";
    std::vector<std::string> events;  ///< two event sets
    std::uint64_t initial = 0x7fffffff;
    bool no_user_data = false;

    std::string loops = "hardware";
    std::vector<std::string> core, marks, edca;  ///< `NAME=NUMBER`, PLACE, `N=PLACE`
    std::array<std::string, services> routines;  ///< files; empty: none
    std::uint64_t sample_every = 0;
    std::uint32_t bus_cycles = 1;
};
/// The options that select the file of a service routine.
inline constexpr std::array<const char*, services> routine_options{"--on-line-0", "--on-line-1", "--on-debug"};

/// Reads how the unit is programmed. Errors: `usage`, `unreadable`.
[[nodiscard]] Status read_program_settings(const FlowRecording& common, const DpuSettings& settings, DpuOptions& to);
/// Reads everything; places are looked up in the program.
[[nodiscard]] Status read_settings(const FlowRecording& common, const DpuSettings& settings, DpuOptions& to);

/// The event sets with their purposes, one on each line.
[[nodiscard]] std::string event_sets_text();

}  // namespace waymark::record
