/// ORBFLOW: the frames in which a debug probe (ORBTrace) and orbuculum pass trace on (docs/spec/orbflow.md). A frame
/// has a tag, which is the trace ID of its bytes, and a sum.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

struct Orbflow {
    std::uint64_t frames{};          ///< whole, with the right sum
    std::uint64_t damaged_frames{};  ///< between two ends of frames, with another sum, or none
    std::uint64_t damaged_bytes{};   ///< of the file, in such frames
    std::optional<Offset> first_damage{};
    std::uint64_t cut_bytes{};    ///< before the first end of a frame and behind the last, where these are no frame
    std::uint64_t other_bytes{};  ///< payload under tags that no source of trace has: the probe's own
    std::array<std::uint64_t, trace_ids> bytes{};  ///< payload by trace ID
    /// The payload: of one source, its bytes; of several, CoreSight frames.
    std::vector<std::uint8_t> payload{};
    bool framed{};
    std::optional<TraceId> only{};  ///< the trace ID of all bytes, where there is one
};

/// Takes the frames apart. Nothing: the bytes are no ORBFLOW, because nearly all frames of that have the right sum.
[[nodiscard]] std::optional<Orbflow> read_orbflow(Bytes bytes);

}  // namespace waymark::coresight
