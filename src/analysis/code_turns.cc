#include "waymark/analysis/code_turns.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace waymark::analysis {

namespace {

/// No real program has as many mappings side by side in a zone. The limit keeps a hostile map from being scanned again
/// and again.
constexpr std::size_t most_beside = 256;

}  // namespace

CodeTurns::CodeTurns(const std::vector<Mapping>& mappings, bool timed) : layers_(1) {
    std::vector<Mapping> sorted = mappings;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Mapping& a, const Mapping& b) { return a.first < b.first; });
    // Find runs of mappings in which each overlaps an earlier one.
    for (std::size_t begin = 0; begin < sorted.size();) {
        std::uint64_t last = sorted[begin].last;
        std::size_t end = begin + 1;
        for (; end < sorted.size() && sorted[end].first <= last; ++end) last = std::max(last, sorted[end].last);
        std::vector<Mapping> inside(sorted.begin() + static_cast<std::ptrdiff_t>(begin),
                                    sorted.begin() + static_cast<std::ptrdiff_t>(end));
        const bool one =
            std::all_of(inside.begin(), inside.end(), [&](const Mapping& m) { return m.file == inside.front().file; });
        if (one) {
            alone_.push_back(inside.front().file);
        } else {
            Zone next;
            next.first = inside.front().first;
            next.last = last;
            Layer unknown;
            unknown.zone = static_cast<std::uint32_t>(zones_.size());
            unknown.first = next.first;
            for (const Mapping& m : inside) unknown.files.push_back(m.file);
            std::sort(unknown.files.begin(), unknown.files.end());
            unknown.files.erase(std::unique(unknown.files.begin(), unknown.files.end()), unknown.files.end());
            next.unknown = static_cast<std::uint32_t>(layers_.size());
            layers_.push_back(std::move(unknown));
            zones_.push_back(std::move(next));
            if (timed) divide(zones_.back(), std::move(inside));
        }
        begin = end;
    }
    std::sort(alone_.begin(), alone_.end());
}

/// Finds the mapping in a zone at each time. A mapping replaces everything that it overlaps.
void CodeTurns::divide(Zone& zone, std::vector<Mapping> inside) {
    std::stable_sort(inside.begin(), inside.end(), [](const Mapping& a, const Mapping& b) { return a.from < b.from; });
    std::map<std::vector<std::size_t>, std::uint32_t> known;
    std::vector<Mapping> there;
    for (const Mapping& m : inside) {
        // Code that came and went between two places of the trace was not traced.
        if (m.to && *m.to <= m.from) continue;
        std::erase_if(there, [&](const Mapping& other) { return other.first <= m.last && m.first <= other.last; });
        there.push_back(m);
        std::uint32_t layer = zone.unknown;
        if (there.size() <= most_beside) {
            std::vector<std::size_t> files;
            for (const Mapping& each : there) files.push_back(each.file);
            std::sort(files.begin(), files.end());
            files.erase(std::unique(files.begin(), files.end()), files.end());
            const auto [at, fresh] = known.try_emplace(files, static_cast<std::uint32_t>(layers_.size()));
            if (fresh) layers_.push_back({layers_[zone.unknown].zone, true, std::move(files), zone.first});
            layer = at->second;
        }
        zone.from.insert_or_assign(m.from, layer);
    }
}

const CodeTurns::Zone* CodeTurns::zone(std::uint64_t address) const {
    const auto after = std::upper_bound(zones_.begin(), zones_.end(), address,
                                        [](std::uint64_t a, const Zone& z) { return a < z.first; });
    return after == zones_.begin() || address > std::prev(after)->last ? nullptr : &*std::prev(after);
}

std::uint32_t CodeTurns::layer(std::uint64_t address, std::uint64_t time) const {
    const Zone* const found = zone(address);
    if (found == nullptr) return 0;
    const auto after = found->from.upper_bound(time);
    return after == found->from.begin() ? found->unknown : std::prev(after)->second;
}

std::uint32_t CodeTurns::layer(std::uint64_t address) const {
    const Zone* const found = zone(address);
    return found == nullptr ? 0 : found->unknown;
}

bool CodeTurns::lies_alone(std::size_t file) const { return std::binary_search(alone_.begin(), alone_.end(), file); }

}  // namespace waymark::analysis
