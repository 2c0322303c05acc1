/// Examines captures as users name them, of any kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/doctor/examine.h"

namespace waymark::doctor {

/// Receives a sentence about what was inferred.
using TakeNote = std::function<void(const std::string&)>;

/// Examines one capture, or several bare trace files. `names`: folders, symbols and kallsyms of a capture that has a
/// list of mapped files. `progress` may be null. Errors: `usage`: options that are not for such a capture; the errors
/// of opening.
[[nodiscard]] Result<ExaminationReport> examine_captures(const std::vector<std::string>& captures,
                                                         const CaptureInput& names, const ExamineOptions& options,
                                                         capture::perf::Progress* progress, const TakeNote& note);

/// A session of bare trace files, whose contents are not known. Errors: a file is something else.
[[nodiscard]] Result<pipeline::Session> bare_session(const std::vector<std::string>& files);

/// The reason why nothing was decoded, followed by `. waymark doctor CAPTURE says: …` with doctor's first error or
/// warning and its advice, unless the reason contains them. Nothing follows for standard input, and if doctor fails.
[[nodiscard]] std::string with_advice(std::string reason, const std::string& capture,
                                      const std::vector<std::string>& images, capture::perf::Progress* progress,
                                      const TakeNote& note);

/// A sentence about the snapshot `folder` that was written with what the examination inferred. `images`: whether any
/// were given; `result`: of decoding it.
[[nodiscard]] std::string written_text(const std::string& folder, const ExaminationReport& report, bool images,
                                       const Decoded& result);

}  // namespace waymark::doctor
