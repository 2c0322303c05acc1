#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {
bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
        const auto same = [](unsigned char c) { return c == '-' || c == '_' ? ' ' : std::tolower(c); };
        return same(x) == same(y);
    });
}
}  // namespace

Result<std::size_t> find_metric(const Answers& answers, std::string_view name) {
    if (name.empty()) return std::size_t{0};
    std::string list;
    for (std::size_t m = 0; m < answers.metrics.size(); ++m) {
        if (same_word(answers.metrics[m].name, name)) return m;
        list += (list.empty() ? "" : ", ") + answers.metrics[m].name;
    }
    return Error{Errc::usage,
                 fmt::format("--metric: '{}' is not a metric of {}, which has {}", name, answers.capture, list)};
}

std::string_view path_text(const Answers& answers, Index source) {
    return source < answers.sources.size() ? std::string_view(answers.sources[source].path) : std::string_view();
}
std::string line_text(const Answers& answers, Index source, std::uint32_t line) {
    const std::string_view path = path_text(answers, source);
    if (path.empty()) return {};
    const auto slash = path.rfind('/');
    const std::string_view file = slash == path.npos ? path : path.substr(slash + 1);
    return line == 0 ? std::string(file) : fmt::format("{}:{}", file, line);
}
std::string_view function_name(const Answers& answers, Index function) {
    const bool known = function < answers.functions.size() && !answers.functions[function].name.empty();
    return known ? std::string_view(answers.functions[function].name) : "[unknown]";
}
std::string_view image_name(const Answers& answers, Index image) {
    return image < answers.images.size() ? std::string_view(answers.images[image].name) : std::string_view();
}
std::string place_text(const Answers& answers, Index function, std::uint64_t address) {
    if (function >= answers.functions.size()) return fmt::format("{:#x}", address);
    const Function& f = answers.functions[function];
    if (f.synthetic) return f.name;
    if (f.address == 0 || address < f.address) return fmt::format("{} {:#x}", f.name, address);
    return address == f.address ? f.name : fmt::format("{}+{:#x}", f.name, address - f.address);
}
std::string sentence_of(const Finding& finding) {
    if (finding.captures < 2) return finding.what;
    return fmt::format("{}{} {} captures have this finding, perhaps with other numbers.", finding.what,
                       finding.what.ends_with('.') ? "" : ".", grouped(finding.captures));
}
std::string costs_name(const Metric& metric) { return metric.exact ? metric.name : metric.name + " (estimate)"; }

std::vector<std::string> trust_lines(const Trust& trust) {
    std::vector<std::string> out;
    for (const auto& [kind, clause] : {std::pair("exact     ", &trust.exact), std::pair("estimated ", &trust.estimated),
                                       std::pair("not known ", &trust.not_known)})
        if (!clause->empty()) out.push_back(kind + *clause);
    return out;
}

std::string metric_note(const Answers& answers, std::string_view metric) {
    for (const Metric& m : answers.metrics)
        if (m.name == metric && !m.note.empty()) return fmt::format("{}: {}", m.name, m.note);
    return {};
}

std::string not_sorted(std::string_view asked, std::string_view why, std::string_view by) {
    return fmt::format("--sort {}: that is {}; rows are sorted by {}", asked, why, by);
}

}  // namespace waymark::answers
