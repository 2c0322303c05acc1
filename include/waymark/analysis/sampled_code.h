/// The text of sampled instructions.
#pragma once

#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// Instructions of a profile as text, from the files they were sampled in: addresses are those in the files. Where
/// there are no such files one finding says.
void disassemble(answers::Answers& answers);

}  // namespace waymark::analysis
