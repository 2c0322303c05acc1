/// The parts of a report's data. Each is a separate JSON object, so that the page unpacks only the parts that it shows,
/// and a part that is too large can be written again alone. web/src/data/wire.ts reads them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/report/report.h"

namespace waymark::report {

/// Maximum number of items in a section: calls, instructions, rows or slices.
using Limit = std::uint64_t;

struct PageSection {
    std::string json;
    std::string left_out{};  ///< a sentence about items that the limit omits; empty if there are none
};

/// The tree of calls. The least costly calls beyond the limit are merged into one for each caller, so sums stay.
[[nodiscard]] PageSection calls_section(const answers::Answers& answers, Limit most_calls);

/// Instructions, lines and source text; if there are too many, only the instructions of the most costly functions. For
/// functions that never ran, only the program's own. For long texts, only the lines near code.
[[nodiscard]] PageSection code_section(const answers::Answers& answers, Limit most_instructions);

/// Samples and counters do not show that code did not run.
[[nodiscard]] bool shows_coverage(const answers::Answers& answers);
/// Executed code of each file and function, and code that did not run. `own`: the last kind of code that counts as the
/// program's.
[[nodiscard]] PageSection coverage_section(const answers::Answers& answers, Limit most_rows, answers::CodeKind own);

/// Differences, function by function, and both call trees merged by name.
[[nodiscard]] PageSection against_section(const answers::Answers& before, const Against& against, Limit most_rows);

/// The most frequent branches, blocks, and calls from function to function.
[[nodiscard]] PageSection branches_section(const answers::Answers& answers, Limit most_branches);

/// Tracks, slices, marks and series. Beyond the limit, the shortest slices are merged, and series lose points between
/// their extremes.
[[nodiscard]] PageSection timeline_section(const answers::Answers& answers, Limit most_slices, bool is_window);
/// The least number of slices for which the section omits nothing.
[[nodiscard]] Limit whole_timeline(const answers::Timeline& timeline);

/// The executed ranges in order: the first ranges of each stream, or of a window.
[[nodiscard]] PageSection steps_section(const answers::Answers& answers, const answers::Steps& steps, Limit most_ranges,
                                        bool is_window);

/// All other data, and `left_out` of the other sections as findings.
[[nodiscard]] PageSection head_section(const answers::Answers& answers, Limit most_rows, const Against* against,
                                       const std::vector<std::string>& left_out, answers::CodeKind own,
                                       const answers::Steps* steps, const Served* served = nullptr);

}  // namespace waymark::report
