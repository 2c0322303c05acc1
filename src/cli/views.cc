#include "views.h"

#include <algorithm>

namespace waymark::cli {

using analysis::Answers;
using analysis::Finding;
using analysis::Index;

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
    return Error{Errc::usage, fmt::format("--metric {}: {} has {}", name, answers.capture, list)};
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
    return function < answers.functions.size() ? std::string_view(answers.functions[function].name) : "[unknown]";
}
std::string_view image_name(const Answers& answers, Index image) {
    return image < answers.images.size() ? std::string_view(answers.images[image].name) : std::string_view();
}
std::string place_text(const Answers& answers, Index function, std::uint64_t address) {
    if (function >= answers.functions.size()) return fmt::format("{:#x}", address);
    const analysis::Function& f = answers.functions[function];
    if (f.synthetic) return f.name;
    if (f.address == 0 || address < f.address) return fmt::format("{} {:#x}", f.name, address);
    return address == f.address ? f.name : fmt::format("{}+{:#x}", f.name, address - f.address);
}
std::string_view kind_text(analysis::Branch::Kind kind) {
    using Kind = analysis::Branch::Kind;
    switch (kind) {
        case Kind::conditional: return "conditional";
        case Kind::unconditional: return "direct";
        case Kind::call: return "call";
        case Kind::indirect: return "indirect";
        case Kind::indirect_call: return "indirect call";
        case Kind::function_return: return "return";
    }
    return "";
}
std::string costs_name(const analysis::Metric& metric) {
    return metric.exact ? metric.name : metric.name + " (estimate)";
}

void print_head(Output& out, const Answers& answers) {
    const bool colours = out.colours();
    out.print("capture  {} ({})\n", Coloured(answers.capture, Colour::bold, colours), answers.unit);
    for (const Finding& f : answers.health) {
        using Severity = Finding::Severity;
        if (f.severity < Severity::warning) continue;
        const bool bad = f.severity == Severity::bad;
        const std::string what = f.what.ends_with('.') ? f.what.substr(0, f.what.size() - 1) : f.what;
        out.print("{}  {}{}{}\n", Coloured(bad ? "bad    " : "warning", bad ? Colour::red : Colour::yellow, colours),
                  what, f.todo.empty() ? "" : ". ", f.todo);
    }
}

void print_trust(Output& out, const analysis::Trust& trust) {
    if (!trust.exact.empty()) out.print("exact     {}\n", trust.exact);
    if (!trust.estimated.empty()) out.print("estimated {}\n", trust.estimated);
    if (!trust.not_known.empty()) out.print("not known {}\n", trust.not_known);
}

std::string json_head(const Answers& answers) {
    std::string out = fmt::format("\"capture\": {},\n  \"unit\": {},\n  \"metrics\": [", json_string(answers.capture),
                                  json_string(answers.unit));
    for (const analysis::Metric& m : answers.metrics)
        out += fmt::format("{}{{\"name\": {}, \"unit\": {}, \"exact\": {}, \"note\": {}}}",
                           &m == answers.metrics.data() ? "" : ", ", json_string(m.name), json_string(m.unit), m.exact,
                           json_string(m.note));
    out += "],\n  \"health\": [";
    constexpr const char* names[] = {"good", "note", "warning", "bad"};
    for (const Finding& f : answers.health)
        out += fmt::format("{}{{\"severity\": \"{}\", \"what\": {}, \"todo\": {}}}",
                           &f == answers.health.data() ? "" : ", ", names[static_cast<std::size_t>(f.severity)],
                           json_string(f.what), json_string(f.todo));
    return out + "]";
}

void say_not_sorted(std::string_view asked, std::string_view why, std::string_view by) {
    say("note", fmt::format("--sort {}: that is {}; rows are sorted by {}", asked, why, by));
}

void print_rows(Output& out, const Answers& answers, const ViewOptions& options, std::string_view title,
                const Rows& rows, std::string_view json_more) {
    if (options.format == "tsv") return rows.print_tsv(out);
    if (options.format == "json") {
        out.write(fmt::format("{{\n  {},\n", json_head(answers)));
        if (!json_more.empty()) out.write(fmt::format("  {},\n", json_more));
        out.write(fmt::format("  \"rows\": {}\n}}\n", rows.json()));
        return;
    }
    print_head(out, answers);
    out.print("\n{}\n", title);
    rows.print_text(out, options.limit, "  ");
}

}  // namespace waymark::cli
