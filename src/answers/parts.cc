#include "waymark/answers/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <limits>
#include <utility>

#include "waymark/core/saturating.h"

namespace waymark::answers {

std::uint64_t captures_in(const Answers& answers) {
    std::uint64_t out = answers.parts.empty() ? 1 : 0;
    for (const MergedPart& part : answers.parts) add_saturating(out, part.times);
    return out;
}

std::vector<Finding> captures_added_again(const Answers& sum) {
    std::vector<Finding> out;
    for (const MergedPart& part : sum.parts)
        if (part.times > 1)
            out.push_back({Finding::Severity::note,
                           fmt::format("capture {} ({} of trace) is in the sum {} times", part.capture,
                                       counted(part.trace_bytes, "byte"), part.times),
                           ""});
    return out;
}

Index SourceTable::of(const std::string& path) {
    if (path.empty()) return none;
    const auto [at, fresh] = known_.try_emplace(path, static_cast<Index>(answers_.sources.size()));
    if (fresh) answers_.sources.push_back({path, {}});
    return at->second;
}

void AddressRanges::add(std::uint64_t first, std::uint64_t bytes, std::size_t number) {
    constexpr std::uint64_t top = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t end = bytes > top - first ? top : first + bytes;
    auto next = ranges_.upper_bound(first);
    if (next != ranges_.begin()) first = std::max(first, std::prev(next)->second.end);
    while (first < end) {
        const std::uint64_t free = next == ranges_.end() ? end : std::min(end, next->first);
        if (first < free) ranges_.emplace_hint(next, first, Range{free, number});
        if (next == ranges_.end()) return;
        first = next->second.end;
        ++next;
    }
}

std::optional<std::size_t> AddressRanges::find(std::uint64_t address) const {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin() || address >= std::prev(after)->second.end) return std::nullopt;
    return std::prev(after)->second.number;
}

std::string build_key(std::string_view build_id) {
    std::string out(build_id.substr(build_id.starts_with("0x") ? 2 : 0));
    const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
    if (out.size() % 2 != 0 || !std::all_of(out.begin(), out.end(), is_digit)) return std::string(build_id);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    while (out.ends_with("00")) out.resize(out.size() - 2);
    return out;
}

Index SyntheticTable::of(const std::string& name) {
    const auto [at, fresh] = known_.try_emplace(name, static_cast<Index>(answers_.functions.size()));
    if (fresh) {
        Function f;
        f.name = name;
        f.synthetic = true;
        answers_.functions.push_back(std::move(f));
    }
    return at->second;
}

InlinedTable::InlinedTable(Answers& answers) : answers_(answers) {
    for (Index i = 0; i < answers.inlined.size(); ++i) known_.try_emplace(key(answers.inlined[i]), i);
}

InlinedTable::Key InlinedTable::key(const InlinedCall& call) {
    return {call.function, call.parent, call.linkage_name.empty() ? call.name : call.linkage_name,
            call.source,   call.line,   call.discriminator};
}

Index InlinedTable::of(InlinedCall call) {
    const auto [at, fresh] = known_.try_emplace(key(call), static_cast<Index>(answers_.inlined.size()));
    if (fresh) answers_.inlined.push_back(std::move(call));
    return at->second;
}

namespace {

/// Merges neighbours while their total is shorter than `resolution`.
std::vector<Slice> merged(const std::vector<Slice>& slices, std::uint64_t resolution) {
    std::vector<Slice> out;
    std::map<Index, std::uint64_t> time_of;  // time by function in the slice being made
    const auto close = [&] {
        if (time_of.size() < 2) return;
        const auto longest = std::max_element(time_of.begin(), time_of.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
        out.back().function = longest->first;
    };
    for (const Slice& s : slices) {
        if (!out.empty() && out.back().track == s.track && s.end - out.back().begin < resolution) {
            out.back().end = std::max(out.back().end, s.end);
            out.back().merged += s.merged;
        } else {
            close();
            time_of.clear();
            out.push_back(s);
        }
        time_of[s.function] += s.end - s.begin;
    }
    close();
    return out;
}

}  // namespace

void bound_slices(Timeline& timeline, std::size_t most) {
    if (timeline.slices.size() <= most) return;
    // Tracks cannot be merged with each other.
    const std::size_t least = std::max(most, timeline.tracks.size());
    std::uint64_t resolution = 1;
    std::vector<Slice> slices = timeline.slices;
    while (slices.size() > least && resolution < std::uint64_t{1} << 63) {
        resolution *= 2;
        slices = merged(timeline.slices, resolution);
    }
    timeline.slices = std::move(slices);
    timeline.resolution = resolution;
}

void sort_findings(Answers& answers) {
    std::stable_sort(answers.health.begin(), answers.health.end(),
                     [](const Finding& a, const Finding& b) { return a.severity > b.severity; });
}

bool has_only_ranges(const Answers& answers) {
    return !answers.ranges.empty() && answers.calls.empty() && answers.instructions.empty();
}

}  // namespace waymark::answers
