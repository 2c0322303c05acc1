/// Describes errors in a command line in a sentence.
#pragma once

#include <string>

#include "waymark/command_line/texts.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace waymark::command_line {

/// The innermost command of a command line: `records` in `waymark spe records`. Null if there is none.
[[nodiscard]] const CLI::App* innermost(const CLI::App& app);

/// The error, and a suggestion; without a full stop, but it may end with a question mark.
[[nodiscard]] std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, const Texts& texts, int argc,
                                      char** argv);

}  // namespace waymark::command_line
