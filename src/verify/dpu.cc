#include "waymark/verify/dpu.h"

#include <algorithm>
#include <cstdint>

#include "waymark/analysis/dpu_findings.h"
#include "waymark/doctor/dpu.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/vtb.h"

namespace waymark::verify {

namespace {

record::DpuComparison::Setup comparison_setup(const doctor::DpuInput& input, bool overwritten) {
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

std::vector<std::string> warnings_of(const doctor::DpuInput& input) {
    std::vector<std::string> out;
    analysis::DpuSetup setup = input.setup();
    const analysis::DpuCode no_names;
    const auto sums = doctor::add_up(input.trace(), input.trace_bytes(), setup, no_names);
    if (!sums) return out;  // the error was reported
    const analysis::DpuSaid said = input.said(setup, sums->decoded);
    for (const analysis::DpuFinding& each : analysis::dpu_losses(said)) out.push_back(each.what);
    for (const analysis::DpuFinding& each : analysis::dpu_doubts(*sums->costs, said, said.first_counter()))
        out.push_back(each.what);
    return out;
}

}  // namespace

Result<VerifiedDpu> verify_dpu(const doctor::DpuInput& input, const record::DpuTruth& truth) {
    const pipeline::DpuTrace& trace = input.trace();
    bool overwritten = false;
    if (trace.ring_known) {
        constexpr std::uint64_t all = std::uint64_t{1} << 32;
        WM_ASSIGN_OR_RETURN(const auto order, dpu::reading_order(trace.vtb, all));
        overwritten = order.overwritten;
    }
    record::DpuComparison comparison(truth, comparison_setup(input, overwritten));
    WM_ASSIGN_OR_RETURN(const auto done, pipeline::decode_dpu(trace, input.trace_bytes(), comparison));
    VerifiedDpu out;
    out.has_content = doctor::DpuInput::has_content(done.totals);
    if (!out.has_content) return out;
    out.cut = done.cut || input.missing_bytes() != 0;
    out.compared = comparison.finish(done.totals, out.cut);
    out.warnings = warnings_of(input);
    return out;
}

}  // namespace waymark::verify
