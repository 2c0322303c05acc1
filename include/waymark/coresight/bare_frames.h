/// Frames that lack what a reader begins with: the stream of a trace port that sent half syncs, but no full sync, and
/// frames of one source without an ID (docs/spec/pft.md, 6.2 and 6.4).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/coresight/frame.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

struct HalfSyncs {
    std::vector<std::uint8_t> frames;  ///< the stream without half syncs, from an even place of a frame on
    std::uint64_t count{};             ///< half syncs removed
    Offset first{};                    ///< the first of them
};

/// Nothing if the stream has a full sync, fewer than four half syncs, or too many bytes 0xFF at the places of half
/// syncs that begin none: no frame has one there.
[[nodiscard]] std::optional<HalfSyncs> read_half_syncs(Bytes stream);

/// The data of frames without any ID, of which the first begins at byte `skip` of `bytes`. Nothing if there are fewer
/// than eight frames, a byte at an even place announces an ID, or too few of the others are odd: then the bytes are
/// even for another reason.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> read_frames_without_ids(Bytes bytes, std::size_t skip);

/// A frame of padding that ends with this ID, so that the data of the frame behind it is of that source.
[[nodiscard]] std::array<std::uint8_t, frame_bytes> frame_that_names(TraceId id);

}  // namespace waymark::coresight
