/// Captures of units that are no trace macrocells → Answers: what `answers_of` gives for them.
#pragma once

#include "answers.h"

namespace waymark::cli {

/// A perf.data file, compressed or not.
[[nodiscard]] bool is_profile(const std::string& path);

/// What cannot be opened is an error of reading, not a capture that tells nothing.
[[nodiscard]] Error not_opened(Error error);

[[nodiscard]] Result<answers::Answers> answers_of_profile(const AnswersOptions& options);
[[nodiscard]] Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options);

}  // namespace waymark::cli
