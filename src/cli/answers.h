/// Any capture → `answers::Answers`: what the commands that show, export or compare answers begin with.
#pragma once

#include <string>
#include <vector>

#include "options.h"
#include "waymark/answers/answers.h"
#include "waymark/exports/branch_list.h"
#include "waymark/pipeline/flow_answers.h"

namespace waymark::cli {

struct AnswersOptions : pipeline::FlowAnswersOptions {
    InputOptions input;
    unsigned jobs = 0;  ///< 0: all cores

    std::string kallsyms;  ///< of a profile (waymark spe report)
};

/// Adds the option that says how fast timestamps count.
void add_timestamp_hz(CLI::App& command, AnswersOptions& options);

/// Adds the options that say where the kernel's names are.
void add_kallsyms(CLI::App& command, std::string& file);

/// Adds the option that says which form a branch list gets.
void add_branch_list_version(CLI::App& command, std::string& version);
/// --autofdo-addresses: `offsets`, `loaded` or empty.
void add_autofdo_addresses(CLI::App& command, std::string& addresses);
/// What was given with it; empty: the form that every simpleperf reads.
[[nodiscard]] exports::BranchListVersion branch_list_version(const std::string& version);

/// Reads the capture, decodes it and gathers what was asked for: program flow, a profile of the Statistical Profiling
/// Extension, or a folder of the Debug and Profiling Unit, whichever it is. Says warnings. Errors: the errors of
/// reading; `not_found`: nothing could be decoded, with the reason.
[[nodiscard]] Result<answers::Answers> answers_of(const AnswersOptions& options);

/// A finding of answers that lack code which coverage counts.
inline constexpr const char* without_functions_that_never_ran = "Functions that never ran are not in these answers.";

/// Says why there are no answers, and gives the status: nothing in a capture is no mistake, but a capture that is not
/// there is an error of reading.
ExitStatus fail_answers(const Error& error, const std::vector<std::string>& captures);

}  // namespace waymark::cli
