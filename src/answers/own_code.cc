#include <algorithm>
#include <array>
#include <string_view>

#include "waymark/answers/coverage.h"

namespace waymark::answers {

namespace {

/// Files that belong to the system. If the program itself was installed there, no code is its own.
bool of_the_system(std::string_view path) {
    constexpr std::array<std::string_view, 4> folders{"/usr/", "/lib/", "/lib32/", "/lib64/"};
    if (path.starts_with('[')) return true;  // [vdso], [kernel.kallsyms]
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if (name.starts_with("vmlinux") || name.ends_with(".ko") || name.starts_with("ld-linux")) return true;
    return std::ranges::any_of(folders, [&](std::string_view folder) { return path.starts_with(folder); });
}

}  // namespace

std::vector<bool> own_functions(const Answers& answers) {
    std::vector<bool> system(answers.images.size()), has_lines(answers.images.size());
    for (std::size_t i = 0; i < system.size(); ++i) {
        const Image& image = answers.images[i];
        system[i] = of_the_system(!image.recorded.empty() ? image.recorded
                                  : !image.path.empty()   ? image.path
                                                          : image.name);
    }
    for (const Function& f : answers.functions)
        if (f.image < has_lines.size() && f.source < answers.sources.size()) has_lines[f.image] = true;
    std::vector<bool> out(answers.functions.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
        const Function& f = answers.functions[i];
        if (f.synthetic || f.image >= system.size() || system[f.image]) continue;
        const bool known = f.source < answers.sources.size();
        out[i] = known ? !answers.sources[f.source].path.starts_with("/usr/") : !has_lines[f.image];
    }
    return out;
}

}  // namespace waymark::answers
