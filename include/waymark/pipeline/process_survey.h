/// Facts that only the trace of a capture of several processes shows: whose code is missing and the cost, and whether
/// threads are in the trace. For commands that do not decode program flow themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/flow/flow.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

struct ProcessSurvey {
    std::vector<Damage> missing;                        ///< as code_damage()
    std::vector<capture::Peculiarity> peculiarities{};  ///< besides the capture's own
    std::uint64_t bytes{}, of{};                        ///< bytes of trace examined, and all bytes
};

/// Keeps at most `most_bytes` of trace of the buffers that consist of parts: the same share of each buffer, from its
/// beginning on, as whole parts, or the beginning of the first part. Other buffers do not change.
void shorten(capture::Capture& capture, std::uint64_t most_bytes);

/// A further sink for the decoded flow of a stream; it is destroyed at the stream's end.
using MakeSink = std::function<std::unique_ptr<flow::Sink>(const StreamInfo&)>;

/// Decodes at most `most_bytes` of trace, as `shorten` leaves them, each process with its own code. Empty if the
/// capture has only one memory. With `also`, which may be empty, it uses one thread.
[[nodiscard]] ProcessSurvey survey_processes(const Session& session, const std::vector<const Source*>& selected,
                                             std::uint64_t most_bytes, unsigned workers = 1, const MakeSink& also = {});

}  // namespace waymark::pipeline
