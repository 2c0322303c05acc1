/// Maps offsets in the stream of one source to offsets in the captured buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "waymark/core/types.h"

namespace waymark {

/// Maps an offset in a source's own byte stream to the offset of that byte in the captured buffer. Grows by one entry
/// for each stretch of adjacent bytes; `forget` keeps it small for long captures.
class OffsetMap {
public:
    /// From `stream` on, bytes are adjacent in the capture from `capture` on. Offsets only grow.
    void add(Offset stream, Offset capture) {
        if (!entries_.empty()) {
            const Entry& last = entries_.back();
            if (capture - last.capture == stream - last.stream) return;  // still adjacent
        }
        entries_.push_back({stream, capture});
    }

    /// Offset of a byte in the capture; for the offset after the last byte, the offset after that byte. Offsets before
    /// the first known one map to the first known one.
    [[nodiscard]] Offset capture(Offset stream) const {
        if (entries_.empty()) return stream;
        const Entry& entry = entries_[find(stream)];
        return stream < entry.stream ? entry.capture : entry.capture + (stream - entry.stream);
    }

    /// Drops entries that are not needed to map offsets from `keep_from` on, or offsets in `pins`.
    void forget(Offset keep_from, std::span<const Offset> pins) {
        if (entries_.size() < 2) return;
        std::vector<std::size_t> kept;
        for (const Offset pin : pins)
            if (pin < keep_from) kept.push_back(find(pin));
        std::sort(kept.begin(), kept.end());
        kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
        const std::size_t first = find(keep_from);
        std::vector<Entry> entries;
        for (const std::size_t index : kept)
            if (index < first) entries.push_back(entries_[index]);
        entries.insert(entries.end(), entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end());
        entries_ = std::move(entries);
    }

    [[nodiscard]] std::size_t entries() const { return entries_.size(); }

private:
    struct Entry {
        Offset stream, capture;
    };
    /// Index of the entry that contains an offset.
    [[nodiscard]] std::size_t find(Offset stream) const {
        const auto after = std::upper_bound(entries_.begin(), entries_.end(), stream,
                                            [](Offset at, const Entry& e) { return at < e.stream; });
        return after == entries_.begin() ? 0 : static_cast<std::size_t>(after - entries_.begin()) - 1;
    }
    std::vector<Entry> entries_;
};

}  // namespace waymark
