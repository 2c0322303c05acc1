#include "answers_parts.h"

#include <algorithm>
#include <fstream>

namespace waymark::analysis {

namespace fs = std::filesystem;

Index SourceTable::of(const std::string& path) {
    if (path.empty()) return none;
    const auto [at, fresh] = known_.try_emplace(path, static_cast<Index>(answers_.sources.size()));
    if (fresh) answers_.sources.push_back({path, {}});
    return at->second;
}

void read_sources(Answers& answers, const fs::path& root) {
    constexpr std::uintmax_t most_bytes = 8 << 20;
    for (SourceFile& source : answers.sources) {
        const fs::path path(source.path);
        std::vector<fs::path> places;
        if (!root.empty()) places = {root / path.relative_path(), root / path.filename()};
        places.push_back(path);
        for (const fs::path& place : places) {
            std::error_code error;
            if (!fs::is_regular_file(place, error) || fs::file_size(place, error) > most_bytes) continue;
            std::ifstream in(place);
            for (std::string line; std::getline(in, line);) source.lines.push_back(std::move(line));
            if (!source.lines.empty()) break;
        }
    }
}

namespace {

/// Neighbours put together as long as the whole is shorter than `resolution`.
std::vector<Slice> merged(const std::vector<Slice>& slices, std::uint64_t resolution) {
    std::vector<Slice> out;
    std::map<Index, std::uint64_t> time_of;  // of the slice being made, by function
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
    // The tracks themselves cannot be put together.
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

std::string grouped_digits(std::uint64_t number) {
    std::string out = std::to_string(number);
    for (std::size_t at = out.size(); at > 3;) out.insert(at -= 3, ",");
    return out;
}

}  // namespace waymark::analysis
