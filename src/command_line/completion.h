/// Completion in shells: finds what could be typed next. The scripts in completion/ only pass words on, so their offers
/// always match this program.
#pragma once

#include <string>
#include <vector>

#include "waymark/command_line/program.h"

namespace CLI {
class App;
}  // namespace CLI

namespace waymark::command_line {

/// The hidden command `__complete` (program.h) with `words`, the words after the program's name.
int run_complete(const std::vector<OptionLookup>& lookups, const CLI::App& app, const std::vector<std::string>& words);

}  // namespace waymark::command_line
