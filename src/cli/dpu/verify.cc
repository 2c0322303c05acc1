#include "verify.h"

#include <algorithm>

#include "../options.h"
#include "input.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/dpu/registers.h"
#include "waymark/record_dpu/dpu_comparison.h"

namespace waymark::cli {

namespace {

record::DpuComparison::Setup comparison_setup(const DpuInput& input, bool overwritten) {
    record::DpuComparison::Setup out;
    const dpu::StartState& start = input.trace().periods.front().start;
    const analysis::DpuSetup setup = input.setup();
    out.mode = input.mode();
    out.context = start.context;
    out.initial = start.counters;
    if (const auto& final = input.capture().final) std::copy(final->begin(), final->end(), out.final.emplace().begin());
    out.overwritten = overwritten;
    out.user_data = from_value<dpu::DpTc>(input.value("DP_TC").value_or(0)).uden;
    out.filter_changed = setup.filters.size() > 1;
    out.filtered = setup.filters.front().on;
    out.matches = [filter = setup.filters.front()](const dpu::TaskContext& c) { return filter.matches(c) == true; };
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        out.events[c] = input.event(c);
        out.event_names[c] = input.event_name(c);
    }
    return out;
}

/// What decoding found missing or doubtful, as every view says it.
void warn_of_trace(const DpuInput& input) {
    analysis::DpuSetup setup = input.setup();
    const analysis::DpuCode no_names;
    const auto sums = doctor::add_up(input.trace(), input.trace_bytes(), setup, no_names);
    if (!sums) return;  // what could not be read was reported
    const analysis::DpuSaid said = input.said(setup, sums->decoded);
    for (const analysis::DpuFinding& each : analysis::dpu_losses(said)) say("warning", each.what);
    for (const analysis::DpuFinding& each : analysis::dpu_doubts(*sums->costs, said, said.first_counter()))
        say("warning", each.what);
}

void print(const record::DpuCompared& c, Output& out) {
    out.print("  {:<26} {:>20} {:>20}\n", "", "executed", "decoded");
    for (const record::DpuFigure& sum : c.sums)
        out.print("  {:<26} {:>20} {:>20}{}\n", sum.name, grouped(sum.executed), grouped(sum.decoded),
                  sum.executed == sum.decoded ? "" : "  *");
    for (const record::DpuFigure& d : c.differences)
        out.print("  {}: executed {}, decoded {}\n", d.name, grouped(d.executed), grouped(d.decoded));
    if (c.different > c.differences.size()) out.print("  … and {} more\n", grouped(c.different - c.differences.size()));
    for (const std::string& note : c.notes) out.print("  {}\n", note);
    const bool wrong = c.different != 0 || c.damaged;
    if (c.compared == 0)
        out.print("{}: there was nothing that could be compared\n", wrong ? "DIFFERENT" : "NOT COMPARED");
    else
        out.print("{}: {} compared{}\n",
                  wrong     ? "DIFFERENT"
                  : c.whole ? "equal"
                            : "equal as far as the trace goes",
                  counted(c.compared, "figure"),
                  c.different == 0 ? std::string() : fmt::format(", {} differ", grouped(c.different)));
}

ExitStatus verify(const DpuInput& input, const record::DpuTruth& truth, Output& out) {
    const pipeline::DpuTrace& trace = input.trace();
    bool overwritten = false;
    if (trace.ring_known) {
        constexpr std::uint64_t all = std::uint64_t{1} << 32;
        const auto order = dpu::reading_order(trace.vtb, all);
        if (!order) return fail(order.error());
        overwritten = order->overwritten;
    }
    record::DpuComparison comparison(truth, comparison_setup(input, overwritten));
    const auto done = pipeline::decode_dpu(trace, input.trace_bytes(), comparison);
    if (!done) return fail(done.error());
    if (!DpuInput::has_content(done->totals)) {
        say("error", "nothing to compare: nothing was decoded: " + input.why_nothing());
        return static_cast<ExitStatus>(not_compared);
    }
    const bool cut = done->cut || input.missing_bytes() != 0;
    const record::DpuCompared compared = comparison.finish(done->totals, cut);
    out.print("capture {}\n  mode {}, {}\n", input.capture().path.string(), input.mode_text(),
              truth.complete ? "the whole run of the program" : "a part of the program's run: " + truth.ended);
    print(compared, out);
    warn_of_trace(input);
    if (cut) return unreadable;
    if (compared.different != 0 || compared.damaged) return nothing;
    return compared.compared == 0 ? static_cast<ExitStatus>(not_compared) : decoded;
}

}  // namespace

ExitStatus verify_dpu(const std::string& folder, const std::string& output) {
    const auto input = DpuInput::open(folder);
    if (!input) return fail(input.error());
    const auto truth = record::read_dpu_truth(input->capture().path.parent_path());
    if (!truth) {
        const ExitStatus status = fail(truth.error());
        return truth.error().code == Errc::not_found ? static_cast<ExitStatus>(not_compared) : status;
    }
    warn(*input);
    auto out = Output::open(output, {folder});
    if (!out) return fail(out.error());
    const ExitStatus status = verify(*input, *truth, *out);
    return out->close() == decoded ? status : unreadable;
}

}  // namespace waymark::cli
