/// Converts captures of units without program flow, and answers files, to Answers: parts of `answers_of`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers.h"

namespace waymark::cli {

/// Turns an error of opening a capture into an error of reading. Otherwise it would look like a capture without trace.
[[nodiscard]] Error not_opened(Error error);

/// Refuses options that only apply to program flow. `what`: the capture's description in the message.
[[nodiscard]] waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what);

/// Sets the name of the capture in answers. At once prints the errors that ended reading early, as for every other
/// capture.
[[nodiscard]] answers::Answers finished(answers::Answers answers, const AnswersOptions& options);

[[nodiscard]] Result<answers::Answers> answers_of_profile(const AnswersOptions& options);
[[nodiscard]] Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options);

/// Reads the requested answers from a file that `waymark answers` or `waymark merge` wrote.
[[nodiscard]] Result<answers::Answers> answers_of_file(const AnswersOptions& options);

}  // namespace waymark::cli
