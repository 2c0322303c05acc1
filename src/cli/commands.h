/// The commands of `waymark`. Each adds itself to the command line; its run gives the exit status.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "output.h"

namespace waymark::cli {

using Run = std::function<ExitStatus()>;

Run add_info(const Command& app);
Run add_packets(const Command& app);
Run add_flow(const Command& app);
Run add_record(const Command& app);
Run add_verify(const Command& app);
Run add_doctor(const Command& app);
Run add_explain(const Command& app);
Run add_program(const Command& app);
Run add_report(const Command& app);
Run add_serve(const Command& app);
Run add_profile(const Command& app);
Run add_coverage(const Command& app);
Run add_branches(const Command& app);
Run add_loops(const Command& app);
Run add_exceptions(const Command& app);
Run add_calls(const Command& app);
Run add_diff(const Command& app);
Run add_answers(const Command& app);
Run add_merge(const Command& app);
Run add_pgo(const Command& app);
Run add_export(const Command& app);
Run add_query(const Command& app);
Run add_fleet(const Command& app);

struct NamedCommand {
    std::string_view name;
    Run (*add)(const Command& app);
};
/// The commands for a single unit, each in a folder of its own (dpu, spe).
[[nodiscard]] std::span<const NamedCommand> unit_commands();

/// Adds commands below `command`, and returns what runs the parsed one.
[[nodiscard]] Run add_below(const Command& command, const std::vector<std::function<Run(const Command&)>>& adds);

/// The whole program; never throws.
int run(int argc, char** argv);

}  // namespace waymark::cli
