/// The parts of a report's data. Each is a JSON object of its own, so that the page unpacks what is looked at, and a
/// part that grew too large is made again alone. web/src/data/wire.ts is the other side of this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/report/report.h"

namespace waymark::report {

/// How much a section holds at most: calls, instructions, rows or slices.
using Limit = std::uint64_t;

struct PageSection {
    std::string json;
    std::string left_out{};  ///< a sentence: what is not in it for its limit; empty: nothing
};

/// Who called whom. Calls beyond the limit that cost least are folded into one for each caller; sums stay.
[[nodiscard]] PageSection calls_section(const answers::Answers& answers, Limit most_calls);

/// Instructions, lines and the text of sources; of the functions that cost most, where there are too many instructions.
/// Of functions that never ran, only the program's own.
/// Where texts are long, only the lines near code.
[[nodiscard]] PageSection code_section(const answers::Answers& answers, Limit most_instructions);

/// Samples and counters do not show that code did not run.
[[nodiscard]] bool shows_coverage(const answers::Answers& answers);
/// What ran of each file and function, and the code that did not. `own`: up to which kind code counts as the program's.
[[nodiscard]] PageSection coverage_section(const answers::Answers& answers, Limit most_rows, answers::CodeKind own);

/// What changed, function by function, and both call trees as one by names.
[[nodiscard]] PageSection against_section(const answers::Answers& before, const Against& against, Limit most_rows);

/// Branches and blocks, and calls from function to function: those that happened most often.
[[nodiscard]] PageSection branches_section(const answers::Answers& answers, Limit most_branches);

/// Tracks, slices, marks and series. Slices beyond the limit that are shortest are merged, series lose points between
/// their extremes.
[[nodiscard]] PageSection timeline_section(const answers::Answers& answers, Limit most_slices, bool is_window);

/// What ran in its order: the first ranges of each stream, or of a window.
[[nodiscard]] PageSection steps_section(const answers::Answers& answers, const answers::Steps& steps, Limit most_ranges,
                                        bool is_window);

/// All the rest, and `left_out` of the others as findings.
[[nodiscard]] PageSection head_section(const answers::Answers& answers, Limit most_rows, const Against* against,
                                       const std::vector<std::string>& left_out, answers::CodeKind own,
                                       const answers::Steps* steps);

}  // namespace waymark::report
