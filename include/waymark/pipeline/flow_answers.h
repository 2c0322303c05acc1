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

/// Answers that cost time or memory, and stay empty unless they are requested.
struct FlowAnswersOptions {
    bool calls = false;  ///< the call tree
    bool timeline = false;
    bool instructions = false;   ///< every instruction of functions that ran, with their blocks, branches and edges
    bool all_functions = false;  ///< instructions also of functions that were never entered
    bool inlined = false;        ///< the inlined calls that instructions lie in
    bool ranges = false;         ///< exact ranges and branches, by image
    bool disassembly = false;    ///< Instruction::text
    bool sources = false;        ///< SourceFile::lines
    bool without_code = false;   ///< answers even where no code at all is known: from the trace alone
    std::size_t most_slices = 200000;  ///< of the timeline
    /// With the timeline: the executed ranges in order, up to `most_steps` ranges of each source. Null, or empty
    /// afterwards, if there are none.
    answers::Steps* steps = nullptr;
    std::size_t most_steps = 0;
    /// The part of each source that the timeline and the steps show. All other answers are about the whole capture.
    analysis::FlowWindow window{};
    /// The axes that the timeline may have, if they are in the trace; without both, the axis counts instructions.
    bool axis_of_timestamps = true, axis_of_cycles = true;
    std::uint64_t timestamp_hz = 0;  ///< frequency of timestamps; 0: the value in the capture
    unsigned workers = 1;            ///< threads that decode
    OpenBuffer open{};               ///< as `run` takes it
};

/// Decodes the selected sources whose flow can be decoded. `progress` and `read` may be empty; `read` receives the
/// report of reading, in any case. Errors: `not_found`: nothing could be decoded, with the reason; `unreadable`:
/// nothing could be decoded, and a buffer could not be read to its end.
[[nodiscard]] Result<answers::Answers> flow_answers(const Session& session, const std::vector<const Source*>& selected,
                                                    const FlowAnswersOptions& options, const Progress& progress,
                                                    const std::function<void(const Report&)>& read);

/// Fills `answers` from streams that may have different names for their addresses: figures of each set of names are
/// added up by file and function. `names`: by stream. With more than one set there is no timeline, and a finding states
/// this.
void fill_by_names(answers::Answers& answers, const std::vector<analysis::FlowStream>& streams,
                   const std::vector<const Names*>& names, analysis::FlowAnswersOptions options);

}  // namespace waymark::pipeline
