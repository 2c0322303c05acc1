/// Where the bytes of one source stood in the capture they were taken from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::pipeline {

/// Maps a position in a source's own byte stream to the position of that byte in the captured buffer. Grows by one
/// entry per stretch of neighbouring bytes; `forget` keeps it small on long captures.
class OffsetMap {
public:
    /// From `stream` on, bytes stood side by side in the capture from `capture` on. Positions only grow.
    void add(Offset stream, Offset capture);

    /// Where a byte stood; of the position behind the last byte, the place behind it. Positions before everything known
    /// map to the earliest known place.
    [[nodiscard]] Offset capture(Offset stream) const;

    /// Drops what is not needed to map positions from `keep_from` on, and each position in `pins`.
    void forget(Offset keep_from, std::span<const Offset> pins);

    [[nodiscard]] std::size_t entries() const { return entries_.size(); }

private:
    struct Entry {
        Offset stream, capture;
    };
    /// The entry that covers a position.
    [[nodiscard]] std::size_t find(Offset stream) const;
    std::vector<Entry> entries_;
};

}  // namespace waymark::pipeline
