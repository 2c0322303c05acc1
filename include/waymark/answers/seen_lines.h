/// Which source lines may have run.
#pragma once

#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// For each row of `Answers::lines`, whether it ran. In a sum, an instruction of a line that ran in no input may have
/// run unobserved in an input that does not list the instruction; then the line may have run too. The rows themselves
/// have what the inputs say.
[[nodiscard]] std::vector<Seen> seen_of_lines(const Answers& answers);

}  // namespace waymark::answers
