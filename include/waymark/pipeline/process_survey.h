/// What only the trace of a capture of several processes shows and its user should know: whose code is missing and what
/// that costs, and whether threads are in the trace. For commands that do not decode program flow themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

struct ProcessSurvey {
    std::vector<Damage> missing;                        ///< as code_damage()
    std::vector<capture::Peculiarity> peculiarities{};  ///< besides those of the capture
    std::uint64_t bytes{}, of{};                        ///< of trace that were looked at, and all
};

/// Leaves at most `most_bytes` of trace of buffers that consist of parts, of each buffer the same share, from its
/// beginning on: whole parts, or the beginning of the first. Others stay as they are.
void shorten(capture::Capture& capture, std::uint64_t most_bytes);

/// Decodes at most `most_bytes` of trace, as `shorten` leaves them. Empty where the capture is of one memory.
[[nodiscard]] ProcessSurvey survey_processes(const Session& session, const std::vector<const Source*>& selected,
                                             std::uint64_t most_bytes, unsigned workers = 1);

}  // namespace waymark::pipeline
