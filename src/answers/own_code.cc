#include <algorithm>
#include <array>
#include <string_view>

#include "waymark/answers/own_code.h"

namespace waymark::answers {

namespace {

/// Libraries that come with a compiler or a system, wherever they are stored, such as in a copy of a system's files.
bool is_runtime(std::string_view name) {
    constexpr std::array<std::string_view, 12> names{"libc",      "libm",      "libpthread", "libdl",
                                                     "librt",     "libgcc_s",  "libstdc++",  "libc++",
                                                     "libc++abi", "libatomic", "libgomp",    "libresolv"};
    return std::ranges::find(names, name.substr(0, std::min(name.find(".so"), name.find("-2.")))) != names.end();
}

}  // namespace

bool is_system_file(std::string_view path) {
    constexpr std::array<std::string_view, 7> folders{"/usr/",    "/lib/",  "/lib32/", "/lib64/",
                                                      "/system/", "/apex/", "/vendor/"};
    if (path.starts_with('[')) return true;  // [vdso], [kernel.kallsyms]
    const std::string_view name = path.substr(path.rfind('/') + 1);
    const bool shared = name.ends_with(".so") || name.find(".so.") != name.npos;
    if (name.starts_with("vmlinux") || name.ends_with(".ko") ||
        (shared && (name.starts_with("ld-") || is_runtime(name))))
        return true;
    return std::ranges::any_of(folders, [&](std::string_view folder) { return path.starts_with(folder); });
}

std::vector<CodeKind> code_kinds(const Answers& answers) {
    std::vector<bool> system(answers.images.size()), has_lines(answers.images.size());
    for (std::size_t i = 0; i < system.size(); ++i) {
        const Image& image = answers.images[i];
        system[i] = is_system_file(!image.recorded.empty() ? image.recorded
                                   : !image.path.empty()   ? image.path
                                                           : image.name);
    }
    for (const Function& f : answers.functions)
        if (f.image < has_lines.size() && f.source < answers.sources.size()) has_lines[f.image] = true;
    std::vector<CodeKind> out(answers.functions.size(), CodeKind::system);
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Function& f = answers.functions[i];
        if (f.synthetic || f.image >= system.size() || system[f.image]) continue;
        const bool known = f.source < answers.sources.size();
        const bool own = known ? !answers.sources[f.source].path.starts_with("/usr/") : !has_lines[f.image];
        out[i] = own ? CodeKind::own : CodeKind::library;
    }
    return out;
}

std::vector<bool> functions_of(const Answers& answers, CodeKind most) {
    const std::vector<CodeKind> kinds = code_kinds(answers);
    std::vector<bool> out(kinds.size());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kinds[i] <= most;
    return out;
}

std::vector<bool> own_functions(const Answers& answers) { return functions_of(answers, CodeKind::own); }

}  // namespace waymark::answers
