/// ORBFLOW: the frames in which a debug probe (ORBTrace) and orbuculum forward trace (docs/spec/orbflow.md). A frame
/// has a tag, the trace ID of its bytes, and a checksum.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

struct Orbflow {
    std::uint64_t frames{};          ///< complete frames with a correct checksum
    std::uint64_t damaged_frames{};  ///< between two frame ends, with a wrong checksum or none
    std::uint64_t damaged_bytes{};   ///< bytes of the file in such frames
    std::optional<Offset> first_damage{};
    std::uint64_t cut_bytes{};    ///< bytes before the first frame end and after the last one that do not form a frame
    std::uint64_t other_bytes{};  ///< payload with tags that are not trace sources: the probe's own
    std::array<std::uint64_t, trace_ids> bytes{};  ///< payload by trace ID
    /// The payload: for one source, its bytes; for several, CoreSight frames.
    std::vector<std::uint8_t> payload{};
    bool framed{};
    std::optional<TraceId> only{};  ///< the trace ID of all bytes, if there is only one
};

/// Splits the frames. nullopt if the bytes are not ORBFLOW, in which nearly all frames have a correct checksum.
[[nodiscard]] std::optional<Orbflow> read_orbflow(Bytes bytes);

}  // namespace waymark::coresight
