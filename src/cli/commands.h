/// The commands of `waymark`. Each adds itself to the command line; its run gives the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"

namespace waymark::cli {

using Run = std::function<ExitStatus()>;

Run add_info(CLI::App& app);
Run add_packets(CLI::App& app);
Run add_flow(CLI::App& app);
Run add_record(CLI::App& app);
Run add_verify(CLI::App& app);
Run add_doctor(CLI::App& app);
Run add_explain(CLI::App& app);
Run add_program(CLI::App& app);
Run add_report(CLI::App& app);
Run add_serve(CLI::App& app);
Run add_profile(CLI::App& app);
Run add_coverage(CLI::App& app);
Run add_branches(CLI::App& app);
Run add_loops(CLI::App& app);
Run add_exceptions(CLI::App& app);
Run add_calls(CLI::App& app);
Run add_diff(CLI::App& app);
Run add_answers(CLI::App& app);
Run add_merge(CLI::App& app);
Run add_pgo(CLI::App& app);
Run add_export(CLI::App& app);
Run add_query(CLI::App& app);
Run add_fleet(CLI::App& app);

struct Command {
    std::string_view name;
    Run (*add)(CLI::App& app);
};
/// The commands for a single unit, each in a folder of its own (dpu, spe).
[[nodiscard]] std::span<const Command> unit_commands();

/// Checks that an option's value is one of these words, in any case, and replaces it by the word as given here. For
/// CLI::Option::transform(); check() would leave the value as it was written.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

/// A check that an option's value, a number from 0 up, has no sign.
[[nodiscard]] CLI::Validator not_negative();
/// A check that an option's value is not empty, as the value of an unset variable would be.
[[nodiscard]] CLI::Validator not_empty();

/// The whole program; never throws.
int run(int argc, char** argv);

}  // namespace waymark::cli
