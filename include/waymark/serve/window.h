/// A part of a run, decoded alone: answers that are exact for it, with each call on the timeline, and all executed code
/// for stepping through it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "waymark/analysis/flow_window.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/steps.h"
#include "waymark/core/result.h"
#include "waymark/pipeline/session.h"
#include "waymark/serve/index.h"

namespace waymark::serve {

struct WindowOptions {
    std::size_t most_slices = 1'000'000;  ///< of the timeline
    std::size_t most_steps = 100'000;     ///< ranges of each source
    bool instructions = true;             ///< every instruction of functions that ran, with blocks, branches and lines
    std::uint64_t timestamp_hz = 0;       ///< of timestamps; 0: the value in the capture
    std::function<bool()> stop{};         ///< called regularly; true ends decoding early. May be empty
};

struct WindowAnswers {
    answers::Answers answers;  ///< but for capture, version and health
    answers::Steps steps;
    std::uint64_t decoded_bytes{};  ///< of all streams, including bytes between the places and the window
};

/// Decodes instructions [begin, end) of each source from the last place of the index before them. Timeline and steps
/// equal the timeline and the steps of a whole decode with that window (pipeline::FlowAnswersOptions::window), except
/// that the axis' note and uncertainty concern the timestamps that were read. All other answers count the blocks whose
/// execution began in the window. Code that did not run in the window is not observed. Errors: `not_found`: nothing ran
/// there; `bad_format`: the trace has changed since the index was made; a file no longer exists, or decoding was ended
/// early.
[[nodiscard]] Result<WindowAnswers> window_answers(const pipeline::Session& session,
                                                   const std::vector<const pipeline::Source*>& selected,
                                                   const Index& index, analysis::FlowWindow window,
                                                   const WindowOptions& options);

}  // namespace waymark::serve
