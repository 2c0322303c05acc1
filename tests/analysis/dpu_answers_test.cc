/// Elements made by hand → Answers: every sum is that of DpuCosts, and so that of the counters.
#include "waymark/analysis/dpu_answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "support/dpu_elements.h"
#include "waymark/analysis/dpu_doubts.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_tables.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using dpu::Element;
using dpu::ElementKind;
using dpu::Reading;

using support::os5, support::user5, support::user7;

/// Elements as a decoder delivers them, and the answers for them.
class Trace : public support::DpuElements {
public:
    explicit Trace(dpu::TraceMode mode) : DpuElements(support::dpu_setup(mode)) {
        said.mode = mode;
        said.mode_text = name(mode);
        said.events = {"CYCLES", "DC_MISS", "", "", "", ""};
        said.cycles = 0;
        said.tasks = {{5, "worker"}};
    }
    /// The end, this number of A0 events later.
    Answers finish(std::uint32_t a0, const DpuAnswersOptions& options = {}) {
        end_after(a0);
        DpuDoubts doubts(setup_);
        doubts.consume({elements_, readings_});
        doubts.finish();
        setup_.doubtful = doubts.readings();
        costs = std::make_unique<DpuCosts>(setup_, code);
        times = std::make_unique<DpuTimes>(setup_);
        costs->consume({elements_, readings_});
        times->consume({elements_, readings_});
        costs->finish();
        times->finish();
        return answers_of_dpu(*costs, times.get(), code, said, options);
    }
    DpuCode code;
    DpuSaid said;
    std::unique_ptr<DpuCosts> costs;
    std::unique_ptr<DpuTimes> times;
};

/// Sums of the call tree.
Costs sum_of(const Answers& a) {
    Costs sum(a.metrics.size());
    for (const CallNode& node : a.calls)
        for (std::size_t m = 0; m < sum.size(); ++m) sum[m] += node.self[m];
    return sum;
}
const FunctionCosts& of(const Answers& a, const std::vector<FunctionCosts>& costs, const std::string& name) {
    for (std::size_t i = 0; i < a.functions.size(); ++i)
        if (a.functions[i].name == name) return costs[i];
    ADD_FAILURE() << name;
    return costs.front();
}

TEST(DpuAnswers, TheOldestEntryOfAWrappedBufferIsNoDamage) {
    DpuSaid said;
    said.overwritten = true;
    said.totals.gaps[static_cast<unsigned>(GapReason::unsynchronised)] = 1;
    said.totals.gap_bytes[static_cast<unsigned>(GapReason::unsynchronised)] = 16;
    const auto kinds = [&] {
        std::vector<DpuFinding::Kind> out;
        for (const DpuFinding& each : dpu_losses(said)) out.push_back(each.kind);
        return out;
    };
    using Kind = DpuFinding::Kind;
    EXPECT_EQ(kinds(), (std::vector{Kind::overwritten, Kind::cut_head}));
    said.overwritten = false;
    EXPECT_EQ(kinds(), std::vector{Kind::gap});
}

TEST(DpuAnswers, CallsBelowTheirTasks) {
    Trace trace(dpu::TraceMode::flow);
    trace.code.add_name(0x2000, "f");
    trace.code.add_name(0x3000, "g");
    trace.code.add_name(0x200, "service");
    trace.change(ElementKind::flow, 0x1000, 0x2000, user5, 1);     // f
    trace.change(ElementKind::flow, 0x2010, 0x3000, user5, 2, 1);  // g
    trace.change(ElementKind::flow, 0x3010, 0x2000, user5, 4);     // f once more
    trace.change(ElementKind::flow, 0x2020, 0x3014, user5, 8);     // and back
    trace.change(ElementKind::flow, 0x3020, 0x200, os5, 16, 3);    // a service of g
    trace.change(ElementKind::flow, 0x240, 0x3022, user5, 32, 5);
    trace.change(ElementKind::flow, 0x3030, 0x2014, user5, 64);
    trace.change(ElementKind::flow, 0x2030, 0x1004, user5, 128);
    const Answers a = trace.finish(256);
    ASSERT_EQ(a.metrics.size(), 2U);
    EXPECT_EQ(a.metrics[0].name, "CYCLES");
    EXPECT_EQ(a.metrics[1].name, "DC_MISS");
    EXPECT_TRUE(a.metrics[0].exact);
    EXPECT_EQ(sum_of(a), (Costs{511, 9}));
    const auto costs = function_costs(a);
    for (const auto& [f, cost] : trace.costs->functions()) {
        if (f.address == 0 || f.name.empty()) continue;
        const FunctionCosts& mine = of(a, costs, f.name);
        EXPECT_EQ(mine.calls, cost.calls) << f.name;
        EXPECT_EQ(mine.self, (Costs{cost.self[0], cost.self[1]})) << f.name;
        EXPECT_EQ(mine.inclusive, (Costs{cost.inclusive[0], cost.inclusive[1]})) << f.name;
    }
    EXPECT_EQ(of(a, costs, "task 5 (worker)").inclusive[0], 511U);
    EXPECT_EQ(a.calls[0].parent, none);
    EXPECT_EQ(a.functions[a.calls[1].function].name, "task 5 (worker)");
    const auto service = std::find_if(a.calls.begin(), a.calls.end(),
                                      [](const CallNode& n) { return n.kind == CallNode::Kind::interrupt; });
    ASSERT_NE(service, a.calls.end());
    EXPECT_EQ(a.functions[service->function].name, "service");
    EXPECT_EQ(service->self, (Costs{32, 5}));
    ASSERT_EQ(a.exceptions.size(), 1U);
    EXPECT_EQ(a.exceptions[0].name, "service");
    EXPECT_EQ(a.exceptions[0].sum, 32U);
    ASSERT_EQ(trace.times->services().size(), 1U);
    EXPECT_EQ(trace.times->services()[0].begin, 31U);
    EXPECT_EQ(trace.times->services()[0].end, 63U);
}

/// The values of a column, by its name for programs.
std::vector<std::string> column(const Table& table, std::string_view name) {
    std::vector<std::string> out;
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c].name == name)
            for (const auto& row : table.rows) out.push_back(row[c].field());
    return out;
}
std::uint64_t sum_of_column(const Table& table, std::string_view name) {
    std::uint64_t sum = 0;
    for (const std::string& text : column(table, name)) sum += std::stoull(text);
    return sum;
}

TEST(DpuTables, RowsAddUpToTheCounters) {
    Trace trace(dpu::TraceMode::flow);
    trace.code.add_name(0x2000, "f");
    trace.code.add_name(0x3000, "g");
    trace.change(ElementKind::flow, 0x1000, 0x2000, user5, 1);
    trace.change(ElementKind::flow, 0x2010, 0x3000, user5, 2, 1);
    trace.change(ElementKind::flow, 0x3010, 0x200, os5, 16, 3);
    trace.change(ElementKind::flow, 0x240, 0x3012, user5, 32, 5);
    trace.change(ElementKind::flow, 0x3030, 0x2014, user5, 64);
    const Answers a = trace.finish(8);
    const DpuTables tables(*trace.costs, trace.code, trace.said, 1);
    for (const DpuTable& each : {tables.tasks(), tables.functions(), tables.paths(), tables.timeline()}) {
        SCOPED_TRACE(each.table.title);
        EXPECT_EQ(each.left_out, 0U);
        ASSERT_TRUE(each.sum.has_value());
        EXPECT_EQ(*each.sum, trace.costs->total());
        EXPECT_EQ(sum_of_column(each.table, "CYCLES"), trace.costs->total()[0]);
        EXPECT_EQ(sum_of_column(each.table, "DC_MISS"), trace.costs->total()[1]);
    }
    // Sorted by the second counter. A limit leaves out rows, but the sums still include them.
    const Table all = tables.functions().table;
    EXPECT_EQ(column(all, "DC_MISS").front(), "5");
    const DpuTable first = tables.functions(1);
    EXPECT_EQ(first.table.size(), 1U);
    EXPECT_EQ(first.left_out, all.size() - 1);
    EXPECT_EQ(*first.sum, trace.costs->total());
    // Answers have the same columns, and the same rows in the order of the first counter.
    const auto in_answers =
        std::find_if(a.tables.begin(), a.tables.end(), [](const Table& t) { return t.title == "functions"; });
    ASSERT_NE(in_answers, a.tables.end());
    EXPECT_EQ(in_answers->size(), all.size());
    EXPECT_EQ(in_answers->columns.size(), all.columns.size());
    EXPECT_EQ(column(*in_answers, "CYCLES").front(), "80");  // g: up to the service, and after it
    // An event that is not connected has no count.
    trace.said.unconnected[1] = true;
    EXPECT_EQ(column(tables.tasks().table, "DC_MISS").front(), "");
}

/// A figure that is an estimate in one view is an estimate in all views.
TEST(DpuAnswers, AReportIsAsExactAsItsFunctions) {
    Trace trace(dpu::TraceMode::flow);
    trace.change(ElementKind::flow, 0x1000, 0x2000, user5, 1);
    static_cast<void>(trace.finish(2));
    trace.said.mode = dpu::TraceMode::flow;
    const Trust functions = trust_in("functions", trace.said, *trace.costs);
    const Trust report = trust_in("report", trace.said, *trace.costs);
    EXPECT_NE(functions.estimated, "");
    EXPECT_EQ(report.estimated, "functions: " + functions.estimated);
    EXPECT_EQ(report.exact, "tasks: every figure; functions: " + functions.exact);
    EXPECT_EQ(report.view, "report");
    trace.said.mode = dpu::TraceMode::task;
    EXPECT_EQ(trust_in("report", trace.said, *trace.costs).exact, "every figure");
}

TEST(DpuAnswers, WithoutFlowTasksAreAllThereIs) {
    Trace trace(dpu::TraceMode::task);
    trace.change(ElementKind::task_switch, 0x1010, 0x200, os5, 1000);
    trace.change(ElementKind::task_switch, 0x280, 0x2000, user7, 200);
    trace.element(ElementKind::lost).value = 3;
    trace.change(ElementKind::task_switch, 0x2100, 0x1000, user5, 300, 0, Reading::lossy);
    trace.said.totals.lost = 3;
    const Answers a = trace.finish(40);
    EXPECT_EQ(sum_of(a), (Costs{1540, 0}));
    const auto costs = function_costs(a);
    EXPECT_EQ(of(a, costs, "user 5 (worker)").self[0], 1040U);
    EXPECT_EQ(of(a, costs, "supervisor 5 (worker)").self[0], 200U);
    EXPECT_EQ(of(a, costs, "<unattributed>").self[0], 300U);
    for (const Function& f : a.functions) EXPECT_TRUE(f.synthetic || f.address == 0x200) << f.name;
    const auto gap = std::find_if(a.timeline.marks.begin(), a.timeline.marks.end(),
                                  [](const TimelineMark& m) { return m.kind == TimelineMark::Kind::gap; });
    ASSERT_NE(gap, a.timeline.marks.end());
    EXPECT_EQ(gap->begin, 1200U);
    EXPECT_EQ(gap->end, 1500U);
    EXPECT_EQ(a.timeline.tracks[gap->track].name, "trace");
    EXPECT_EQ(a.health.front().severity, Finding::Severity::warning);
    for (const Finding& f : a.health) EXPECT_NE(f.severity, Finding::Severity::good) << f.what;
}

TEST(DpuAnswers, SamplesAreEstimates) {
    Trace trace(dpu::TraceMode::sw_sample);
    trace.change(ElementKind::sample, 0, 0, user5, 10);
    trace.change(ElementKind::sample, 0, 0, user7, 30);
    const Answers a = trace.finish(5);
    EXPECT_FALSE(a.metrics[0].exact);
    EXPECT_NE(a.metrics[0].note, "");
    EXPECT_EQ(sum_of(a), (Costs{45, 0}));
}

TEST(DpuAnswers, LoopsAndData) {
    Trace trace(dpu::TraceMode::eonce_comp);
    for (const std::uint32_t jumps : {15U, 3U}) {
        Element& e = trace.element(ElementKind::long_loop);
        e.from = 0x4010;
        e.value = jumps;
    }
    Element& pair = trace.element(ElementKind::pair);
    pair.from = 0x4010;
    pair.to = 0x4000;
    trace.element(ElementKind::user_data).value = 0xcafe0001;
    const Answers a = trace.finish(0);
    ASSERT_EQ(a.loops.size(), 1U);
    EXPECT_EQ(a.loops[0].head, 0x4000U);
    EXPECT_EQ(a.loops[0].tail, 0x4010U);
    EXPECT_EQ(a.loops[0].entries, 1U);
    EXPECT_EQ(a.loops[0].iterations, 19U);
    ASSERT_EQ(a.timeline.marks.size(), 1U);
    EXPECT_EQ(a.timeline.marks[0].text, "0xcafe0001");
    const auto table =
        std::find_if(a.tables.begin(), a.tables.end(), [](const Table& t) { return t.title == "user data"; });
    ASSERT_NE(table, a.tables.end());
    EXPECT_EQ(table->rows.size(), 1U);
}

TEST(DpuAnswers, EachLossHasItsNumbers) {
    using Kind = DpuFinding::Kind;
    const auto only = [](const DpuSaid& said) {
        const std::vector<DpuFinding> all = dpu_losses(said);
        EXPECT_EQ(all.size(), 1U);
        return all.empty() ? DpuFinding{} : all.front();
    };
    EXPECT_TRUE(dpu_losses({}).empty());
    DpuSaid said;
    said.totals.lost = 3;
    EXPECT_EQ(only(said).kind, Kind::no_room);
    EXPECT_TRUE(only(said).what.starts_with("3 entries found no room")) << only(said).what;
    EXPECT_EQ(only(said).times, 1U);
    EXPECT_EQ(only(said).records, 3U);
    said = {};
    said.totals.holds = 2;
    EXPECT_EQ(only(said).kind, Kind::held);
    EXPECT_TRUE(only(said).what.starts_with("tracing was held (TMPDIS) 2 times")) << only(said).what;
    EXPECT_EQ(only(said).times, 2U);
    said = {};
    said.off_cycles = 500;
    said.run_cycles = 12000;
    EXPECT_EQ(only(said).kind, Kind::off);
    EXPECT_TRUE(
        only(said).what.starts_with("tracing was off (EN = 0) at an end of the run, for 500 of the run's 12,000 "
                                    "cycles: events of that time are not "
                                    "in the trace"))
        << only(said).what;
    EXPECT_EQ(only(said).times, 1U);
    said.off_cycles.reset();
    said.offs = 2;
    EXPECT_TRUE(only(said).what.starts_with("tracing was off (EN = 0) 2 times: events")) << only(said).what;
    EXPECT_EQ(only(said).times, 2U);
}

TEST(DpuAnswers, AdviceFitsTheCause) {
    const auto finding = [](const Answers& a, std::string_view what) -> const Finding& {
        const auto found = std::find_if(a.health.begin(), a.health.end(),
                                        [&](const Finding& f) { return f.what.find(what) != std::string::npos; });
        EXPECT_NE(found, a.health.end()) << what;
        return found == a.health.end() ? a.health.front() : *found;
    };
    const auto change = [](Trace& trace, std::uint32_t cycles, std::uint8_t flags = 0) {
        trace.change(ElementKind::task_switch, 0x10, 0x20, user5, cycles, 0, flags);
    };
    Trace damaged(dpu::TraceMode::task);
    for (unsigned i = 0; i < 10; ++i) change(damaged, 100);
    damaged.damage(4, 0, 1U << 30);
    Answers a = damaged.finish(5);
    EXPECT_EQ(sum_of(a)[0], 1005U);
    EXPECT_NE(finding(a, "1 reading of counters cannot be true").what.find("200 CYCLES in 1 stretch"),
              std::string::npos);
    EXPECT_NE(finding(a, "cannot be true").todo.find("read the buffer again"), std::string::npos);
    EXPECT_TRUE(finding(a, "cannot be true").offset.has_value());
    for (const Finding& f : a.health) EXPECT_EQ(f.what.find("2^30"), std::string::npos) << f.what;
    DpuCounts bins{};
    for (const DpuCounts& bin : damaged.times->bins()) add(bins, bin);
    EXPECT_EQ(bins, damaged.costs->total());
    EXPECT_EQ(damaged.times->time(), damaged.costs->time());

    Trace rare(dpu::TraceMode::task);
    for (unsigned i = 0; i < 10; ++i) change(rare, i == 4 ? 0x60000000 : 100);
    a = rare.finish(5);
    EXPECT_NE(finding(a, "2^30").todo.find("Read the counters more often"), std::string::npos);

    Trace lossy(dpu::TraceMode::task);
    for (unsigned i = 0; i < 10; ++i) change(lossy, i == 4 ? 0x60000000 : 100, i == 4 ? Reading::lossy : 0);
    a = lossy.finish(5);
    EXPECT_NE(finding(a, "2^30").todo.find("First fix the cause of lost entries"), std::string::npos);
    for (const Finding& f : a.health) EXPECT_EQ(f.todo.find("more often"), std::string::npos) << f.todo;
}

/// With any events, the tree adds up to the counters, counts over time do as well, and slices stay within the limit.
TEST(DpuAnswers, AddUpWhatever) {
    std::mt19937 random(11);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (unsigned round = 0; round < 40; ++round) {
        const auto mode = round % 3 == 0   ? dpu::TraceMode::sw_sample
                          : round % 3 == 1 ? dpu::TraceMode::flow
                                           : dpu::TraceMode::task;
        Trace trace(mode);
        for (unsigned i = 0; i < 300; ++i) {
            const dpu::TaskContext context{below(2) == 0, static_cast<std::uint8_t>(below(4))};
            const auto kind = round % 3 == 0   ? ElementKind::sample
                              : round % 3 == 1 ? ElementKind::flow
                                               : ElementKind::task_switch;
            if (below(20) == 0) trace.element(ElementKind::lost).value = 1;
            trace.change(kind, below(64) * 4, below(64) * 4, context, below(round < 20 ? 100 : 1U << 30), below(9),
                         below(15) == 0 ? Reading::lossy : std::uint8_t{0});
        }
        DpuAnswersOptions options;
        options.most_slices = 50;
        const Answers a = trace.finish(below(100), options);
        const DpuCounts& total = trace.costs->total();
        EXPECT_EQ(sum_of(a), (Costs{total[0], total[1]}));
        EXPECT_EQ(trace.times->time(), trace.costs->time());
        DpuCounts bins{};
        for (const DpuCounts& bin : trace.times->bins()) add(bins, bin);
        EXPECT_EQ(bins, total);
        EXPECT_LE(a.timeline.slices.size(), 50U);
        for (const Slice& s : a.timeline.slices) {
            EXPECT_LT(s.begin, s.end);
            EXPECT_LE(s.end, a.timeline.axis.end);
        }
        for (std::size_t i = 1; i < a.calls.size(); ++i) EXPECT_LT(a.calls[i].parent, i);
    }
}

}  // namespace
}  // namespace waymark::analysis
