/// What is wrong with a command line, in a sentence.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace waymark::cli {

/// The command named last: `records` of `waymark spe records`. Null if none was.
[[nodiscard]] const CLI::App* innermost(const CLI::App& app);

/// What is wrong, and what may have been meant instead; without a full stop, but it may end with a question mark.
[[nodiscard]] std::string sentence_of(const CLI::ParseError& error, const CLI::App& app, int argc, char** argv);

}  // namespace waymark::cli
