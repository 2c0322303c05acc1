#include "waymark/analysis/kallsyms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "waymark/capture/text_file.h"

namespace waymark::analysis {

namespace fs = std::filesystem;

Result<std::string> read_kallsyms(const fs::path& file) {
    constexpr std::size_t most = std::size_t{256} << 20;
    return capture::read_text_file(file, most);
}

Status check_kallsyms(const fs::path& file) {
    std::error_code unreadable;
    if (!fs::exists(file, unreadable))
        return Error{Errc::usage, fmt::format("--kallsyms: there is no file {}", file.string())};
    if (const auto error = capture::no_text_file(file)) return Error{error->code, "--kallsyms: " + error->message};
    if (!fs::is_regular_file(file, unreadable)) return Nothing{};
    const auto text = read_kallsyms(file);
    if (!text) return Error{text.error().code, "--kallsyms: " + text.error().message};
    bool any = false;
    kallsyms_functions(*text, [&](std::uint64_t, const std::string&) { return !(any = true); });
    if (any) return Nothing{};
    return Error{Errc::usage, fmt::format("--kallsyms: {} {}", file.string(), no_kallsyms)};
}

void kallsyms_functions(std::string_view text,
                        const std::function<bool(std::uint64_t address, const std::string& name)>& take) {
    while (!text.empty()) {
        const std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        char* end = nullptr;
        const std::uint64_t address = std::strtoull(line.c_str(), &end, 16);
        if (address == 0 || end == nullptr || end[0] != ' ' || end[1] == 0 || end[2] != ' ') continue;
        if (end[1] != 't' && end[1] != 'T' && end[1] != 'w' && end[1] != 'W') continue;
        std::string name(end + 3);
        name = name.substr(0, name.find('\t'));
        if (name.empty() || name[0] == '$') continue;
        if (!take(address, name)) return;
    }
}

}  // namespace waymark::analysis
