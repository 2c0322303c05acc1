/// The text of sampled instructions.
#pragma once

#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// Instructions of a profile as text, from the files that contain them: addresses are relative to the files. A single
/// finding names missing files.
void disassemble(answers::Answers& answers);

}  // namespace waymark::analysis
