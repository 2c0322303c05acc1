/// Converts captures of units without program flow, and answers files, to Answers: parts of `answers_of`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers.h"

namespace waymark::cli {

/// Classifies an error for a capture that cannot be opened: it is an error of reading, not a capture without trace.
[[nodiscard]] Error not_opened(Error error);

/// Refuses options that only apply to program flow. `what`: the capture's description in the message.
[[nodiscard]] waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what);

/// Sets the name of the capture in answers. Prints what prevented it from being read to its end at once, as for every
/// other capture.
[[nodiscard]] answers::Answers finished(answers::Answers answers, const AnswersOptions& options);

[[nodiscard]] Result<answers::Answers> answers_of_profile(const AnswersOptions& options);
[[nodiscard]] Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options);

/// Reads the requested answers from a file that `waymark answers` or `waymark merge` wrote.
[[nodiscard]] Result<answers::Answers> answers_of_file(const AnswersOptions& options);

}  // namespace waymark::cli
