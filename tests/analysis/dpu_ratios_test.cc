/// Figures derived from counters: which are possible, their formulas and values (docs/spec/dpu.md, 12.2).
#include "waymark/analysis/dpu_ratios.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analysis/whole_answers.h"

namespace waymark::analysis {

using namespace answers;
namespace {

/// `name = formula: value`, with counts 10, 20, 40, 80, …
std::string ratios_of(const std::vector<std::string>& names) {
    Costs counts;
    for (std::size_t i = 0; i < names.size(); ++i) counts.push_back(std::uint64_t{10} << i);
    std::string out;
    for (const DpuRatio& r : dpu_ratios(names))
        out += fmt::format("{} = {}: {:.4f}\n", r.name, r.formula, r.value(counts).value_or(-1));
    return out;
}

TEST(DpuRatios, EachFollowsFromItsCounts) {
    const auto one = [](const char* above, const char* below, const std::string& expected) {
        EXPECT_EQ(ratios_of({above, below}), expected);
        EXPECT_EQ(ratios_of({above}), "");
        EXPECT_EQ(ratios_of({below}), "");
    };
    one("WAIT", "CYCLES", "load = 1 - WAIT / CYCLES: 0.5000\n");
    one("CYCLES", "VLES", "cycles per set = CYCLES / VLES: 0.5000\n");
    one("STALL_ALL", "CYCLES", "stalled = STALL_ALL / CYCLES: 0.5000\n");
    one("STALL_PROG", "CYCLES", "stalled for program = STALL_PROG / CYCLES: 0.5000\n");
    one("STALL_DATA", "CYCLES", "stalled for data = STALL_DATA / CYCLES: 0.5000\n");
    one("STALL_INTERLOCK", "CYCLES", "stalled by interlocks = STALL_INTERLOCK / CYCLES: 0.5000\n");
    one("STALL_COF", "CYCLES", "stalled by changes of flow = STALL_COF / CYCLES: 0.5000\n");
    one("STALL_WB", "CYCLES", "stalled by write buffers = STALL_WB / CYCLES: 0.5000\n");
    one("STALL_BANK", "CYCLES", "stalled by banks = STALL_BANK / CYCLES: 0.5000\n");
    one("IC_HIT", "IC_MISS", "IC miss rate = IC_MISS / (IC_HIT + IC_MISS): 0.6667\n");
    one("DC_HIT", "DC_MISS", "DC miss rate = DC_MISS / (DC_HIT + DC_MISS): 0.6667\n");
    one("L2_HIT", "L2_MISS", "L2 miss rate = L2_MISS / (L2_HIT + L2_MISS): 0.6667\n");
    one("STALL_DATA", "DC_MISS", "cycles lost per DC miss = STALL_DATA / DC_MISS: 0.5000\n");
    EXPECT_EQ(ratios_of({"BUS_BUSY", "BUS_WAIT", "BUS_IDLE"}),
              "bus utilisation = BUS_BUSY / (BUS_BUSY + BUS_WAIT + BUS_IDLE): 0.1429\n");
    EXPECT_EQ(ratios_of({"BUS_BUSY", "BUS_WAIT"}), "");
}

TEST(DpuRatios, TheNameOfACounterIsNoPartOfItsEvent) {
    const std::string load = "load = 1 - WAIT / CYCLES: 0.5000\n";
    for (const char* const counter : {"A0", "A1", "A2", "B0", "B1", "B2"})
        EXPECT_EQ(ratios_of({std::string(counter) + " WAIT", "CYCLES"}), load) << counter;
    for (const char* const other : {"C0", "A3", "B9", "A/", "@0", "0A", "A00", "A"})
        EXPECT_EQ(ratios_of({std::string(other) + " WAIT", "CYCLES"}), "") << other;
    EXPECT_EQ(ratios_of({"A0-WAIT", "CYCLES"}), "");
    EXPECT_EQ(ratios_of({"A0 ", "WAIT", "CYCLES"}), load);
}

TEST(DpuRatios, CountsOfOneQualifierAreCombined) {
    EXPECT_EQ(ratios_of({"WAIT (user)", "CYCLES"}), "");
    EXPECT_EQ(ratios_of({"A0 WAIT (user)", "B0 CYCLES (user)"}), "load (user) = 1 - WAIT / CYCLES: 0.5000\n");
    EXPECT_EQ(ratios_of({"WAIT (user)", "WAIT", "CYCLES", "CYCLES (user)"}),
              "load (user) = 1 - WAIT / CYCLES: 0.8750\nload = 1 - WAIT / CYCLES: 0.5000\n");
    EXPECT_EQ(ratios_of({"WAIT changed on the way", "CYCLES changed on the way"}), "");
    // The first of two counters with one event.
    EXPECT_EQ(ratios_of({"WAIT", "CYCLES", "A1 CYCLES"}), "load = 1 - WAIT / CYCLES: 0.5000\n");
}

TEST(DpuRatios, NothingIsDividedByZero) {
    const DpuRatio ratio{"r", "a / (b + c)", {0}, {1, 2, 7}, false};
    EXPECT_EQ(ratio.value(Costs{3, 0, 0}), std::nullopt);
    EXPECT_EQ(ratio.value(Costs{3}), std::nullopt);
    EXPECT_EQ(ratio.value(Costs{3, 4, 2}), 0.5);
    EXPECT_EQ(ratio.value(Costs{0, 4, 2}), 0.0);
    EXPECT_FALSE(DpuRatio{}.complement);
}

TEST(DpuRatios, ATableHasARowForEachFunctionWithOne) {
    support::WholeAnswers whole;
    const std::vector<DpuRatio> ratios = dpu_ratios({"WAIT", "CYCLES", "VLES"});
    support::write_table(whole.next("rows"),
                         ratio_table("task", ratios, {{"a", {1, 4, 8}}, {"none", {1, 0, 0}}, {"some", {1, 2, 0}}}));
    Answers a;
    a.metrics = {{"CYCLES", "cycles"}, {"WAIT", "cycles"}};
    a.tables.push_back({"ratios", "old", {}, {}});
    a.tables.push_back({"other", "kept", {}, {}});
    a.calls.push_back({none, none, CallNode::Kind::root, 0, {0, 0}});
    for (const auto& [name, costs] :
         {std::pair("small", Costs{10, 1}), std::pair("large", Costs{100, 50}), std::pair("as small", Costs{10, 9})}) {
        Function f;
        f.name = name;
        a.functions.push_back(f);
        a.calls.push_back({0, static_cast<Index>(a.functions.size() - 1), CallNode::Kind::call, 1, costs});
    }
    add_dpu_ratios(a);
    whole.add(a);
    a.metrics[1].name = "DC_MISS";
    add_dpu_ratios(a);
    whole.add(a);
}

}  // namespace
}  // namespace waymark::analysis
