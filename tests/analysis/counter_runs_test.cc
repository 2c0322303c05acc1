// Runs of counters that count different events, added up by hand (docs/spec/dpu.md, 12.2).
#include "waymark/analysis/counter_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/whole_answers.h"
#include "waymark/analysis/dpu_ratios.h"

namespace waymark::analysis {

using namespace answers;
namespace {

struct TaskCosts {
    const char* name;
    Costs costs;
};

Answers counter_run(const char* capture, const std::vector<std::string>& metrics, const std::vector<TaskCosts>& tasks) {
    Answers a;
    a.unit = "DPU";
    a.capture = capture;
    for (const std::string& m : metrics) {
        a.metrics.push_back({m, "count"});
        a.summary.push_back({m, "0"});
    }
    a.trust.push_back({"tasks", "every figure", {}, {}});
    a.calls.push_back({none, none, CallNode::Kind::root, 0, Costs(metrics.size())});
    for (const TaskCosts& t : tasks) {
        Function f;
        f.name = t.name;
        f.synthetic = true;
        a.functions.push_back(f);
        a.calls.push_back({0, static_cast<Index>(a.functions.size() - 1), CallNode::Kind::root, 2, t.costs});
    }
    a.tables.push_back({"tasks", {}, {Column::text("task")}, {}});
    return a;
}
Costs costs_of(const Answers& a, const std::string& name) {
    for (const CallNode& node : a.calls)
        if (node.function != none && a.functions[node.function].name == name) return node.self;
    return {};
}
const Table* table_of(const Answers& a, const std::string& title) {
    const auto found = std::find_if(a.tables.begin(), a.tables.end(), [&](const Table& t) { return t.title == title; });
    return found == a.tables.end() ? nullptr : &*found;
}

std::vector<std::string> fields(const std::vector<Cell>& row) {
    std::vector<std::string> out;
    for (const Cell& cell : row) out.push_back(cell.field());
    return out;
}
std::ptrdiff_t count(const Table& table, const std::vector<std::string>& wanted) {
    return std::count_if(table.rows.begin(), table.rows.end(), [&](const auto& row) { return fields(row) == wanted; });
}

TEST(CounterRuns, EventsOfSomeRunsAreScaledToAll) {
    const Answers all = merge_counter_runs(
        {counter_run("one", {"CYCLES", "DC_MISS"}, {{"a", {1000, 10}}, {"b", {500, 0}}}),
         counter_run("two", {"CYCLES", "DC_HIT"}, {{"a", {3000, 300}}, {"b", {500, 50}}, {"c", {100, 7}}})});
    ASSERT_EQ(all.metrics.size(), 3U);
    EXPECT_EQ(all.metrics[1].name, "DC_MISS");
    EXPECT_TRUE(all.metrics[0].exact);
    EXPECT_FALSE(all.metrics[1].exact);
    EXPECT_EQ(all.metrics[2].note, "counted in 1 of 2 captures, and scaled to all of them by CYCLES");
    // a had 4000 cycles, of which misses were counted in 1000 and hits in 3000.
    EXPECT_EQ(costs_of(all, "a"), (Costs{4000, 40, 400}));
    EXPECT_EQ(costs_of(all, "b"), (Costs{1000, 0, 100}));
    // c ran where no counter counted misses: it gets the rate of all code, 10 misses in 1500 cycles.
    EXPECT_EQ(costs_of(all, "c"), (Costs{100, 1, 7}));
    EXPECT_EQ(all.calls[1].calls, 4U);
    EXPECT_EQ(all.summary[0].value, "5,100");
    EXPECT_NE(all.trust[0].estimated.find("DC_MISS"), std::string::npos);

    const Table* runs = table_of(all, "runs");
    ASSERT_NE(runs, nullptr);
    const std::vector<std::string> cycles{"a", "CYCLES", "2", "2000", "1000", "3000", "100.00"},
        misses{"a", "DC_MISS", "1", "10", "10", "10", "0.00"};
    EXPECT_EQ(count(*runs, cycles), 1);
    EXPECT_EQ(count(*runs, misses), 1);
    EXPECT_NE(table_of(all, "tasks in one"), nullptr);
    EXPECT_NE(table_of(all, "tasks in two"), nullptr);
    const Table* ratios = table_of(all, "ratios");
    ASSERT_NE(ratios, nullptr);
    EXPECT_EQ(fields(ratios->rows[1]), (std::vector<std::string>{"a", "0.09090909090909091"}));
}

TEST(CounterRuns, FunctionsThatOneRunDoesNotDivideHaveNoSpread) {
    Answers tasks = counter_run("tasks", {"CYCLES"}, {{"task", {110}}});
    tasks.trust.push_back({"functions", {}, {}, "the cost of functions"});
    const Answers functions = counter_run("functions", {"CYCLES"}, {{"main", {90}}});
    const Answers all = merge_counter_runs({functions, tasks});
    const Table* const runs = table_of(all, "runs");
    ASSERT_NE(runs, nullptr);
    ASSERT_EQ(runs->rows.size(), 1U);
    EXPECT_EQ(fields(runs->rows[0]), (std::vector<std::string>{"all", "CYCLES", "2", "100", "90", "110", "20.00"}));
    EXPECT_NE(runs->note.find("functions are left out"), std::string::npos);
}

// Equal runs are just added up; if one run counts an event twice, the other run's event counts.
TEST(CounterRuns, TheSameEventsAddUp) {
    const Answers all = merge_counter_runs({counter_run("one", {"A0 CYCLES", "B0 CYCLES"}, {{"a", {10, 10}}}),
                                            counter_run("two", {"CYCLES"}, {{"a", {32}}}),
                                            counter_run("three", {"CYCLES"}, {{"a", {58}}})});
    EXPECT_EQ(costs_of(all, "a"), (Costs{100, 100})) << "the second is scaled from what the first run says of it";
    EXPECT_EQ(all.metrics[0].name, "A0 CYCLES");
    EXPECT_TRUE(all.metrics[0].exact);
    // Without a common event, the result is the sum of the runs that count the event.
    const Answers apart = merge_counter_runs(
        {counter_run("one", {"DC_HIT"}, {{"a", {10}}}), counter_run("two", {"IC_HIT"}, {{"a", {20}}})});
    EXPECT_EQ(costs_of(apart, "a"), (Costs{10, 20}));
    EXPECT_EQ(apart.metrics[0].note,
              "counted in 1 of 2 captures, which have no metric in common: it is the sum of those captures alone");
}

TEST(DpuRatios, Formulas) {
    const auto value = [](const std::vector<std::string>& names, const std::vector<std::uint64_t>& counts,
                          const std::string& wanted) -> std::optional<double> {
        for (const DpuRatio& r : dpu_ratios(names))
            if (r.name == wanted) return r.value(counts);
        return std::nullopt;
    };
    EXPECT_DOUBLE_EQ(*value({"CYCLES", "WAIT"}, {200, 50}, "load"), 0.75);
    EXPECT_DOUBLE_EQ(*value({"BUS_BUSY", "BUS_WAIT", "BUS_IDLE"}, {30, 10, 60}, "bus utilisation"), 0.3);
    EXPECT_DOUBLE_EQ(*value({"IC_HIT", "IC_MISS"}, {75, 25}, "IC miss rate"), 0.25);
    EXPECT_DOUBLE_EQ(*value({"A0 CYCLES", "VLES", "B0 CYCLES"}, {30, 10, 30}, "cycles per set"), 3);
    EXPECT_DOUBLE_EQ(*value({"STALL_DATA", "DC_MISS"}, {200, 10}, "cycles lost per DC miss"), 20);
    EXPECT_FALSE(value({"DC_HIT", "DC_MISS"}, {0, 0}, "DC miss rate")) << "nothing to divide by";
    EXPECT_FALSE(value({"CYCLES", "WAIT (user)"}, {200, 50}, "load")) << "not counted in the same contexts";
    EXPECT_DOUBLE_EQ(*value({"CYCLES (user)", "WAIT (user)"}, {200, 50}, "load (user)"), 0.75);
    EXPECT_TRUE(dpu_ratios({"INT", "MARK"}).empty());
    // Counts of several events have no ratio.
    EXPECT_TRUE(dpu_ratios({"IC_HIT (changed on the way)", "IC_MISS (changed on the way)"}).empty());
}

TEST(CounterRuns, AFigureThatCountedNothingHasNoRow) {
    support::WholeAnswers whole;
    whole.add(
        merge_counter_runs({counter_run("a", {"CYCLES", "NEVER", "A0 VLES"}, {{"t", {10, 0, 5}}, {"u", {7, 0, 0}}}),
                            counter_run("b", {"CYCLES", "NEVER", "B0 VLES"}, {{"t", {30, 0, 4}}, {"v", {0, 0, 2}}}),
                            counter_run("c", {"CYCLES", "DC_MISS"}, {{"t", {21, 3}}})}));
}

}  // namespace
}  // namespace waymark::analysis
