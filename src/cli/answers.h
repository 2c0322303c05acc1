/// Reads any capture into `answers::Answers`: the first step of commands that show, export or compare answers.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/views.h"
#include "waymark/exports/branch_list.h"
#include "waymark/pipeline/flow_answers.h"

namespace waymark::cli {

struct AnswersOptions : pipeline::FlowAnswersOptions {
    InputOptions input;
    unsigned jobs = 0;  ///< 0: all cores

    std::string kallsyms;  ///< for a profile (waymark spe report)
    bool summand = false;  ///< an answers file is added to others: pipeline::read_summand
};

/// Adds the option for the rate of timestamps.
void add_timestamp_hz(const Command& command, AnswersOptions& options);

/// Adds --threshold, --threshold-each and --threshold-count: limits of growth between two captures.
void add_thresholds(const Command& command, answers::DiffOptions& options);

/// The version that was given; if empty, the version that every simpleperf reads.
[[nodiscard]] exports::BranchListVersion branch_list_version(const std::string& version);

/// Reads and decodes the capture, and gathers what the options ask for: program flow, a profile of the Statistical
/// Profiling Extension, or a folder of the Debug and Profiling Unit. Prints warnings. Errors: the errors of reading;
/// `not_found`: nothing could be decoded, with the reason.
[[nodiscard]] Result<answers::Answers> answers_of(const AnswersOptions& options);

/// The finding for answers that lack the code which coverage counts.
inline constexpr const char* without_functions_that_never_ran = "Functions that never ran are not in these answers.";

/// Prints why there are no answers, and returns the status: an empty capture is not a usage error, but an absent
/// capture is an error of reading.
ExitStatus fail_answers(const Error& error, const std::vector<std::string>& captures);

}  // namespace waymark::cli
