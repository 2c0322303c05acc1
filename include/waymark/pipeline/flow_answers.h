/// A capture of program flow → `answers::Answers`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// What costs time or memory, and is left empty where it is not asked for.
struct FlowAnswersOptions {
    bool calls = false;  ///< who called whom
    bool timeline = false;
    bool instructions = false;   ///< every instruction of functions that ran, with their blocks, branches and edges
    bool all_functions = false;  ///< instructions also of functions that were never entered
    bool inlined = false;        ///< the inlined calls that instructions lie in
    bool ranges = false;         ///< exact ranges and branches, by image
    bool disassembly = false;    ///< Instruction::text
    bool sources = false;        ///< SourceFile::lines
    bool without_code = false;   ///< answers even where no code at all is known: what the trace itself shows
    std::size_t most_slices = 200000;  ///< of the timeline
    /// With the timeline: what ran in its order, up to `most_steps` ranges of each source. Null, or what is empty after
    /// it: there is none.
    answers::Steps* steps = nullptr;
    std::size_t most_steps = 0;
    /// Of each source, what the timeline and the steps hold. All else is of the whole capture.
    analysis::FlowWindow window{};
    /// What the axis of the timeline may be, where the trace has it; without both it is instructions.
    bool axis_of_timestamps = true, axis_of_cycles = true;
    std::uint64_t timestamp_hz = 0;  ///< of timestamps; 0: what the capture says
    unsigned workers = 1;            ///< threads that decode
};

/// Decodes the selected sources whose flow can be decoded. `progress` and `read` may be empty; `read` takes
/// the report of reading, in any case. Errors: `not_found`: nothing could be decoded, with the reason; `unreadable`:
/// the same, and a buffer could not be read to its end.
[[nodiscard]] Result<answers::Answers> flow_answers(const Session& session, const std::vector<const Source*>& selected,
                                                    const FlowAnswersOptions& options, const Progress& progress,
                                                    const std::function<void(const Report&)>& read);

/// Fills `answers` from streams that may have different names for their addresses: what each set of names gives is
/// added up by file and function. `names`: by stream. More than one set leaves no timeline, and a finding that says so.
void fill_by_names(answers::Answers& answers, const std::vector<analysis::FlowStream>& streams,
                   const std::vector<const Names*>& names, analysis::FlowAnswersOptions options);

}  // namespace waymark::pipeline
