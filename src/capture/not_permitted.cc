#include "waymark/capture/not_permitted.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "disk_access.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/wire.h"

namespace waymark::capture {
namespace {

constexpr std::string_view not_permitted_first_line = "waymark-not-permitted 2";
/// Version 1 of the file has no sizes.
constexpr std::string_view not_permitted_version_1 = "waymark-not-permitted 1";
constexpr std::string_view size_begins = " (instructions=", size_goes_on = ", ranges=", size_ends = ")";
/// A longer file cannot be one that Waymark wrote.
constexpr std::uint64_t max_not_permitted_bytes = 4096;

/// A line without size stays a reason as a whole.
NotPermitted read_reason(std::string_view line) {
    NotPermitted out{std::string(line)};
    const std::size_t begin = line.rfind(size_begins);
    if (begin == line.npos || begin == 0 || !line.ends_with(size_ends)) return out;
    std::string_view sizes = line.substr(begin + size_begins.size());
    sizes.remove_suffix(size_ends.size());
    const std::size_t between = sizes.find(size_goes_on);
    if (between == sizes.npos) return out;
    std::uint64_t instructions = 0, ranges = 0;
    if (!wire::scan_number(sizes.substr(0, between), instructions) ||
        !wire::scan_number(sizes.substr(between + size_goes_on.size()), ranges))
        return out;
    return {std::string(line.substr(0, begin)), instructions, ranges};
}

}  // namespace

std::string not_permitted_text(const std::vector<NotPermitted>& reasons) {
    std::string out = std::string(not_permitted_first_line) + "\n";
    for (const NotPermitted& one : reasons) {
        out += one.reason;
        if (one.instructions)
            out += fmt::format("{}{}{}{}{}", size_begins, *one.instructions, size_goes_on, one.ranges.value_or(0),
                               size_ends);
        out += "\n";
    }
    return out;
}

std::vector<NotPermitted> read_not_permitted(std::string_view text) {
    std::vector<NotPermitted> out;
    bool first = true;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const bool printable = std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
        if (!printable || (first && line != not_permitted_first_line && line != not_permitted_version_1)) return {};
        if (!first && !line.empty()) out.push_back(read_reason(line));
        first = false;
    }
    return out;
}

std::vector<NotPermitted> not_permitted(const Capture& snapshot) {
    // Another capture may lie in the same folder.
    const std::filesystem::path folder = snapshot.path.parent_path();
    if (snapshot.path != snapshot_file(folder)) return {};
    const auto text = DiskAccess(not_permitted_file).text(folder / not_permitted_file, max_not_permitted_bytes);
    return text ? read_not_permitted(*text) : std::vector<NotPermitted>();
}

}  // namespace waymark::capture
