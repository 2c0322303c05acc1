/// `waymark profile --by level`: cost by exception level and security state.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "columns.h"
#include "level_view.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/meanings.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sampled.h"

namespace waymark::answers {

std::string name(const LevelRow& row) {
    const bool levels = row.level.starts_with("EL");
    return fmt::format("{}{}{}{}", row.level, row.level.empty() ? "" : " ", row.security,
                       levels && row.state == "AArch32" ? " AArch32" : "");
}

Result<View> level_view(const Answers& answers, const ProfileOptions& options, std::size_t metric) {
    if (!options.only.empty() || options.code != CodeKind::system)
        return Error{Errc::usage, "--by level covers all code that ran: leave out --only and --code"};
    if (answers.levels.empty())
        return Error{Errc::not_found,
                     fmt::format("{}: {}", answers.capture,
                                 of_messages(answers)       ? "messages are not counted by level"
                                 : of_samples(answers)      ? "samples are not counted by level"
                                 : answers.unit == "DPU"    ? "counters do not record levels"
                                 : has_only_ranges(answers) ? "a file with only ranges (--only-ranges) has no levels"
                                                            : "no context is in the trace")};
    std::vector<const LevelRow*> rows;
    std::uint64_t all = 0;
    const auto cost = [metric](const LevelRow& l) { return cost_of(l.costs, metric); };
    for (const LevelRow& l : answers.levels) {
        rows.push_back(&l);
        all = saturating(all, cost(l));
    }
    const bool known = options.sort != "inclusive";
    std::stable_sort(rows.begin(), rows.end(), [&](const LevelRow* a, const LevelRow* b) {
        const auto key = [&](const LevelRow* l) {
            return options.sort == "name" ? 0 : options.sort == "calls" ? l->entered : cost(*l);
        };
        return std::tuple(key(b), name(*a)) < std::tuple(key(a), name(*b));
    });
    Columns<LevelRow> columns;
    columns.add(Column::bar("share of " + answers.metrics[metric].name),
                [&](const LevelRow& l) { return Cell::bar(cost(l), all); });
    columns.add(Column::real("share", "", "part of everything that ran, by the metric asked for"),
                [&](const LevelRow& l) { return Cell::share(cost(l), all); });
    add_costs(
        columns, answers, "", "what ran there", [](const LevelRow& l) -> const Costs& { return l.costs; },
        [&](std::size_t m) { return answers.metrics[m].name; });
    columns.add(Column::count("entered", "entered", meaning::level_entered),
                [](const LevelRow& l) { return l.entered; });
    columns.add(Column::text("level", "", meaning::level), [](const LevelRow& l) { return l.level; });
    columns.add(Column::text("security", "", meaning::security), [](const LevelRow& l) { return l.security; });
    columns.add(Column::text("state", "", meaning::state), [](const LevelRow& l) { return l.state; });
    columns.add(Column::text("name", "level", "level and security state"),
                [](const LevelRow& l) { return Cell(name(l)).in(Colour::bold); });
    View view{.table = columns.table(rows)};
    view.table.title = fmt::format("per exception level and security state: {}", costs_name(answers.metrics[metric]));
    for (const Metric& m : answers.metrics)
        if (std::string note = metric_note(answers, m.name); !note.empty()) view.below.push_back(std::move(note));
    if (std::string note = counts_note(answers.account);
        !note.empty() && (answers.metrics[metric].exact || answers.metrics[metric].stretches != 0))
        view.below.push_back(std::move(note));
    if (!known) view.remark(Finding::Severity::note, not_sorted(options.sort, "not known by level", "self"));
    return view;
}

}  // namespace waymark::answers
