/// The part of the run in a perf.data file of `waymark record`. The format has no field for it, so it is stored in the
/// text with the recorder's version, which perf shows and does not interpret.
#pragma once

#include <string>
#include <string_view>

namespace waymark::capture::perf {

/// Where recording began and ended, each as the end of a sentence; empty: at the program's own begin or end.
struct RecordedPart {
    std::string begins{}, ends{};
};

inline constexpr std::string_view recorder_name = "waymark", begins_mark = "; begins ", ends_mark = "; ends ";

/// The text of the feature `version`.
[[nodiscard]] inline std::string version_with(const RecordedPart& part) {
    std::string out(recorder_name);
    if (!part.begins.empty()) out += std::string(begins_mark) + part.begins;
    if (!part.ends.empty()) out += std::string(ends_mark) + part.ends;
    return out;
}
/// The recorded part that the text states; both ends are empty for files of other recorders.
[[nodiscard]] inline RecordedPart recorded_part(std::string_view version) {
    RecordedPart out;
    if (!version.starts_with(recorder_name)) return out;
    if (const std::size_t at = version.find(ends_mark); at != version.npos) {
        out.ends = version.substr(at + ends_mark.size());
        version = version.substr(0, at);
    }
    if (const std::size_t at = version.find(begins_mark); at != version.npos)
        out.begins = version.substr(at + begins_mark.size());
    return out;
}

}  // namespace waymark::capture::perf
