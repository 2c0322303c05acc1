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
    kallsyms_functions(*text, [&](const KernelFunction&) { return !(any = true); });
    if (any) return Nothing{};
    return Error{Errc::usage, fmt::format("--kallsyms: {} {}", file.string(), no_kallsyms)};
}

void kallsyms_functions(std::string_view text, const std::function<bool(KernelFunction function)>& take) {
    while (!text.empty()) {
        const std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        char* end = nullptr;
        const std::uint64_t address = std::strtoull(line.c_str(), &end, 16);
        if (address == 0 || end == nullptr || end[0] != ' ' || end[1] == 0 || end[2] != ' ') continue;
        if (end[1] != 't' && end[1] != 'T' && end[1] != 'w' && end[1] != 'W') continue;
        const std::string_view rest(end + 3);
        const std::size_t tab = rest.find('\t');
        KernelFunction function{address, std::string(rest.substr(0, tab)), {}, end[1] == 'T'};
        if (function.name.empty() || function.name[0] == '$') continue;
        if (tab != rest.npos) {
            const std::string_view module = rest.substr(tab + 1);
            if (module.size() > 2 && module.front() == '[' && module.find(']') != module.npos)
                function.module = module.substr(1, module.find(']') - 1);
        }
        if (!take(std::move(function))) return;
    }
}

}  // namespace waymark::analysis
