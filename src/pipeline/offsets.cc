#include "waymark/pipeline/offsets.h"

#include <algorithm>

namespace waymark::pipeline {

void OffsetMap::add(Offset stream, Offset capture) {
    if (!entries_.empty()) {
        const Entry& last = entries_.back();
        if (capture - last.capture == stream - last.stream) return;  // still side by side
    }
    entries_.push_back({stream, capture});
}

std::size_t OffsetMap::find(Offset stream) const {
    const auto after = std::upper_bound(entries_.begin(), entries_.end(), stream,
                                        [](Offset at, const Entry& e) { return at < e.stream; });
    return after == entries_.begin() ? 0 : static_cast<std::size_t>(after - entries_.begin()) - 1;
}

Offset OffsetMap::capture(Offset stream) const {
    if (entries_.empty()) return stream;
    const Entry& entry = entries_[find(stream)];
    return stream < entry.stream ? entry.capture : entry.capture + (stream - entry.stream);
}

void OffsetMap::forget(Offset keep_from, std::span<const Offset> pins) {
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

}  // namespace waymark::pipeline
