/// Captures of units that are no trace macrocells, and answers files → Answers: what `answers_of` gives for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "answers.h"

namespace waymark::cli {

/// The first 8 bytes of a file, unpacked if it is compressed; fewer, or none: it has no more, or cannot be read.
[[nodiscard]] std::vector<std::uint8_t> first_bytes(const std::string& path);

/// A perf.data file with samples, compressed or not: one that has no trace of CoreSight units.
[[nodiscard]] bool is_profile(const std::string& path);
/// A perf.data file with trace of CoreSight units.
[[nodiscard]] bool is_cs_etm(const std::string& path);

/// A capture that cannot be opened is an error of reading, not a capture without trace.
[[nodiscard]] Error not_opened(Error error);

/// Refuses options that only captures of trace macrocells need. `what`: the capture, as the message says it.
[[nodiscard]] waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what);

/// Answers with the capture's name. What kept it from being read to its end is said at once, as of every other.
[[nodiscard]] answers::Answers finished(answers::Answers answers, const AnswersOptions& options);

[[nodiscard]] Result<answers::Answers> answers_of_profile(const AnswersOptions& options);
[[nodiscard]] Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options);

/// A file that `waymark answers` or `waymark merge` wrote.
[[nodiscard]] bool is_answers_file(const std::string& path);
/// All that it has. Errors: those of reading, with status `unreadable`.
[[nodiscard]] Result<answers::Answers> read_answers_file(const std::string& path);
/// What was asked for of it.
[[nodiscard]] Result<answers::Answers> answers_of_file(const AnswersOptions& options);
/// Writes answers. Errors: `usage`: the path is that of an input; `unreadable`: it cannot be written.
[[nodiscard]] Result<std::uint64_t> write_answers_file(const answers::Answers& answers, const std::string& path,
                                                       const std::vector<std::string>& inputs);

}  // namespace waymark::cli
