/// The commands of `waymark`. Each adds itself to the command line; its run gives the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "output.h"

namespace waymark::cli {

using Run = std::function<Status()>;

Run add_info(CLI::App& app);
Run add_packets(CLI::App& app);
Run add_flow(CLI::App& app);
Run add_record(CLI::App& app);
Run add_verify(CLI::App& app);
Run add_spe(CLI::App& app);

/// A check that an option's value is one of these words, in any case.
[[nodiscard]] CLI::Validator one_of(std::vector<std::string> words);

/// The whole program; never throws.
int run(int argc, char** argv);

}  // namespace waymark::cli
