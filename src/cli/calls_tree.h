/// Who called whom, as a tree.
#pragma once

#include <cstdint>

#include "output.h"
#include "waymark/answers/answers.h"

namespace waymark::cli {

/// The `most` costly rows, 0: all. Names are as short as the terminal needs.
void print_calls_tree(Output& out, const answers::Answers& answers, std::uint64_t most);

}  // namespace waymark::cli
