#include "waymark/capture/not_permitted.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "disk_access.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"

namespace waymark::capture {
namespace {

constexpr std::string_view not_permitted_first_line = "waymark-not-permitted 1";
/// More is no file of ours.
constexpr std::uint64_t max_not_permitted_bytes = 4096;

}  // namespace

std::string not_permitted_text(const std::vector<std::string>& reasons) {
    std::string out = std::string(not_permitted_first_line) + "\n";
    for (const std::string& reason : reasons) out += reason + "\n";
    return out;
}

std::vector<std::string> read_not_permitted(std::string_view text) {
    std::vector<std::string> out;
    bool first = true;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const bool printable = std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
        if (!printable || (first && line != not_permitted_first_line)) return {};
        if (!first && !line.empty()) out.emplace_back(line);
        first = false;
    }
    return out;
}

std::vector<std::string> not_permitted(const Capture& snapshot) {
    // Another capture may lie in the same folder.
    const std::filesystem::path folder = snapshot.path.parent_path();
    if (snapshot.path != snapshot_file(folder)) return {};
    const auto text = DiskAccess(not_permitted_file).text(folder / not_permitted_file, max_not_permitted_bytes);
    return text ? read_not_permitted(*text) : std::vector<std::string>();
}

}  // namespace waymark::capture
