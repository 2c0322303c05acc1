/// Any capture → `answers::Answers`: what the commands that show, export or compare answers begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "options.h"
#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"

namespace waymark::cli {

struct AnswersOptions {
    InputOptions input;
    unsigned jobs = 0;  ///< 0: all cores
    // What costs time or memory, and is left empty where it is not asked for.
    bool calls = false;  ///< who called whom
    bool timeline = false;
    bool instructions = false;   ///< every instruction of functions that ran, with their blocks, branches and edges
    bool all_functions = false;  ///< instructions also of functions that were never entered
    bool inlined = false;        ///< the inlined calls that instructions lie in
    bool disassembly = false;    ///< Instruction::text
    bool sources = false;        ///< SourceFile::lines
    bool without_code = false;   ///< answers even where no code at all is known: what the trace itself shows
    std::size_t most_slices = 200000;  ///< of the timeline
    std::uint64_t timestamp_hz = 0;    ///< of trace macrocells' timestamps; 0: what the capture says

    std::string kallsyms;  ///< of a profile (waymark spe report)
};

/// Fills `answers` from streams that may have different names for their addresses: what each set of names gives is
/// added up by file and function. `names`: by stream. More than one set leaves no timeline, and a finding that says so.
void fill_by_names(answers::Answers& answers, const std::vector<analysis::FlowStream>& streams,
                   const std::vector<const pipeline::Names*>& names, analysis::FlowAnswersOptions options);

/// Adds the option that says how fast timestamps count.
void add_timestamp_hz(CLI::App& command, AnswersOptions& options);

/// Adds the options that say where the kernel's names are.
void add_kallsyms(CLI::App& command, AnswersOptions& options);

/// Reads the capture, decodes it and gathers what was asked for: program flow, a profile of the Statistical Profiling
/// Extension, or a folder of the Debug and Profiling Unit, whichever it is. Says warnings. Errors: those of reading;
/// `not_found`: nothing could be decoded, with the reason.
[[nodiscard]] Result<answers::Answers> answers_of(const AnswersOptions& options);

/// Says why there are no answers, and gives the status: nothing in a capture is no mistake, but a capture that is not
/// there is an error of reading.
Status fail_answers(const Error& error, const std::vector<std::string>& captures);

}  // namespace waymark::cli
