/// The part of the run in a perf.data file of `waymark record`. The format has no field for it, so it is stored in the
/// text with the recorder's version, which perf shows and does not interpret.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::capture::perf {

/// Where recording began and ended, each as the end of a sentence; empty: at the program's own begin or end.
struct RecordedPart {
    std::string begins{}, ends{};
    /// Samples of a program that programmed the unit itself: the intervals, in order, if there were several; and which
    /// operations were not sampled, as a clause.
    std::vector<std::uint64_t> intervals{};
    std::string left_out{};
};

inline constexpr std::string_view recorder_name = "waymark", begins_mark = "; begins ", ends_mark = "; ends ",
                                  intervals_mark = "; intervals", left_out_mark = "; left out ";

/// The text of the feature `version`.
[[nodiscard]] inline std::string version_with(const RecordedPart& part) {
    std::string out(recorder_name);
    if (!part.intervals.empty()) out += intervals_mark;
    for (const std::uint64_t interval : part.intervals) out += " " + std::to_string(interval);
    if (!part.left_out.empty()) out += std::string(left_out_mark) + part.left_out;
    if (!part.begins.empty()) out += std::string(begins_mark) + part.begins;
    if (!part.ends.empty()) out += std::string(ends_mark) + part.ends;
    return out;
}
/// The recorded part that the text states; all is empty for files of other recorders.
[[nodiscard]] inline RecordedPart recorded_part(std::string_view version) {
    RecordedPart out;
    if (!version.starts_with(recorder_name)) return out;
    const auto take = [&](std::string_view mark) {
        const std::size_t at = version.find(mark);
        if (at == version.npos) return std::string();
        std::string text(version.substr(at + mark.size()));
        version = version.substr(0, at);
        return text;
    };
    out.ends = take(ends_mark);
    out.begins = take(begins_mark);
    out.left_out = take(left_out_mark);
    const std::string intervals = take(intervals_mark);
    const char* const end = intervals.data() + intervals.size();
    for (const char* at = intervals.data(); at != end;) {
        std::uint64_t interval = 0;
        const auto [rest, error] = std::from_chars(at + 1, end, interval);
        if (*at != ' ' || error != std::errc{}) break;
        out.intervals.push_back(interval);
        at = rest;
    }
    return out;
}

}  // namespace waymark::capture::perf
