/// `waymark loops` and `waymark exceptions`.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "columns.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/only.h"
#include "waymark/answers/sampled.h"

namespace waymark::answers {

namespace {

std::string why_no_loop(const Answers& answers) {
    if (of_messages(answers)) return "messages do not show loops";
    if (of_samples(answers))
        return answers.branches.empty() ? "samples do not show loops"
                                        : "samples do not show loops; waymark branches shows which branches go back";
    if (answers.unit != "DPU") return "no code of a known image was seen to be repeated";
    const auto trust =
        std::find_if(answers.trust.begin(), answers.trust.end(), [](const Trust& t) { return t.view == "loops"; });
    return trust != answers.trust.end() && !trust->not_known.empty() ? trust->not_known : std::string(no_hardware_loop);
}

/// Whether trace can begin anew after such a place, within the run.
bool interrupts_trace(AccountReason reason) {
    switch (reason) {
        case AccountReason::handlers:
        case AccountReason::off:
        case AccountReason::held:
        case AccountReason::strobing:
        case AccountReason::filtered:
        case AccountReason::overflow:
        case AccountReason::packets:
        case AccountReason::frames:
        case AccountReason::strays:
        case AccountReason::unsynchronised:
        case AccountReason::overwritten:
        case AccountReason::cut:
        case AccountReason::recorder:
        case AccountReason::silence:
        case AccountReason::protocol:
        case AccountReason::no_image:
        case AccountReason::no_address:
        case AccountReason::untraced_way:
        case AccountReason::uncommitted:
        case AccountReason::contradiction:
        case AccountReason::no_code: return true;
        case AccountReason::decoded:
        case AccountReason::before_start:
        case AccountReason::after_end:
        // Samples show no loops.
        case AccountReason::sampled:
        case AccountReason::collided:
        // Everything that ran was followed: tables, contexts or functions are incomplete, but not the trace.
        case AccountReason::not_kept:
        case AccountReason::shared_address:
        case AccountReason::no_context:
        case AccountReason::no_functions: return false;
    }
    return false;
}

/// Whether trace began anew within the run, so that a loop may have more entries in the trace than in the run.
bool begins_anew(const Account& account) {
    return std::any_of(account.begin(), account.end(),
                       [](const AccountRow& row) { return interrupts_trace(row.reason); });
}

}  // namespace

Result<View> loop_view(const Answers& answers, const LoopOptions& options) {
    WM_ASSIGN_OR_RETURN(const std::size_t metric, find_metric(answers, options.metric));
    const Chosen chosen(answers, options.only, options.code);
    if (std::string unknown = chosen.unknown(); !unknown.empty()) return Error{Errc::not_found, std::move(unknown)};
    std::vector<const Loop*> rows;
    bool costs = false, any = false;
    for (const Loop& l : answers.loops) {
        if (l.iterations == 0) continue;
        any = true;
        if (!chosen(l.function, l.source)) continue;
        rows.push_back(&l);
        costs |= !l.costs.empty();
    }
    if (rows.empty() && any)
        return Error{Errc::not_found,
                     fmt::format("{}: {}: no loop of this code was seen", chosen.options(), answers.capture)};
    if (rows.empty()) return Error{Errc::not_found, fmt::format("{}: {}", answers.capture, why_no_loop(answers))};
    // Loops are nested, so their costs cannot be added; shares relate to the cost of everything that ran.
    std::uint64_t all = 0;
    if (costs)
        for (const FunctionCosts& f : function_costs(answers)) all = saturating(all, cost_of(f.self, metric));
    const auto cost = [&](const Loop& l) { return l.costs.size() > metric ? l.costs[metric] : 0; };
    std::stable_sort(rows.begin(), rows.end(), [&](const Loop* a, const Loop* b) {
        const auto key = [&](const Loop* l) {
            return options.sort == "entries"                ? l->entries
                   : options.sort == "address"              ? 0
                   : options.sort == "iterations" || !costs ? l->iterations
                                                            : cost(*l);
        };
        return std::tuple(key(b), a->head, a->depth) < std::tuple(key(a), b->head, b->depth);
    });
    // Programs get the entries of hardware loops in the column `runs`.
    const bool hardware = answers.unit == "DPU";
    Columns<Loop> columns;
    if (costs)
        columns.add(Column::bar("share of " + answers.metrics[metric].name),
                    [&](const Loop& l) { return Cell::bar(cost(l), all); });
    columns.add(Column::count(hardware ? "runs" : "entries", "entries",
                              hardware ? "runs that jump back; a run that an interrupt cuts in two counts once"
                                       : std::string(meaning::loop_entries)),
                [](const Loop& l) { return l.entries; });
    columns.add(Column::count("iterations", "iterations",
                              hardware ? "times the loop's body ran" : std::string(meaning::loop_iterations)),
                [](const Loop& l) { return l.iterations; });
    columns.add(Column::real("mean", "mean", "iterations of an entry, as a mean"),
                [](const Loop& l) { return Cell::mean(l.iterations, l.entries); });
    if (costs)
        add_costs(
            columns, answers, "", "cost of all instructions of the loop, and of the loops in it",
            [](const Loop& l) -> const Costs& { return l.costs; },
            [&](std::size_t m) { return answers.metrics[m].name; });
    columns.add(Column::address("head", "head", meaning::loop_head), [](const Loop& l) { return Cell::hex(l.head); });
    columns.add(Column::address("tail", "tail", meaning::loop_tail), [](const Loop& l) { return Cell::hex(l.tail); });
    columns.add(Column::text("function", "in", meaning::enclosing_function),
                [&](const Loop& l) { return Cell(function_name(answers, l.function)).in(Colour::bold); });
    add_line(columns, answers);
    if (!hardware) {
        columns.add(Column::count("depth", "depth", meaning::loop_depth),
                    [](const Loop& l) { return std::uint64_t{l.depth}; });
        columns.add(Column::address("outer", "", meaning::loop_outer),
                    [](const Loop& l) { return l.outer ? Cell::hex(*l.outer) : Cell(); });
        columns.add(Column::text("kind", "kind", "natural; or irreducible: control enters the loop at several places"),
                    [](const Loop& l) { return l.irreducible ? "irreducible" : "natural"; });
    }
    View view{.table = columns.table(rows)};
    view.table.title = hardware ? hardware_loops : loops_by_flow;
    if (costs)
        view.below.emplace_back("Costs are of all code of a loop, loops inside included, so they do not add up.");
    if (std::string note = counts_note(answers.account); !note.empty()) {
        if (hardware)
            note += "; means are no bounds: runs may be joined where trace is missing";
        else if (begins_anew(answers.account))
            note +=
                "; entries, and so means, are no bounds: where trace begins anew at a loop's entry, it counts as an "
                "entry";
        view.below.push_back(std::move(note));
    }
    return view;
}

Result<View> exception_view(const Answers& answers, const ViewOptions& options) {
    if (answers.exceptions.empty())
        return Error{Errc::not_found,
                     fmt::format("{}: {}", answers.capture,
                                 answers.unit == "SPE"   ? "samples do not record exceptions"
                                 : answers.unit == "DPU" ? "no interrupt, exception or system call is in the trace; "
                                                           "modes task and flow show them"
                                                         : "no exception is in the trace")};
    std::vector<const ExceptionRow*> rows;
    std::uint64_t all = 0;
    bool timed = false;
    for (const ExceptionRow& e : answers.exceptions) {
        rows.push_back(&e);
        all = saturating(all, e.times);
        timed |= e.has_times();
    }
    View view;
    if (options.sort == "time" && !timed)
        view.remark(Finding::Severity::note, not_sorted(options.sort, "not known here", "times"));
    std::stable_sort(rows.begin(), rows.end(), [&](const ExceptionRow* a, const ExceptionRow* b) {
        const auto key = [&](const ExceptionRow* e) {
            return options.sort == "time" && timed ? e->sum : options.sort == "name" ? 0 : e->times;
        };
        return std::tuple(key(b), std::string_view(a->name), a->number) <
               std::tuple(key(a), std::string_view(b->name), b->number);
    });
    const std::string unit = answers.exceptions.front().unit;
    const auto if_timed = [&](const char* head) { return std::string(timed ? head : ""); };
    const auto time = [](const ExceptionRow& e, std::uint64_t value) {
        return e.has_times() ? Cell(value) : Cell::none();
    };
    Columns<ExceptionRow> columns;
    columns.add(Column::bar("share of exceptions"), [&](const ExceptionRow& e) { return Cell::bar(e.times, all); });
    columns.add(Column::count("times", "times", meaning::exception_times),
                [](const ExceptionRow& e) { return e.times; });
    columns.add(Column::count("nested", "nested", meaning::nested), [](const ExceptionRow& e) { return e.nested; });
    columns.add(Column::count("returned", "returned", meaning::returned),
                [](const ExceptionRow& e) { return e.returned; });
    columns.add(Column::count("least", if_timed("least"), meaning::least_time, unit),
                [=](const ExceptionRow& e) { return time(e, e.least); });
    columns.add(Column::real("mean", if_timed("mean"),
                             "mean time from entry to return; unknown where the handler was not traced", unit),
                [](const ExceptionRow& e) { return e.has_times() ? Cell::mean(e.sum, e.returned) : Cell::none(); });
    columns.add(Column::count("most", if_timed("most"), meaning::most_time, unit),
                [=](const ExceptionRow& e) { return time(e, e.most); });
    columns.add(Column::count("sum", if_timed(unit.c_str()), meaning::sum_of_times, unit),
                [=](const ExceptionRow& e) { return time(e, e.sum); });
    columns.add(Column::text("unit", "", meaning::unit_of_times), [&](const ExceptionRow&) { return unit; });
    columns.add(Column::count("number", "", meaning::exception_number),
                [](const ExceptionRow& e) { return std::uint64_t{e.number}; });
    columns.add(Column::text("exception", "exception", meaning::exception_name),
                [](const ExceptionRow& e) { return Cell(e.name).in(Colour::bold); });
    view.table = columns.table(rows);
    if (std::string note = metric_note(answers, unit); timed && !note.empty()) view.below.push_back(std::move(note));
    view.table.title = timed ? fmt::format("exceptions: from entry to return, in {}", unit) : "exceptions";
    // Captures without functions have their exceptions.
    Account account = answers.account;
    std::erase_if(account, [](const AccountRow& row) { return row.reason == AccountReason::no_functions; });
    if (std::string note = counts_note(account); !note.empty()) view.below.push_back(std::move(note));
    return view;
}

}  // namespace waymark::answers
