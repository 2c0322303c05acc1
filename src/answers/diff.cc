/// `waymark diff`: what changed between two captures, function by function.
#include <fmt/format.h>

#include <set>

#include "columns.h"
#include "diff_rows.h"
#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

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
    const std::vector<FunctionCosts> costs[2] = {function_costs(before), function_costs(after)};
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
                                                           : "nothing that --only asks for cost anything"};
    if (options.captures_before != options.captures_after && what.exact && !options.mean)
        out.view.remark(Finding::Severity::note,
                        fmt::format("{} before and {} after: their sums are compared; --mean compares what one cost",
                                    counted(options.captures_before, "capture"), grouped(options.captures_after)));
    rows.show(out.view);
    judge(out.view, rows);
    out.before = rows.before().all;
    out.after = rows.after().all;
    out.chosen_before = rows.before().chosen;
    out.chosen_after = rows.after().chosen;
    return out;
}

}  // namespace waymark::answers
