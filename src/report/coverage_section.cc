#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/coverage.h"
#include "waymark/answers/own_code.h"
#include "waymark/answers/sampled.h"
#include "waymark/core/numbers.h"

namespace waymark::report {

using namespace answers;

namespace {

void write_classes(Json& json, const std::vector<const CoverageRow*>& rows) {
    const auto classes = [&](std::string_view name, CoverageClasses CoverageRow::*member) {
        json.key(name).begin_array();
        for (const auto part :
             {&CoverageClasses::executed, &CoverageClasses::not_executed, &CoverageClasses::not_observed}) {
            json.begin_array();
            for (const CoverageRow* row : rows) json.number((row->*member).*part);
            json.end_array();
        }
        json.end_array();
    };
    classes("instructions", &CoverageRow::instructions);
    classes("lines", &CoverageRow::lines);
    classes("directions", &CoverageRow::directions);
}

/// Writes files, followed by the sum of all files.
void write_files(Json& json, std::string_view name, const CoverageCounts& counts) {
    std::vector<const CoverageRow*> rows;
    for (const CoverageRow& row : counts.rows) rows.push_back(&row);
    rows.push_back(&counts.all);
    json.key(name).begin_object();
    json.strings("name", rows, [](const CoverageRow* r) -> const std::string& { return r->name; });
    json.column("source", rows, [](const CoverageRow* r) { return index(r->source); });
    write_classes(json, rows);
    json.key("functions").number(counts.functions);
    json.key("ran").number(counts.functions_that_ran);
    json.end_object();
}

}  // namespace

bool shows_coverage(const Answers& answers) {
    return !of_samples(answers) && answers.unit != "DPU" && !answers.instructions.empty();
}

PageSection coverage_section(const Answers& answers, Limit most_rows, answers::CodeKind most) {
    if (!shows_coverage(answers)) return {"{}"};
    const std::vector<bool> own = answers::functions_of(answers, most);
    const CoverageCounts files = coverage_counts(answers, "file"), functions = coverage_counts(answers, "function");
    Json json;
    json.begin_object();
    write_files(json, "files", files);
    write_files(json, "own", coverage_counts(answers, "file", own));

    const auto missing = [](const CoverageRow& r) { return r.instructions.all() - r.instructions.executed; };
    const auto kept = greatest(functions.rows.size(), most_rows, [&](std::size_t a, std::size_t b) {
        const CoverageRow &one = functions.rows[a], &other = functions.rows[b];
        const auto is_own = [&](const CoverageRow& r) { return r.function < own.size() && own[r.function]; };
        if (is_own(one) != is_own(other)) return is_own(one);
        return missing(one) > missing(other);
    });
    std::vector<const CoverageRow*> rows;
    for (const std::size_t i : kept) rows.push_back(&functions.rows[i]);
    json.key("functions").begin_object();
    json.column("function", rows, [](const CoverageRow* r) { return index(r->function); });
    write_classes(json, rows);
    json.end_object();

    const std::vector<Uncovered> uncovered = uncovered_code(answers);
    const auto longest = greatest(uncovered.size(), most_rows, [&](std::size_t a, std::size_t b) {
        return uncovered[a].instructions > uncovered[b].instructions;
    });
    std::vector<const Uncovered*> shown;
    for (const std::size_t i : longest) shown.push_back(&uncovered[i]);
    json.key("uncovered").begin_object();
    json.column("seen", shown, [](const Uncovered* u) { return static_cast<int>(u->seen); });
    json.column("what", shown, [](const Uncovered* u) { return static_cast<int>(u->what); });
    json.column("instructions", shown, [](const Uncovered* u) { return u->instructions; });
    json.addresses("begin", shown, [](const Uncovered* u) { return u->begin; });
    json.column("function", shown, [](const Uncovered* u) { return index(u->function); });
    json.column("source", shown, [](const Uncovered* u) { return index(u->source); });
    json.column("first", shown, [](const Uncovered* u) { return u->first_line; });
    json.column("last", shown, [](const Uncovered* u) { return u->last_line; });
    json.end_object();
    json.key("bound").string(files.bound);
    json.strings("notWhole", files.not_whole, [](const std::string& name) -> const std::string& { return name; });
    json.end_object();

    std::string left_out;
    if (rows.size() < functions.rows.size())
        left_out = fmt::format("Coverage by function has {} of {} functions; its sums are of all.",
                               grouped(rows.size()), grouped(functions.rows.size()));
    if (shown.size() < uncovered.size())
        left_out += fmt::format("{}Code that did not run is listed in its {} longest stretches, of {}.",
                                left_out.empty() ? "" : " ", grouped(shown.size()), grouped(uncovered.size()));
    return {json.str(), left_out};
}

}  // namespace waymark::report
