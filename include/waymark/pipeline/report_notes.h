/// What a report of answers says beside them: windows of the run, and names that are missing.
#pragma once

#include <string>

#include "waymark/analysis/flow_window.h"
#include "waymark/answers/answers.h"
#include "waymark/core/result.h"

namespace waymark::pipeline {

/// Parses `A..B`, `A..`, `..B` (--window): instruction numbers of each source. Errors: `usage`.
[[nodiscard]] Result<analysis::FlowWindow> read_window(const std::string& text);
/// Notes what a report of a window shows. Errors: `not_found`: the window is empty.
[[nodiscard]] Status note_window(answers::Answers& answers, const analysis::FlowWindow& window);

/// Whether the unit traces program flow, as opposed to samples or counters.
[[nodiscard]] bool is_of_flow(const answers::Answers& answers);
/// If functions have no names, notes how to get them.
void note_missing_symbols(answers::Answers& answers);

}  // namespace waymark::pipeline
