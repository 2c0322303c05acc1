#include <fmt/format.h>

#include <algorithm>

#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// What a trace mode shows about the owner of counts.
enum class Content : std::uint8_t {
    changes,  ///< TASK, FLOW: a reading at each change
    samples,  ///< SWSAMPLE, EDCA5
    flow,     ///< EONCE_RAW, EONCE_COMP: changes without readings
    little    ///< USER, USERRAW, or not known
};

Content content_of(std::optional<dpu::TraceMode> mode) {
    using enum dpu::TraceMode;
    if (!mode) return Content::little;
    switch (*mode) {
        case task:
        case flow: return Content::changes;
        case sw_sample:
        case edca5: return Content::samples;
        case eonce_raw:
        case eonce_comp: return Content::flow;
        case user:
        case user_raw: return Content::little;
    }
    return Content::little;
}

std::string mode_only(const DpuSaid& said, std::string_view what, std::string_view modes) {
    return fmt::format("{}: not recorded in mode {} ({})", what, said.mode_text, modes);
}

constexpr std::string_view flow_only = "record with --mode flow", changes_only = "record with --mode task or flow";

/// `units`: whose mean length is shown.
std::string bounds(std::string_view units) {
    return fmt::format(
        "the sum of all rows; each row but those in < > is a lower bound; mean, least and most: of {} whose begin and "
        "end are in the trace",
        units);
}

/// Trust in counts of tasks and of their single stays. `all_there`: all tasks are in the trace; with a filter, all
/// tasks that match the filter.
Trust in_tasks(const DpuSaid& said, const DpuCosts& costs, bool all_there, bool stays) {
    Trust out;
    const auto sums = costs.reconciled(costs.total());
    const bool known =
        std::any_of(sums.begin(), sums.end(), [](const auto& counter) { return counter.from && counter.to; });
    switch (content_of(said.mode)) {
        case Content::changes:
            if (all_there && !costs.filter_changed()) {
                out.exact = "every figure";
            } else {
                out.exact = bounds("stays");
                out.estimated = "rates per 1000 cycles: of what is known";
            }
            if (costs.filtered())
                out.not_known = "single costs of tasks that IDFLT leaves out: their sum is <filtered>";
            return out;
        case Content::samples:
        case Content::flow:
            if (known) out.exact = "the sum of all rows";
            if (content_of(said.mode) == Content::flow && !stays)
                out.exact += fmt::format("{}how often tasks stayed{}", known ? "; " : "",
                                         all_there && !costs.filtered() ? "" : ", as a lower bound");
            if (costs.readings() != 0)
                out.estimated =
                    stays ? "begin, end and counts: from the first sample that shows a task to the last before another"
                          : "costs of each task: all counts between two samples that show one task are assigned to "
                            "this task";
            else
                out.not_known =
                    "costs of each task: there is no sample in the trace, only the counters' first and last values; "
                    "record with --mode task, or with --sample-every for an estimate";
            if (content_of(said.mode) == Content::samples || stays)
                out.not_known += fmt::format("{}how often and how long tasks stayed: {}",
                                             out.not_known.empty() ? "" : "; ", changes_only);
            return out;
        case Content::little:
            if (known) out.exact = "the sum of all rows";
            out.not_known = mode_only(said, "the cost of each task", changes_only);
            return out;
    }
    return out;
}

Trust in_functions(const DpuSaid& said, const DpuCosts& costs, bool all_there) {
    Trust out;
    if (said.mode != dpu::TraceMode::flow) {
        out.not_known = mode_only(said, "the cost of functions", flow_only);
        return out;
    }
    if (all_there && !costs.filtered())
        out.exact =
            "the sum of all rows, and calls and costs of functions that are entered by a call and left by a return";
    else
        out.exact = bounds("calls");
    if (costs.filtered()) out.not_known = "costs of functions in tasks that IDFLT leaves out: their sum is <filtered>";
    // Mode FLOW has TINT, TRTE and TSUB: no jump (docs/spec/dpu.md, 12.2).
    out.estimated =
        "functions that are entered or left by a jump, as by tail calls and the procedure linkage table: the trace has "
        "no jumps, so such a function counts as called only where a call, return or interrupt is seen in it";
    if (costs.jumps() != 0) out.estimated += fmt::format(" (such calls: {})", grouped(costs.jumps()));
    if (costs.crossings() != 0)
        out.estimated += fmt::format(
            "; where the program's code does not show when the jump was taken, or is not known, the function before "
            "the jump has the cost of both (such intervals: {} of {})",
            grouped(costs.crossings()), grouped(costs.readings() + 1));
    if (costs.returns_without_call() != 0)
        out.estimated +=
            fmt::format("; costs with callees: {} led to places that no open call returns to",
                        costs.returns_without_call() == 1 ? std::string("1 return")
                                                          : grouped(costs.returns_without_call()) + " returns");
    return out;
}

}  // namespace

Trust trust_in(std::string_view view, const DpuSaid& said, const DpuCosts& costs) {
    const bool all_there = is_whole(said, costs), all_tasks = all_there && !costs.filtered();
    if (view == "report") {
        Trust out = trust_in("tasks", said, costs);
        out.view = view;
        if (said.mode != dpu::TraceMode::flow) return out;
        const Trust functions = trust_in("functions", said, costs);
        const auto join = [](std::string& tasks, const std::string& of_functions) {
            if (!tasks.empty()) tasks.insert(0, "tasks: ");
            if (!of_functions.empty()) tasks += (tasks.empty() ? "functions: " : "; functions: ") + of_functions;
        };
        join(out.exact, functions.exact);
        join(out.estimated, functions.estimated);
        join(out.not_known, functions.not_known);
        return out;
    }
    Trust out{.view = std::string(view)};
    if ((costs.wide().intervals != 0 || costs.wide().beyond != 0) && view != "loops" && view != "data" &&
        view != "health") {
        out.exact = "only the sum of all rows, modulo 2^31";
        return out;
    }
    if (view == "tasks") out = in_tasks(said, costs, all_there, false);
    if (view == "timeline") out = in_tasks(said, costs, all_there, true);
    if (view == "functions" || view == "paths") out = in_functions(said, costs, all_there);
    if (view == "interrupts") {
        if (content_of(said.mode) == Content::changes) {
            out.exact = all_tasks
                            ? "those taken in user state; what interrupts them is part of them"
                            : "those whose begin and end are in the trace; there may have been more, so times and "
                              "sums are lower bounds";
            if (costs.filtered()) out.not_known = "interrupts and system calls of tasks that IDFLT leaves out";
        } else {
            out.not_known = mode_only(said, "the cost of interrupts and system calls", changes_only);
        }
    }
    if (view == "ranges") {
        if (said.mode == dpu::TraceMode::flow)
            out.exact = all_tasks ? "which calls, returns and interrupts lie in a range; code that runs between two of "
                                    "them counts as inside"
                                  : "the sum of all rows; each range is a lower bound, and the row 'everything else' "
                                    "has missing and unattributed costs";
        else if (said.mode == dpu::TraceMode::task)
            out.estimated =
                "inside: calls between two switches of tasks may have led elsewhere; record with --mode flow";
        else
            out.not_known = mode_only(said, "which code ran", flow_only);
    }
    if (view == "loops") {
        if (said.mode == dpu::TraceMode::eonce_comp) {
            out.exact = "iterations of runs that jump back; a run that an interrupt cuts in two is one";
            if (!all_tasks || !said.all_changes || costs.runs_of_loops_uncertain())
                out.exact =
                    "entries and iterations of each row are lower bounds: runs may be missing, or joined to others; "
                    "mean, least and most are no bounds";
            out.estimated = "instructions: iterations times the body, where nothing in it branches";
            out.not_known = "runs of a single iteration: they leave no entry";
        } else {
            out.not_known = mode_only(said, "loops", "record with --mode compressed");
        }
    }
    if (view == "data") {
        // A literal word may equal the words that fill a line after its end.
        const bool filled = said.mode == dpu::TraceMode::user_raw &&
                            said.totals.count<dpu::Pad>() + said.totals.count<dpu::Closed>() != 0;
        out.exact = all_there && !filled ? "what was written, and in which order"
                                         : "what is shown, and its order; there may have been more";
        if (costs.readings() != 0)
            out.estimated = "time: that of the reading before";
        else
            out.not_known = "time: there is no reading in the trace";
    }
    if (view == "data" && said.mode == dpu::TraceMode::user_raw)
        out.not_known += std::string(out.not_known.empty() ? "" : "; ") +
                         "which task wrote a word: mode USERRAW does not record it; words at the end of a line that "
                         "look like the unit's filling";
    if (view == "health") out.exact = "every figure";
    // The condition under which a counter counts affects the meaning of its figures.
    const bool of_counters = view != "loops" && view != "data" && view != "health";
    for (std::size_t i = 0; of_counters && i < said.rules.size(); ++i) {
        std::string& to = out.exact.empty() && !out.estimated.empty() ? out.estimated : out.exact;
        to += fmt::format("{}{}", to.empty() ? "" : "; ", said.rules[i]);
    }
    out.view = view;
    return out;
}

}  // namespace waymark::analysis
