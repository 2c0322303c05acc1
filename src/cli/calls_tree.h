/// Prints the tree of callers and callees.
#pragma once

#include <cstdint>

#include "output.h"
#include "waymark/answers/answers.h"

namespace waymark::cli {

/// Prints the `most` most costly rows (0: all). Names are shortened to fit the terminal.
void print_calls_tree(Output& out, const answers::Answers& answers, std::uint64_t most);

}  // namespace waymark::cli
