/// Answers files in place of captures (answers/file.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/pipeline/flow_answers.h"

namespace waymark::pipeline {

/// Reads everything in a file, with one column for each metric (finish_sum). Errors: the errors of reading;
/// `bad_format`: the file is not an answers file.
[[nodiscard]] Result<answers::Answers> read_answers_file(const std::string& path);
/// Reads an answers file to be added to others: captures that count different metrics stay apart. Errors: as above.
[[nodiscard]] Result<answers::Answers> read_summand(const std::string& path);
/// To be called after the last addition: gives captures that count different metrics one column for each metric
/// (answers::scale_metrics), and a sum of DPU captures the ratios of the new figures; notes captures that were added
/// again.
void finish_sum(answers::Answers& sum);
/// Writes answers and returns the number of bytes. Errors: `usage`: the path is an input; `unreadable`: it cannot be
/// written.
[[nodiscard]] Result<std::uint64_t> write_answers_file(const answers::Answers& answers, const std::string& path,
                                                       const std::vector<std::string>& inputs);
/// Removes answers that were not requested: a command that shows less of a capture then shows the same from the file.
void keep_what_is_asked(answers::Answers& answers, const FlowAnswersOptions& options);

}  // namespace waymark::pipeline
