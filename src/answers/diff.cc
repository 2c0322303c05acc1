/// `waymark diff`: what changed between two captures, function by function.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "columns.h"
#include "diff_rows.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sampled.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

bool have_one_build(const Answers& a, const Answers& b) {
    std::set<std::string> builds;
    for (const Image& image : a.images) builds.insert(build_key(image.build_id));
    builds.erase("");
    return std::any_of(b.images.begin(), b.images.end(),
                       [&](const Image& image) { return builds.contains(build_key(image.build_id)); });
}

/// Reports what the programming of the unit excluded from only one of the captures. The kinds of exceptions that occur
/// depend on the run, and so do the handlers that are left out.
Account not_traced_alone(const Answers& side, const Answers& opposite) {
    Account out;
    for (const AccountRow& row : side.account) {
        const bool chosen = row.reason == AccountReason::off || row.reason == AccountReason::filtered;
        if (chosen && std::none_of(opposite.account.begin(), opposite.account.end(), [&](const AccountRow& other) {
                return other.reason == row.reason && other.of == row.of;
            }))
            out.push_back(row);
    }
    return out;
}

}  // namespace

Result<DiffView> compare(const Answers& before, const Answers& after, const DiffOptions& options) {
    WM_ASSIGN_OR_RETURN(const std::size_t metric, find_metric(before, options.metric));
    const Metric& what = before.metrics[metric];
    const auto other = find_metric(after, what.name);
    if (!other || after.metrics[*other].unit != what.unit || after.metrics[*other].exact != what.exact)
        return Error{
            Errc::usage,
            fmt::format("{} contains {}, but {} does not, or not in the same way: captures of the same kind of "
                        "unit, programmed alike, can be compared",
                        before.capture, costs_name(what), after.capture)};
    WM_ASSIGN_OR_RETURN(DiffNames names, DiffNames::of(options, before, after));
    for (const Answers* side : {&before, &after})
        if (of_messages(*side))
            return Error{Errc::not_found,
                         side->capture + ": messages do not show which code ran, so nothing can be compared"};
    const std::vector<FunctionCosts> costs[2] = {function_costs(before), function_costs(after)};
    for (const Answers* side : {&before, &after})
        if (has_only_ranges(*side))
            return Error{
                Errc::not_found,
                fmt::format("{} has only the tables of compiler profiles (--only-ranges), and no functions to compare: "
                            "write its answers without --only-ranges",
                            side->capture)};
    for (const auto& [side, its, place] :
         {std::tuple(&before, &costs[0], metric), std::tuple(&after, &costs[1], *other)})
        if (std::all_of(its->begin(), its->end(),
                        [m = place](const FunctionCosts& f) { return cost_of(f.self, m) == 0; }))
            return Error{Errc::not_found, fmt::format("no function of {} has {}, so nothing can be compared",
                                                      side->capture, costs_name(what))};
    DiffImages images(before, after);
    for (const bool now : {false, true}) {
        std::set<std::string> others;
        for (const Function& f : (now ? before : after).functions)
            if (!is_unnamed(f)) others.insert(names.of(f.name, now));
        images.gather(now ? after : before, costs[now], now ? *other : metric, !now,
                      [&](const Function& f) { return others.contains(names.of(f.name, !now)); });
    }
    names.add(before, true, images);
    names.add(after, false, images);
    if (const std::string unknown = names.only().unknown(); !unknown.empty())
        return Error{Errc::not_found, "--only: " + unknown};
    DiffView out;
    out.metric = what;
    if (before.unit != after.unit && !have_one_build(before, after))
        out.view.doubt(options.strict,
                       fmt::format("{} is a trace of {}, {} one of {}, and they have no program in common by build ID: "
                                   "what one counts may say nothing of the other",
                                   before.capture, before.unit, after.capture, after.unit));
    for (const auto& [side, opposite] : {std::pair(&before, &after), std::pair(&after, &before)})
        if (const std::vector<std::string> clauses = account_clauses(not_traced_alone(*side, *opposite));
            !clauses.empty())
            out.view.doubt(options.strict, fmt::format("of {} alone: {}: what ran there is missing in the comparison",
                                                       side->capture, fmt::join(clauses, "; ")));
    if (what.exact && what.note != after.metrics[*other].note)
        out.view.doubt(options.strict, fmt::format("{} are not counted alike on both sides (see below): figures may "
                                                   "differ although the program did the same",
                                                   what.name));
    // What program flow lacks is in its account.
    if (before.metrics.front().unit != "instructions")
        for (const auto& [side, opposite] : {std::pair(&before, &after), std::pair(&after, &before)})
            if (const std::string unknown = not_known_of_functions(*side);
                !unknown.empty() && unknown != not_known_of_functions(*opposite))
                out.view.doubt(options.strict, fmt::format("of {} alone, not known: {}", side->capture, unknown));
    if (options.mean)
        for (const Answers* side : {&before, &after})
            if (has_reason(side->account, AccountReason::no_functions))
                return Error{Errc::not_found,
                             fmt::format("{} contains captures without functions, whose number is not known, so there "
                                         "is no mean: merge files that were written without --only-ranges",
                                         side->capture)};
    if (options.threshold_count && !what.exact)
        return Error{Errc::usage,
                     fmt::format("--threshold-count: how many {} there are depends on how long was recorded; "
                                 "--threshold and --threshold-each compare shares",
                                 what.name)};
    if (!options.only.empty())
        if (const std::string missing = missing_images(names.only(), before, after, images); !missing.empty())
            return Error{Errc::not_found, "--only: " + missing};
    names.divide(before, after, costs, images);
    names.choose(before, after, images);
    const DiffRows rows(before, after, options, names, images, metric, *other);
    if (rows.empty())
        return Error{Errc::not_found, options.only.empty() ? "neither capture has a function with a cost"
                                                           : "nothing that --only selects has a cost"};
    const std::uint64_t captures_before = captures_in(before), captures_after = captures_in(after);
    if (captures_before != captures_after && what.exact && !options.mean) {
        std::string sums = fmt::format("{} before and {} after: their sums are compared; --mean compares averages",
                                       counted(captures_before, "capture"), grouped(captures_after));
        if (options.threshold || options.threshold_each || options.threshold_count)
            out.view.doubt(options.strict, std::move(sums));
        else
            out.view.remark(Finding::Severity::note, std::move(sums));
    }
    rows.show(out.view);
    judge(out.view, rows);
    bool hidden = false;
    for (const Answers* side : {&before, &after}) {
        if (const std::string note = counts_note(side->account); !note.empty() && what.exact)
            out.view.below.push_back(fmt::format("{}: {}", side->capture, note));
        hidden |= completeness(side->account).hides != Hides::nothing;
    }
    if (hidden)
        out.view.below.emplace_back("new, gone: it was not seen on the other side, and may have run there unobserved");
    out.before = rows.before().all;
    out.after = rows.after().all;
    out.chosen_before = rows.before().chosen;
    out.chosen_after = rows.after().chosen;
    return out;
}

}  // namespace waymark::answers
