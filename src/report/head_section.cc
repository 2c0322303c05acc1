#include <algorithm>
#include <map>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/own_code.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"

namespace waymark::report {

using namespace answers;

namespace {

void write_findings(Json& json, const Answers& answers, const std::vector<std::string>& left_out) {
    const auto write = [&json](int severity, const Finding& finding) {
        json.begin_object();
        json.key("severity").number(severity);
        json.key("what").string(sentence_of(finding));
        json.key("todo").string(finding.todo);
        if (finding.offset) json.key("offset").string(fmt::format("{:#x}", *finding.offset));
        json.end_object();
    };
    json.key("health").begin_array();
    // The most severe findings come first; omissions of the report are notes.
    bool said = false;
    const auto say_left_out = [&] {
        if (!std::exchange(said, true))
            for (const std::string& what : left_out)
                write(static_cast<int>(Finding::Severity::note),
                      {Finding::Severity::note,
                       "This report is kept small: " + what,
                       "Nothing is lost in the capture: the other commands and a larger --max-size show all.",
                       {}});
    };
    for (const Finding& finding : answers.health) {
        if (finding.severity < Finding::Severity::warning) say_left_out();
        write(static_cast<int>(finding.severity), finding);
    }
    say_left_out();
    json.end_array();
}

void write_functions(Json& json, const Answers& answers, answers::CodeKind most) {
    const std::vector<FunctionCosts> costs = function_costs(answers);
    const std::vector<Function>& functions = answers.functions;
    json.key("functions").begin_object();
    json.strings("name", functions, [](const Function& f) -> const std::string& { return f.name; });
    json.strings("linkage", functions,
                 [](const Function& f) { return f.linkage_name == f.name ? std::string() : f.linkage_name; });
    json.column("image", functions, [](const Function& f) { return index(f.image); });
    json.addresses("address", functions, [](const Function& f) { return f.address; });
    json.column("bytes", functions, [](const Function& f) { return f.bytes; });
    json.column("source", functions, [](const Function& f) { return index(f.source); });
    json.column("line", functions, [](const Function& f) { return f.line; });
    const std::vector<bool> own = answers::functions_of(answers, most);
    json.key("own").begin_array();
    for (const bool is : own) json.number(is ? 1 : 0);
    json.end_array();
    json.column("synthetic", functions, [](const Function& f) { return f.synthetic ? 1 : 0; });
    json.column("calls", costs, [](const FunctionCosts& c) { return c.calls; });
    write_costs(json, "self", answers, costs, [](const FunctionCosts& c) -> const Costs& { return c.self; });
    if (!answers.calls.empty())
        write_costs(json, "inclusive", answers, costs,
                    [](const FunctionCosts& c) -> const Costs& { return c.inclusive; });
    json.end_object();
}

void write_charts(Json& json, const Answers& answers) {
    json.key("charts").begin_array();
    for (const Chart& chart : answers.charts) {
        json.begin_object();
        json.key("kind").number(static_cast<int>(chart.kind));
        json.key("title").string(chart.title);
        json.key("xUnit").string(chart.x_unit);
        json.key("yUnit").string(chart.y_unit);
        json.key("note").string(chart.note);
        json.strings("label", chart.bars, [](const Chart::Bar& b) -> const std::string& { return b.label; });
        json.column("value", chart.bars, [](const Chart::Bar& b) { return b.value; });
        json.strings("barNote", chart.bars, [](const Chart::Bar& b) -> const std::string& { return b.note; });
        json.end_object();
    }
    json.end_array();
}

/// Returns the number of rows that did not fit.
std::uint64_t write_tables(Json& json, const Answers& answers, Limit most_rows) {
    std::uint64_t more = 0;
    json.key("tables").begin_array();
    for (const Table& table : answers.tables) {
        json.begin_object();
        json.key("title").string(table.title);
        json.key("note").string(table.note);
        // Columns without a heading are for programs only.
        std::vector<std::size_t> shown;
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            if (!table.columns[c].head.empty()) shown.push_back(c);
        json.strings("columns", shown, [&](std::size_t c) -> const std::string& { return table.columns[c].head; });
        json.column("numbers", shown, [&](std::size_t c) { return table.columns[c].left() ? 0 : 1; });
        json.key("rows").begin_array();
        for (std::size_t i = 0; i < table.rows.size() && i < most_rows; ++i) {
            json.begin_array();
            for (const std::size_t c : shown) {
                const Cell& cell = table.rows[i][c];
                json.string(table.columns[c].left() ? cell.shown : cell.field());
            }
            json.end_array();
        }
        json.end_array();
        json.key("of").number(table.rows.size());
        json.end_object();
        more += table.rows.size() - std::min<std::uint64_t>(table.rows.size(), most_rows);
    }
    json.end_array();
    return more;
}

}  // namespace

PageSection head_section(const Answers& answers, Limit most_rows, const Against* against,
                         const std::vector<std::string>& left_out, answers::CodeKind most, const answers::Steps* steps,
                         const Served* served) {
    Json json;
    json.begin_object();
    json.key("format").number(1);
    json.key("capture").string(answers.capture);
    json.key("unit").string(answers.unit);
    json.key("version").string(answers.version);
    json.key("traceBytes").number(answers.trace_bytes);
    if (served != nullptr) {
        json.key("served").begin_object();
        json.key("instructions").number(served->instructions);
        json.key("most").number(served->most);
        json.key("complete").boolean(served->complete);
        json.key("part").boolean(served->part);
        json.key("begin").number(served->begin);
        json.key("end").number(served->end);
        json.end_object();
    }
    json.key("run").string(answers::account_sentence(answers.account));
    json.key("summary").begin_array();
    for (const Figure& figure : answers.summary) {
        json.begin_object();
        json.key("name").string(figure.name);
        json.key("value").string(figure.value);
        json.key("note").string(figure.note);
        json.end_object();
    }
    json.end_array();
    json.key("metrics").begin_array();
    for (const Metric& metric : answers.metrics) {
        json.begin_object();
        json.key("name").string(metric.name);
        json.key("unit").string(metric.unit);
        json.key("figures").string(word_of(answers.account, metric.exact));
        json.key("counted").boolean(metric.exact);
        json.key("note").string(metric.note);
        json.end_object();
    }
    json.end_array();
    json.key("images").begin_array();
    for (const Image& image : answers.images) {
        json.begin_object();
        json.key("name").string(image.name);
        json.key("path").string(image.path);
        json.key("buildId").string(image.build_id);
        json.end_object();
    }
    json.end_array();
    json.strings("sources", answers.sources, [](const SourceFile& s) -> const std::string& { return s.path; });
    write_functions(json, answers, most);
    json.key("loops").begin_object();
    json.addresses("head", answers.loops, [](const Loop& l) { return l.head; });
    json.addresses("tail", answers.loops, [](const Loop& l) { return l.tail; });
    json.column("function", answers.loops, [](const Loop& l) { return index(l.function); });
    json.column("source", answers.loops, [](const Loop& l) { return index(l.source); });
    json.column("line", answers.loops, [](const Loop& l) { return l.line; });
    json.column("entries", answers.loops, [](const Loop& l) { return l.entries; });
    json.column("iterations", answers.loops, [](const Loop& l) { return l.iterations; });
    json.column("depth", answers.loops, [](const Loop& l) { return l.depth; });
    json.column("irreducible", answers.loops, [](const Loop& l) { return l.irreducible ? 1U : 0U; });
    write_costs(json, "costs", answers, answers.loops, [](const Loop& l) -> const Costs& { return l.costs; });
    json.end_object();
    json.key("exceptions").begin_array();
    for (const ExceptionRow& e : answers.exceptions) {
        json.begin_object();
        json.key("name").string(e.name);
        json.key("number").number(e.number);
        json.key("times").number(e.times);
        json.key("nested").number(e.nested);
        json.key("returned").number(e.returned);
        json.key("least").number(e.least);
        json.key("most").number(e.most);
        json.key("sum").number(e.sum);
        json.key("unit").string(e.unit);
        json.end_object();
    }
    json.end_array();
    json.key("levels").begin_array();
    for (const LevelRow& l : answers.levels) {
        json.begin_object();
        json.key("name").string(answers::name(l));
        json.key("entered").number(l.entered);
        json.key("costs").begin_array();
        for (std::size_t metric = 0; metric < answers.metrics.size(); ++metric) json.number(cost_of(l.costs, metric));
        json.end_array();
        json.end_object();
    }
    json.end_array();
    json.key("trust").begin_array();
    for (const Trust& t : answers.trust) {
        json.begin_object();
        json.key("view").string(t.view);
        json.key("exact").string(t.exact);
        json.key("estimated").string(t.estimated);
        json.key("notKnown").string(t.not_known);
        json.end_object();
    }
    json.end_array();
    write_charts(json, answers);
    const std::uint64_t more = write_tables(json, answers, most_rows);
    std::vector<std::string> findings = left_out;
    std::string own;
    if (more != 0) findings.push_back(own = fmt::format("Tables have no room for {} rows.", grouped(more)));
    write_findings(json, answers, findings);
    // The page decides from this what to show, before the other parts are unpacked.
    json.key("has").begin_object();
    json.key("calls").number(answers.calls.size());
    json.key("instructions").number(answers.instructions.size());
    json.key("lines").number(answers.lines.size());
    json.key("coverage").number(shows_coverage(answers) ? 1 : 0);
    json.key("against").number(against != nullptr ? against->diff.view.table.size() : 0);
    json.key("branches").number(answers.branches.size());
    json.key("edges").number(answers.edges.size());
    json.key("blocks").number(answers.blocks.size());
    json.key("slices").number(answers.timeline.slices.size());
    json.key("marks").number(answers.timeline.marks.size());
    json.key("series").number(answers.timeline.series.size());
    json.key("steps").number(steps == nullptr ? 0 : steps->streams.size());
    json.end_object();
    json.end_object();
    return {json.str(), own};
}

}  // namespace waymark::report
