/// `waymark loops` and `waymark exceptions`.
#include <algorithm>
#include <tuple>

#include "loop_words.h"
#include "views.h"

namespace waymark::cli {

using analysis::Answers;
using analysis::ExceptionRow;
using analysis::Loop;

Status show_loops(const Answers& answers, const ViewOptions& options, Output& out) {
    const auto metric = find_metric(answers, options.metric);
    if (!metric) {
        say("error", metric.error().message);
        return usage;
    }
    std::vector<const Loop*> rows;
    std::uint64_t all = 0;
    bool costs = false;
    for (const Loop& l : answers.loops) {
        if (l.iterations == 0) continue;
        rows.push_back(&l);
        costs |= !l.costs.empty();
    }
    if (rows.empty()) {
        const auto trust = std::find_if(answers.trust.begin(), answers.trust.end(),
                                        [](const analysis::Trust& t) { return t.view == "loops"; });
        const bool not_known = trust != answers.trust.end() && !trust->not_known.empty();
        say("error",
            fmt::format("{}: {}", answers.capture,
                        answers.unit == "SPE"   ? std::string("samples do not show loops; waymark branches shows which "
                                                                "branches go back")
                        : answers.unit == "DPU" ? not_known ? trust->not_known : std::string(no_hardware_loop)
                                                : std::string("no code of a known image was repeated")));
        return nothing;
    }
    // Loops lie in one another, so their costs do not add up to a whole; shares are of all that ran.
    if (costs)
        for (const analysis::FunctionCosts& f : analysis::function_costs(answers))
            all += f.self.size() > *metric ? f.self[*metric] : 0;
    const auto cost = [&](const Loop& l) { return l.costs.size() > *metric ? l.costs[*metric] : 0; };
    std::stable_sort(rows.begin(), rows.end(), [&](const Loop* a, const Loop* b) {
        const auto key = [&](const Loop* l) {
            return options.sort == "entries"                ? l->entries
                   : options.sort == "address"              ? 0
                   : options.sort == "iterations" || !costs ? l->iterations
                                                            : cost(*l);
        };
        return std::tuple(key(b), a->head, a->depth) < std::tuple(key(a), b->head, b->depth);
    });
    std::vector<Rows::Column> columns;
    if (costs) columns.push_back({"", "share of " + answers.metrics[*metric].name, true});
    // Programs know the entries of hardware loops as runs.
    const bool hardware = answers.unit == "DPU";
    columns.insert(columns.end(),
                   {{hardware ? "runs" : "entries", "entries"}, {"iterations", "iterations"}, {"mean", "mean"}});
    if (costs)
        for (const analysis::Metric& m : answers.metrics) columns.push_back({m.name, m.name});
    columns.insert(columns.end(), {{"head", "head", true},
                                   {"tail", "tail", true},
                                   {"function", "in", true},
                                   {"line", "line", true},
                                   {"file", ""}});
    if (!hardware) columns.insert(columns.end(), {{"depth", "depth"}, {"outer", ""}, {"kind", "kind", true}});
    Rows table(columns);
    for (const Loop* l : rows) {
        std::vector<Cell> cells;
        if (costs) cells.push_back(Cell::bar(cost(*l), all));
        cells.emplace_back(l->entries);
        cells.emplace_back(l->iterations);
        cells.push_back(Cell::mean(l->iterations, l->entries));
        if (costs)
            for (std::size_t m = 0; m < answers.metrics.size(); ++m)
                cells.push_back(m < l->costs.size() ? Cell(l->costs[m]) : Cell());
        const std::string line = line_text(answers, l->source, l->line);
        cells.push_back(Cell::hex(l->head));
        cells.push_back(Cell::hex(l->tail));
        cells.push_back(Cell(function_name(answers, l->function)).in(Colour::bold));
        cells.push_back(line.empty() ? Cell() : Cell(line).in(Colour::dim));
        cells.push_back(l->source == analysis::none ? Cell() : Cell(path_text(answers, l->source)));
        if (!hardware) {
            cells.emplace_back(std::uint64_t{l->depth});
            cells.push_back(l->outer ? Cell::hex(*l->outer) : Cell());
            cells.emplace_back(l->irreducible ? "irreducible" : "natural");
        }
        table.add(std::move(cells));
    }
    print_rows(out, answers, options, hardware ? hardware_loops : loops_by_flow, table);
    if (options.format == "text" && costs)
        out.write("Costs are of all code of a loop, loops inside included, so they do not add up.\n");
    return decoded;
}

Status show_exceptions(const Answers& answers, const ViewOptions& options, Output& out) {
    if (answers.exceptions.empty()) {
        say("error",
            fmt::format("{}: {}", answers.capture,
                        answers.unit == "SPE"   ? "samples do not record exceptions"
                        : answers.unit == "DPU" ? "no interrupt, exception or system call is in the trace; modes "
                                                  "task and flow show them"
                                                : "no exception is in the trace"));
        return nothing;
    }
    std::vector<const ExceptionRow*> rows;
    std::uint64_t all = 0;
    bool timed = false;
    for (const ExceptionRow& e : answers.exceptions) {
        rows.push_back(&e);
        all += e.times;
        timed |= e.sum != 0;
    }
    if (options.sort == "time" && !timed) say_not_sorted(options.sort, "not known here", "times");
    std::stable_sort(rows.begin(), rows.end(), [&](const ExceptionRow* a, const ExceptionRow* b) {
        const auto key = [&](const ExceptionRow* e) {
            return options.sort == "time" && timed ? e->sum : options.sort == "name" ? 0 : e->times;
        };
        return std::tuple(key(b), std::string_view(a->name), a->number) <
               std::tuple(key(a), std::string_view(b->name), b->number);
    });
    const std::string unit = answers.exceptions.front().unit;
    Rows table({{"", "share of exceptions", true},
                {"times", "times"},
                {"nested", "nested"},
                {"returned", "returned"},
                {"least", timed ? "least" : ""},
                {"mean", timed ? "mean" : ""},
                {"most", timed ? "most" : ""},
                {"sum", timed ? unit : ""},
                {"unit", ""},
                {"number", ""},
                {"exception", "exception", true}});
    for (const ExceptionRow* e : rows)
        table.add({Cell::bar(e->times, all), Cell(e->times), Cell(e->nested), Cell(e->returned), Cell(e->least),
                   Cell::mean(e->sum, e->returned), Cell(e->most), Cell(e->sum), Cell(unit),
                   Cell(std::uint64_t{e->number}), Cell(e->name).in(Colour::bold)});
    print_rows(out, answers, options,
               timed ? fmt::format("exceptions: from entry to return, in {}", unit) : std::string("exceptions"), table);
    return decoded;
}

}  // namespace waymark::cli
