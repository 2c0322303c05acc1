/// Captures of units that are no trace macrocells, and answers files → Answers: what `answers_of` gives for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers.h"

namespace waymark::cli {

/// A capture that cannot be opened is an error of reading, not a capture without trace.
[[nodiscard]] Error not_opened(Error error);

/// Refuses options that only captures of trace macrocells need. `what`: the capture, as the message says it.
[[nodiscard]] waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what);

/// Answers with the capture's name. What kept it from being read to its end is said at once, as of every other.
[[nodiscard]] answers::Answers finished(answers::Answers answers, const AnswersOptions& options);

[[nodiscard]] Result<answers::Answers> answers_of_profile(const AnswersOptions& options);
[[nodiscard]] Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options);

/// What was asked for from a file that `waymark answers` or `waymark merge` wrote.
[[nodiscard]] Result<answers::Answers> answers_of_file(const AnswersOptions& options);

}  // namespace waymark::cli
