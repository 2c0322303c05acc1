/// The commands of `waymark`. Each adds itself to the command line; its run gives the exit status.
#pragma once

#include <span>
#include <vector>

#include "waymark/command_line/command.h"
#include "waymark/command_line/output.h"
#include "waymark/command_line/program.h"
#include "waymark/listing/text.h"

namespace waymark::cli {

// The commands are written in their words.
using namespace command_line;
using listing::json_string;
using listing::shown_width;

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

/// The commands for a single unit, each in a folder of its own (dpu, spe).
[[nodiscard]] std::span<const NamedCommand> unit_commands();

/// The options whose values completion finds in the capture, the answers file or this program.
[[nodiscard]] std::vector<OptionLookup> lookups();

/// The texts of all commands (texts/).
[[nodiscard]] const command_line::Texts& all_texts();

/// The whole program; never throws.
int run(int argc, char** argv);

}  // namespace waymark::cli
