// The task or function that each interval is counted for (docs/spec/dpu.md, 12.1), and that every view adds up.
#include "waymark/analysis/dpu.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/dpu_elements.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/analysis/dpu_doubts.h"

namespace waymark::analysis {
namespace {

using dpu::Element;
using dpu::ElementKind;
using dpu::Reading;

/// Elements that are handed over in pieces.
class Script : public support::DpuElements {
public:
    using DpuElements::DpuElements;
    /// The end, this number of A0 events later.
    DpuCosts& finish(std::uint32_t a0, std::size_t piece = 1000) {
        end_after(a0);
        return run(piece);
    }
    /// A task switch at a place in the trace.
    void change_at(std::uint64_t offset, dpu::TaskContext context, std::uint32_t a0) {
        change(ElementKind::task_switch, 0x10, 0x20, context, a0);
        elements_.back().offset = {offset};
    }
    /// A change of flow of task 5 at a place in the trace.
    void change_at(std::uint64_t offset, std::uint32_t from, std::uint32_t to, std::uint32_t a0) {
        change(ElementKind::flow, from, to, support::user5, a0);
        elements_.back().offset = {offset};
    }
    /// The same, where the unit's registers were not read at the end.
    DpuCosts& finish_without_registers() {
        end_without_registers();
        return run(1000);
    }
    /// Runs DpuDoubts first, as the commands do. Counts from the reported end.
    DpuCosts& doubt(std::size_t piece = 1000) {
        DpuDoubts doubts(setup_);
        feed(doubts, piece);
        doubts.finish();
        setup_.doubtful = doubts.readings();
        return run(piece);
    }
    [[nodiscard]] const std::vector<std::uint64_t>& doubtful() const { return setup_.doubtful; }
    void end(std::uint32_t a0) { end_after(a0); }
    /// The unit's registers are not known at one end.
    void begin_without_registers() {
        setup_.initial.reset();
        if (!readings_.empty()) readings_.front().deltas = {};
        if (!readings_.empty()) readings_.front().wide = 0;
    }
    void end_without_registers() { setup_.final.reset(); }
    DpuCode code;

private:
    DpuCosts& run(std::size_t piece) {
        costs_ = std::make_unique<DpuCosts>(setup_, code);
        feed(*costs_, piece);
        costs_->finish();
        return *costs_;
    }
    void feed(dpu::ElementSink& sink, std::size_t piece) const {
        for (std::size_t at = 0; at < elements_.size(); at += piece) {
            const std::size_t n = std::min(piece, elements_.size() - at);
            std::vector<Element> some(elements_.begin() + static_cast<std::ptrdiff_t>(at),
                                      elements_.begin() + static_cast<std::ptrdiff_t>(at + n));
            // A batch has separate readings.
            std::vector<Reading> readings;
            for (Element& e : some) {
                if (!e.has_reading()) continue;
                readings.push_back(readings_[e.value]);
                e.value = static_cast<std::uint32_t>(readings.size() - 1);
            }
            sink.consume({some, readings});
        }
    }
    std::unique_ptr<DpuCosts> costs_;
};

DpuSetup setup(dpu::TraceMode mode) { return support::dpu_setup(mode); }
using support::os5, support::user5, support::user7, support::os7;

std::map<std::string, std::uint64_t> tasks(const DpuCosts& costs) {
    std::map<std::string, std::uint64_t> out;
    for (const auto& [who, task] : costs.tasks())
        if (task.sum[0] != 0) out[to_text(who)] = task.sum[0];
    return out;
}
void expect_reconciled(const DpuCosts& costs) {
    std::uint64_t sum = 0, paths = 0, functions = 0;
    DpuCounts rows{};
    for (const auto& [who, task] : costs.tasks()) add(rows, task.sum);
    for (const auto& [who, task] : costs.tasks()) sum += task.sum[0];
    EXPECT_EQ(rows, costs.total());
    for (const DpuReconciled& r : costs.reconciled(rows)) EXPECT_EQ(r.residual(), 0U);
    if (sum != 0) {
        --rows[0];
        EXPECT_NE(costs.reconciled(rows)[0].residual(), 0U) << "a row that lacks something is seen";
    }
    for (const DpuPath& path : costs.paths()) paths += path.self[0];
    for (const auto& [f, cost] : costs.functions()) functions += cost.self[0];
    EXPECT_EQ(paths, functions);
    if (!costs.functions().empty()) {
        EXPECT_EQ(functions, sum);
    }
}

// Requirements: R1 R64
TEST(DpuCosts, TaskSwitches) {
    Script script(setup(dpu::TraceMode::task));
    script.change(ElementKind::task_switch, 0x1010, 0x200, os5, 1000);
    script.change(ElementKind::task_switch, 0x280, 0x2000, user7, 200);
    script.change(ElementKind::task_switch, 0x2100, 0x200, os7, 300);
    script.change(ElementKind::task_switch, 0x280, 0x1014, user5, 250);
    const DpuCosts& costs = script.finish(40);
    EXPECT_EQ(tasks(costs), (std::map<std::string, std::uint64_t>{
                                {"user 5", 1040}, {"supervisor 5", 200}, {"user 7", 300}, {"supervisor 7", 250}}));
    const DpuTask& task = costs.tasks().at({DpuOwner::Kind::context, user5, {}});
    EXPECT_EQ(task.stays.times, 2U);
    EXPECT_EQ(task.stays.least[0], 40U);
    EXPECT_EQ(task.stays.most[0], 1000U);
    EXPECT_EQ(task.tail[0], 40U);
    ASSERT_EQ(costs.services().size(), 1U);
    EXPECT_EQ(costs.services().at(0x200).stays.times, 2U);
    EXPECT_EQ(costs.services().at(0x200).stays.sum[0], 450U);
    ASSERT_EQ(costs.stays().size(), 5U);
    EXPECT_EQ(costs.stays()[2].begin, 1200U);
    EXPECT_EQ(costs.stays()[2].end, 1500U);
    expect_reconciled(costs);
}

TEST(DpuCosts, SpecialBuckets) {
    Script lost(setup(dpu::TraceMode::task));
    lost.change(ElementKind::task_switch, 0x10, 0x20, user7, 10);
    lost.element(ElementKind::lost).value = 3;
    lost.change(ElementKind::task_switch, 0x30, 0x40, user5, 20, 0, Reading::lossy);
    const DpuCosts& a = lost.finish(5);
    EXPECT_EQ(tasks(a), (std::map<std::string, std::uint64_t>{{"user 5", 15}, {"<unattributed>", 20}}));
    expect_reconciled(a);

    DpuSetup unknown = setup(dpu::TraceMode::task);
    unknown.initial.reset();
    unknown.initial_context.reset();
    Script before(unknown);
    before.change(ElementKind::task_switch, 0x10, 0x20, user7, 0, 0, Reading::first);
    before.change(ElementKind::task_switch, 0x30, 0x40, user5, 20);
    const DpuCosts& b = before.finish(5);
    EXPECT_EQ(tasks(b), (std::map<std::string, std::uint64_t>{{"user 7", 20}, {"user 5", 5}}));
    EXPECT_EQ(b.tasks().count({DpuOwner::Kind::before}), 1U);
    expect_reconciled(b);

    DpuSetup cut = setup(dpu::TraceMode::flow);
    cut.complete = false;
    Script tail(cut);
    tail.change(ElementKind::flow, 0x10, 0x20, user5, 10);
    const DpuCosts& c = tail.finish(5);
    EXPECT_EQ(tasks(c), (std::map<std::string, std::uint64_t>{{"user 5", 10}, {"<tail>", 5}}));
    expect_reconciled(c);

    DpuSetup filtered = setup(dpu::TraceMode::task);
    filtered.filters = {{.on = true, .compare = dpu::IdCompare::program, .rpid = 5}};
    Script filter(filtered);
    filter.change(ElementKind::task_switch, 0x10, 0x20, user7, 10);
    filter.change(ElementKind::task_switch, 0x30, 0x40, user5, 20);
    const DpuCosts& d = filter.finish(5);
    EXPECT_EQ(tasks(d), (std::map<std::string, std::uint64_t>{{"user 5", 15}, {"<filtered>", 20}}));
    expect_reconciled(d);
}

// DP_CR.TIDCM says which reference is compared, DP_TC.TIDS which ID the trace shows. If they differ, a context's match
// is not known, unless the capture says that both IDs are the same number. Requirements: R81 R86
TEST(DpuCosts, AFilterComparesWhatTheRegistersSay) {
    const auto filter = [](dpu::IdCompare compare, bool shows_did, bool same) {
        return DpuFilter{
            .on = true, .compare = compare, .rpid = 5, .rdid = 7, .shows_did = shows_did, .same_ids = same};
    };
    using enum dpu::IdCompare;
    EXPECT_EQ(filter(neither, false, false).matches(user7), true);
    EXPECT_EQ(filter(program, false, false).matches(user5), true);
    EXPECT_EQ(filter(program, false, false).matches(user7), false);
    EXPECT_EQ(filter(program, true, false).matches(user5), std::nullopt);
    EXPECT_EQ(filter(program, true, true).matches(user5), true);
    EXPECT_EQ(filter(data, true, false).matches(user7), true);
    EXPECT_EQ(filter(data, true, false).matches(os5), false);
    EXPECT_EQ(filter(data, false, false).matches(user7), std::nullopt);
    EXPECT_EQ(filter(data, false, true).matches(user7), true);
    EXPECT_EQ(filter(both, false, false).matches(user5), std::nullopt);
    EXPECT_EQ(filter(both, false, false).matches(user7), false);
    EXPECT_EQ(filter(both, false, true).matches(user5), false);
    EXPECT_EQ(DpuFilter{}.matches(user7), true);
    EXPECT_TRUE(filter(both, false, false).matches(5, 7));
    EXPECT_FALSE(filter(both, false, false).matches(5, 5));

    // The first interval belongs to a task that the filter excludes; no stay of this task is counted.
    DpuSetup first = setup(dpu::TraceMode::task);
    first.filters = {filter(data, true, false)};
    Script script(first);
    script.change(ElementKind::task_switch, 0x10, 0x20, user7, 10);
    script.change(ElementKind::task_switch, 0x30, 0x40, user5, 20);
    const DpuCosts& costs = script.finish(5);
    EXPECT_EQ(tasks(costs), (std::map<std::string, std::uint64_t>{{"user 7", 20}, {"<filtered>", 15}}));
    EXPECT_EQ(costs.tasks().count({DpuOwner::Kind::context, user5, {}}), 0U);
    expect_reconciled(costs);
    // Not known whose.
    first.filters = {filter(data, false, false)};
    Script unknown(first);
    unknown.change(ElementKind::task_switch, 0x10, 0x20, user7, 10);
    EXPECT_EQ(tasks(unknown.finish(5)), (std::map<std::string, std::uint64_t>{{"<unattributed>", 15}}));
}

// A filter that is cleared or set during the run applies to the intervals on its side, and to the interval that it
// divides. Requirements: R81
TEST(DpuCosts, AFilterThatChanges) {
    const DpuFilter on{.on = true, .compare = dpu::IdCompare::program, .rpid = 5};
    const auto run = [](DpuFilter before, DpuFilter after) {
        DpuSetup s = setup(dpu::TraceMode::task);
        after.from = 100;
        s.filters = {before, after};
        Script script(s);
        const std::uint64_t offsets[] = {0, 36, 72, 108, 144};
        const dpu::TaskContext contexts[] = {user7, user5, user7, user5, user7};
        for (unsigned i = 0; i < 5; ++i) script.change_at(offsets[i], contexts[i], 1U << i);
        auto out = tasks(script.finish(32));
        return out;
    };
    using Sums = std::map<std::string, std::uint64_t>;
    // Intervals: 1 of 5, 2 of 7, 4 of 5, 8 of 7 that the change parts, 16 of 5, 32 of 7.
    EXPECT_EQ(run(on, {}), (Sums{{"user 5", 1 + 4 + 16}, {"<filtered>", 2 + 8}, {"user 7", 32}}));
    EXPECT_EQ(run({}, on), (Sums{{"user 5", 1 + 4 + 16}, {"user 7", 2}, {"<filtered>", 8 + 32}}));
}

// While tracing was held, the running context is unknown.
TEST(DpuCosts, AHold) {
    Script script(setup(dpu::TraceMode::task));
    script.change(ElementKind::task_switch, 0x10, 0x20, user7, 10);
    script.element(ElementKind::held);
    EXPECT_EQ(tasks(script.finish(20)), (std::map<std::string, std::uint64_t>{{"user 5", 10}, {"<unattributed>", 20}}));
}

// Requirements: R68 R70
TEST(DpuCosts, Samples) {
    Script script(setup(dpu::TraceMode::sw_sample));
    script.change(ElementKind::sample, 0, 0, user5, 10);
    script.change(ElementKind::sample, 0, 0, user5, 20);
    script.change(ElementKind::sample, 0, 0, user7, 30);
    script.change(ElementKind::sample, 0, 0, user7, 40, 0, Reading::mixed);
    const DpuCosts& costs = script.finish(5);
    EXPECT_EQ(
        tasks(costs),
        (std::map<std::string, std::uint64_t>{
            {"user 5", 30}, {"<between user 5 and user 7>", 30}, {"<between user 7 and user 7>", 40}, {"<tail>", 5}}));
    EXPECT_EQ(costs.tasks().at({DpuOwner::Kind::context, user5, {}}).sampled[0], 30U)
        << "what lies before the first sample is no more certain";
    EXPECT_FALSE(costs.knows_stays());
    expect_reconciled(costs);
}

TEST(DpuCosts, SamplesBeforeWhichAnotherTaskRan) {
    Script script(setup(dpu::TraceMode::sw_sample));
    script.change(ElementKind::sample, 0, 0, user7, 10);
    const DpuCosts& costs = script.finish(5);
    EXPECT_EQ(tasks(costs), (std::map<std::string, std::uint64_t>{{"<between user 5 and user 7>", 10}, {"<tail>", 5}}));
}

// Cycles in which the core stalled are counted as cycles too: a reading with more stalls is damaged, even if its
// differences are small.
TEST(DpuCosts, StallsNeverExceedCycles) {
    for (const bool bounded : {true, false}) {
        DpuSetup s = setup(dpu::TraceMode::task);
        s.within_cycles = bounded ? 2 : 0;
        Script script(s);
        for (unsigned i = 0; i < 20; ++i)
            script.change(ElementKind::task_switch, 0x10, 0x20, i % 2 == 0 ? user7 : user5, 6000, 5000);
        script.damage(9, 1, 1U << 12);
        EXPECT_EQ(script.finish(5).wide().intervals, 0U);
        EXPECT_EQ(script.finish(5).wide().beyond, bounded ? 1U : 0U);
        script.end(5);
        const DpuCosts& costs = script.doubt();
        EXPECT_EQ(script.doubtful(), bounded ? std::vector<std::uint64_t>{9} : std::vector<std::uint64_t>{});
        EXPECT_EQ(costs.wide().beyond, 0U);
        EXPECT_EQ(costs.total()[1], 20U * 5000);
    }
}

TEST(DpuCosts, DifferencesThatCannotBe) {
    Script script(setup(dpu::TraceMode::task));
    script.change(ElementKind::task_switch, 0x10, 0x20, user7, 100);
    EXPECT_EQ(script.finish(5).wide().intervals, 0U);
    Script damaged(setup(dpu::TraceMode::task));
    damaged.change(ElementKind::task_switch, 0x10, 0x20, user7, dpu::wide_delta);
    const DpuCosts& costs = damaged.finish(5);
    EXPECT_EQ(costs.wide().intervals, 1U);
    EXPECT_EQ(costs.wide().counters & 1U, 1U);
    EXPECT_TRUE(costs.wide().first.has_value());
}

// ---- impossible readings

TEST(DpuDoubts, ADamagedReadingIsLeftOutAndTheTimeAroundItIsNobodys) {
    for (const std::uint32_t flipped : {1U << 12, 1U << 20, 1U << 27, 1U << 29, 1U << 30, 0x7f00U << 16}) {
        Script script(setup(dpu::TraceMode::task));
        for (unsigned i = 0; i < 20; ++i)
            script.change(ElementKind::task_switch, 0x10, 0x20, i % 2 == 0 ? user7 : user5, 100 + i);
        script.damage(7, 0, flipped);
        script.end(5);
        const DpuCosts& costs = script.doubt();
        EXPECT_EQ(script.doubtful(), std::vector<std::uint64_t>{7}) << flipped;
        EXPECT_EQ(costs.total()[0], 20U * 100 + 190 + 5) << flipped;
        EXPECT_EQ(tasks(costs).at("<unattributed>"), 107U + 108) << flipped;
        EXPECT_EQ(costs.wide().intervals, 0U);
        EXPECT_EQ(costs.doubted().readings, 1U);
        EXPECT_EQ(costs.doubted().intervals, 1U);
        EXPECT_EQ(costs.doubted().counts[0], 107U + 108);
        expect_reconciled(costs);
    }
}

TEST(DpuDoubts, TheFirstAndTheLastReadingToo) {
    for (const unsigned damaged : {0U, 9U}) {
        Script script(setup(dpu::TraceMode::task));
        for (unsigned i = 0; i < 10; ++i) script.change(ElementKind::task_switch, 0x10, 0x20, user5, 100);
        script.damage(damaged, 0, 1U << 25);
        script.end(5);
        const DpuCosts& costs = script.doubt();
        EXPECT_EQ(script.doubtful(), std::vector<std::uint64_t>{damaged});
        EXPECT_EQ(costs.total()[0], 1005U);
        expect_reconciled(costs);
    }
    // The time after the last reading is unknown; it remains, and is reported.
    Script script(setup(dpu::TraceMode::task));
    for (unsigned i = 0; i < 10; ++i) script.change(ElementKind::task_switch, 0x10, 0x20, user5, 100);
    script.damage(9, 0, 1U << 30);
    script.end_without_registers();
    const DpuCosts& costs = script.doubt();
    EXPECT_TRUE(script.doubtful().empty());
    EXPECT_EQ(costs.wide().intervals, 1U);
    EXPECT_EQ(costs.total()[0], 1000U + (1U << 30));
    expect_reconciled(costs);
}

/// All counts are there, and long intervals are reported.
void expect_all_true(Script& script, std::uint64_t counted, std::uint64_t wide, const std::string& where) {
    const DpuCosts& costs = script.doubt();
    EXPECT_EQ(script.doubtful(), std::vector<std::uint64_t>()) << where;
    EXPECT_EQ(costs.wide().intervals, wide) << where;
    EXPECT_EQ(costs.total()[0], counted) << where;
    EXPECT_EQ(costs.total()[1], counted) << where;
    expect_reconciled(costs);
}

TEST(DpuDoubts, LongIntervalsAreNoDamage) {
    const std::vector<std::vector<std::uint32_t>> all{
        {0x60000000},
        {1'500'000'000, 1'500'000'000},                                      // one after another
        {1'500'000'000, 1000, 1'200'000'000},                                // a short one between
        {1'500'000'000, 1000, 1000, 1000, 1'400'000'000},                    // more
        {1'500'000'000, 1000, 1000, 1000, 1000, 1000, 1'400'000'000},        //
        {1'100'000'000, 1'100'000'000},                                      // modulo 2^31 little remains of these
                                                                             // intervals
        {1'900'000'000, 300'000'000},                                        // nor of these
        {1'500'000'000, 1'500'000'000, 1'300'000'000, 1000, 1'700'000'000},  //
    };
    const unsigned readings = 40;
    for (const bool from_start : {true, false})
        for (const bool to_end : {true, false})
            for (std::size_t which = 0; which < all.size(); ++which)
                for (std::size_t first = 0; first + all[which].size() <= readings; ++first) {
                    Script script(setup(dpu::TraceMode::task));
                    std::uint64_t counted = 0, wide = 0;
                    for (unsigned i = 0; i < readings; ++i) {
                        const bool is_long = i >= first && i - first < all[which].size();
                        const std::uint32_t a0 = is_long ? all[which][i - first] : 1000;
                        const bool known = from_start || i != 0;
                        script.change(ElementKind::task_switch, 0x10, 0x20, user5, a0, a0,
                                      known ? std::uint8_t{0} : Reading::first);
                        counted += known ? a0 : 0;
                        wide += known && dpu::is_wide(a0) ? 1 : 0;
                    }
                    script.end(0);
                    if (!from_start) script.begin_without_registers();
                    if (!to_end) script.end_without_registers();
                    expect_all_true(
                        script, counted, wide,
                        fmt::format("case {} at {}, initial {}, final {}", which, first, from_start, to_end));
                }
}

/// No true reading is lost, however often a unit idles.
TEST(DpuDoubts, TrueReadingsAreKept) {
    std::mt19937 random(11);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (unsigned round = 0; round < sized(400U, 120U); ++round) {
        Script script(setup(round % 2 == 0 ? dpu::TraceMode::flow : dpu::TraceMode::task));
        const auto kind = round % 2 == 0 ? ElementKind::flow : ElementKind::task_switch;
        const bool from_start = below(2) == 0, to_end = below(2) == 0;
        const unsigned readings = 5 + below(300), one_in = 1 + below(40);
        const std::uint32_t most = 1U << (4 + below(10));
        std::uint64_t counted = 0, wide = 0;
        for (unsigned i = 0; i < readings; ++i) {
            const bool known = from_start || i != 0;
            const std::uint32_t a0 =
                below(one_in) == 0 ? (1U << 28) + below(dpu::counter_mask - (1U << 28)) : 1 + below(most);
            script.change(kind, below(64) * 4, below(64) * 4, below(2) == 0 ? user5 : os7, a0, a0,
                          known ? std::uint8_t{0} : Reading::first);
            counted += known ? a0 : 0;
            wide += known && dpu::is_wide(a0) ? 1 : 0;
        }
        script.end(0);
        if (!from_start) script.begin_without_registers();
        if (!to_end) script.end_without_registers();
        expect_all_true(script, counted, wide, fmt::format("round {}", round));
    }
}

TEST(DpuDoubts, CountersThatAreReadTooSeldomRaiseNone) {
    std::mt19937 random(3);
    for (const bool steady : {false, true}) {
        Script script(setup(dpu::TraceMode::sw_sample));
        for (unsigned i = 0; i < 200; ++i)
            script.change(ElementKind::sample, 0, 0, user5,
                          steady ? 0x60000000U : static_cast<std::uint32_t>(random()) & dpu::counter_mask);
        script.end(5);
        EXPECT_GT(script.doubt().wide().intervals, 10U);
        EXPECT_TRUE(script.doubtful().empty());
    }
}

TEST(DpuDoubts, WhereEntriesAreMissingInALongIntervalThatIsTold) {
    Script script(setup(dpu::TraceMode::task));
    for (unsigned i = 0; i < 20; ++i) {
        if (i == 10) script.element(ElementKind::lost).value = 3;
        script.change(ElementKind::task_switch, 0x10, 0x20, user5, i == 10 ? 0x60000000U : 1000, 0,
                      i == 10 ? Reading::lossy : std::uint8_t{0});
    }
    script.end(5);
    const DpuCosts& costs = script.doubt();
    EXPECT_EQ(costs.wide().intervals, 1U);
    EXPECT_EQ(costs.wide().lossy, 1U);
}

/// With any damage, sums are the true counts, and no row has more than its true count.
TEST(DpuDoubts, SumsAreWhatWasCounted) {
    std::mt19937 random(5);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    std::size_t doubted = 0, all = 0;
    for (unsigned round = 0; round < 200; ++round) {
        const auto mode = round % 2 == 0 ? dpu::TraceMode::flow : dpu::TraceMode::task;
        const auto kind = round % 2 == 0 ? ElementKind::flow : ElementKind::task_switch;
        Script script(setup(mode)), sound(setup(mode));
        const unsigned readings = 30 + below(200), one_in = 8 + below(60);
        const std::uint32_t most = 1U << (4 + below(16));
        std::vector<std::uint64_t> damaged;
        for (unsigned i = 0; i < readings; ++i) {
            const dpu::TaskContext context{below(2) == 0, static_cast<std::uint8_t>(below(4))};
            const std::uint32_t from = below(64) * 4, to = below(64) * 4, a0 = 1 + below(most), a1 = below(9);
            script.change(kind, from, to, context, a0, a1);
            sound.change(kind, from, to, context, a0, a1);
        }
        for (unsigned i = 0; i < readings; ++i)
            if (below(one_in) == 0) {
                // A damaged byte that makes a counter's difference larger than any interval's.
                const unsigned bit = below(31);
                script.damage(i, below(2), 1U << bit | (bit > 22 ? below(1U << 8) << 22 : 0));
                if (1U << bit > 4 * most) ++all;
                damaged.push_back(i);
            }
        script.end(3);
        sound.end(3);
        const DpuCosts& truth = sound.doubt();
        ASSERT_TRUE(sound.doubtful().empty()) << round;
        const DpuCosts& costs = script.doubt();
        ASSERT_EQ(costs.total(), truth.total())
            << round << ", of " << readings << " readings are damaged " << testing::PrintToString(damaged)
            << ", doubted " << testing::PrintToString(script.doubtful());
        ASSERT_EQ(costs.wide().intervals, 0U) << round;
        expect_reconciled(costs);
        doubted += script.doubtful().size();
        for (const auto& [who, task] : costs.tasks())
            if (who.is_context()) {
                // An error too small to be seen shifts counts between two neighbours.
                EXPECT_LE(task.sum[0], truth.tasks().at(who).sum[0] + 2 * most * damaged.size()) << round;
            }
        const auto delivered = tasks(costs);
        EXPECT_EQ(tasks(script.doubt(7)), delivered) << "in pieces, round " << round;
    }
    EXPECT_GT(doubted, all * 9 / 10);
    EXPECT_LT(doubted, all * 3 / 2);
}

// Requirements: R66
TEST(DpuCosts, CallsAndRecursion) {
    DpuSetup s = setup(dpu::TraceMode::flow);
    s.ranges = {{0x2000, 0x3000}, {0x3000, 0x3100}};
    Script script(s);
    script.code.add_name(0x2000, "f");
    script.code.add_name(0x3000, "g");
    const auto call = [&](std::uint32_t from, std::uint32_t to, std::uint32_t n) {
        script.change(ElementKind::flow, from, to, user5, n);
    };
    call(0x1000, 0x2000, 1);  // f
    call(0x2010, 0x3000, 2);  // g
    call(0x3010, 0x2000, 4);  // f once more
    call(0x2020, 0x3014, 8);
    script.change(ElementKind::flow, 0x3020, 0x200, os5, 16);  // a service of g
    script.change(ElementKind::flow, 0x240, 0x3022, user5, 32);
    call(0x3030, 0x2014, 64);
    call(0x2030, 0x1004, 128);
    const DpuCosts& costs = script.finish(256);
    std::map<std::string, const DpuFunctionCost*> by_name;
    for (const auto& [f, cost] : costs.functions()) by_name[f.name] = &cost;
    ASSERT_TRUE(by_name.contains("f") && by_name.contains("g"));
    EXPECT_EQ(by_name["f"]->calls, 2U);
    EXPECT_EQ(by_name["f"]->activations.times, 1U) << "the outermost";
    EXPECT_EQ(by_name["f"]->activations.sum[0], 2U + 4 + 8 + 16 + 32 + 64 + 128);
    EXPECT_EQ(by_name["g"]->calls, 1U);
    EXPECT_EQ(by_name["g"]->activations.sum[0], 4U + 8 + 16 + 32 + 64);
    EXPECT_EQ(costs.returns_without_call(), 0U);
    ASSERT_EQ(costs.ranges().size(), 2U);
    EXPECT_EQ(costs.ranges()[0].inside[0], 2U + 8 + 128);
    EXPECT_EQ(costs.ranges()[1].inside[0], 4U + 16 + 64);
    EXPECT_EQ(costs.services().at(0x200).stays.sum[0], 32U);
    expect_reconciled(costs);
}

/// A program in A32 code, whose functions go on in others without a call.
class Jumps : public ::testing::Test {
protected:
    static constexpr std::uint32_t f = 0x10000, g_plt = 0x10080, g = 0x10100, thunk = 0x10140, maybe = 0x10150,
                                   nameless = 0x10180, k = 0x10200, d = 0x10220, other_d = 0x10230, d_plt = 0x10090;

    void SetUp() override {
        TinyElf elf;
        std::vector<std::uint8_t> code(0x240);
        for (std::uint32_t at = 0; at < code.size(); at += 4) word(code, f + at, 0xe1a00000);  // nop
        word(code, g + 0x3c, 0xe12fff1e);                                                      // bx lr
        word(code, thunk + 4, 0xeaffffed);                                                     // b g
        word(code, maybe, 0x0affffea);                                                         // beq g
        for (const std::uint32_t at : {d, other_d})
            word(code, at, 0xea000000 | (((g - at - 8) >> 2) & 0xffffff));  // b g
        elf.segments.push_back({.address = f, .bytes = code});
        elf.symbols = {
            {"f", f, 0x80},         {"g@plt", g_plt, 12}, {"g", g, 0x40}, {"thunk", thunk, 8},
            {"maybe", maybe, 0x30}, {"k", k, 0x20},       {"d", d, 8},    {"d", other_d, 8, STT_FUNC, STB_LOCAL},
            {"d@plt", d_plt, 12}};
        file_ = folder_.write("jumps.elf", elf.build());
        ASSERT_EQ(script.code.add_image(file_.string(), 0, "/usr/lib/program"), "");
        change(0x8000, f, 1);
    }

    void change(std::uint32_t from, std::uint32_t to, std::uint32_t n) {
        script.change(ElementKind::flow, from, to, user5, n);
    }
    const DpuFunctionCost& operator[](const std::string& name) const {
        for (const auto& [function, cost] : costs->functions())
            if (function.name == name) return cost;
        ADD_FAILURE() << name;
        return costs->functions().begin()->second;
    }
    Script script{setup(dpu::TraceMode::flow)};
    const DpuCosts* costs = nullptr;
    std::filesystem::path file_;

private:
    static void word(std::vector<std::uint8_t>& code, std::uint32_t at, std::uint32_t opcode) {
        for (unsigned i = 0; i < 4; ++i) code[at - f + i] = static_cast<std::uint8_t>(opcode >> 8 * i);
    }
    TemporaryFolder folder_;
};

TEST_F(Jumps, TheFunctionThatIsJumpedToIsCalled) {
    change(f + 0x10, g_plt, 2);
    change(g + 0x3c, f + 0x14, 4);
    change(f + 0x18, thunk, 8);
    change(g + 0x3c, f + 0x1c, 16);
    costs = &script.finish(32);
    EXPECT_EQ((*this)["g"].calls, 2U);
    EXPECT_EQ((*this)["g"].self[0], 4U + 16) << "with the few instructions up to the jump";
    EXPECT_EQ((*this)["g"].activations.times, 2U);
    for (const char* const passed : {"g@plt", "thunk"}) {
        EXPECT_EQ((*this)[passed].calls, 1U) << passed;
        EXPECT_EQ((*this)[passed].self[0], 0U) << passed;
    }
    EXPECT_EQ((*this)["f"].self[0], 2U + 8 + 32);
    EXPECT_EQ(costs->jumps(), 2U);
    EXPECT_EQ(costs->crossings(), 0U) << "the program decides where both went";
    EXPECT_EQ(costs->returns_without_call(), 0U);
    expect_reconciled(*costs);
}

// The trace begins as in a buffer that wrapped: how long f ran before is unknown.
TEST_F(Jumps, AFunctionThatRunsWhereTheTraceBeginsHasNoLength) {
    Script wrapped{setup(dpu::TraceMode::flow)};
    ASSERT_EQ(wrapped.code.add_image(file_.string(), 0, "/usr/lib/program"), "");
    wrapped.change(ElementKind::flow, f + 0x10, g, user5, 2);
    wrapped.change(ElementKind::flow, g + 0x3c, f + 0x14, user5, 4);
    costs = &wrapped.finish(8);
    EXPECT_EQ((*this)["f"].calls, 0U);
    EXPECT_EQ((*this)["f"].activations.times, 0U);
    EXPECT_EQ((*this)["g"].activations.times, 1U);
}

// Tracing ends while a function is interrupted: how long the function and the interrupt went on is unknown. Where the
// program ends with the trace, both end too.
TEST_F(Jumps, WhatIsOpenWhereTracingEndsHasNoLength) {
    for (const bool goes_on : {true, false}) {
        DpuSetup of = setup(dpu::TraceMode::flow);
        of.ended_after = goes_on;
        Script cut{of};
        ASSERT_EQ(cut.code.add_image(file_.string(), 0, "/usr/lib/program"), "");
        cut.change(ElementKind::flow, f + 0x10, g, user5, 2);
        cut.change(ElementKind::flow, g + 0x3c, f + 0x14, user5, 4);
        cut.change(ElementKind::flow, f + 0x18, g, user5, 8);
        cut.change(ElementKind::flow, g + 0x10, 0x200, os5, 16);
        costs = &cut.finish(32);
        EXPECT_EQ((*this)["g"].calls, 2U);
        EXPECT_EQ((*this)["g"].self[0], 4U + 16);
        EXPECT_EQ((*this)["g"].activations.times, goes_on ? 1U : 2U);
        EXPECT_EQ((*this)["g"].activations.most[0], goes_on ? 4U : 16U + 32);
        EXPECT_EQ(costs->services().size(), goes_on ? 0U : 1U);
        expect_reconciled(*costs);
    }
}

TEST_F(Jumps, AHandlerOfASignalIsCalledByWhatItInterrupts) {
    script.change(ElementKind::flow, f + 0x10, 0x200, os5, 2);
    script.change(ElementKind::flow, 0x240, k, user5, 4);
    script.change(ElementKind::flow, k + 0x10, 0x200, os5, 8);
    script.change(ElementKind::flow, 0x240, f + 0x14, user5, 16);
    change(f + 0x20, g, 32);
    change(g + 0x3c, f + 0x24, 64);
    costs = &script.finish(128);
    EXPECT_EQ((*this)["k"].calls, 1U);
    EXPECT_EQ((*this)["k"].self[0], 8U);
    EXPECT_EQ((*this)["f"].calls, 1U);
    EXPECT_EQ((*this)["f"].self[0], 2U + 32 + 128);
    EXPECT_EQ((*this)["f"].activations.times, 1U);
    EXPECT_EQ((*this)["f"].activations.sum[0], 2U + 4 + 8 + 16 + 32 + 64 + 128);
    EXPECT_EQ(costs->jumps(), 0U);
    expect_reconciled(*costs);
}

// An interrupt between a change of flow and the first instruction behind it names that change as the last instruction.
// At any place, functions have the same number of calls and the same cost as without it.
TEST_F(Jumps, AnInterruptAtABorderChangesNoCall) {
    struct Change {
        std::uint32_t from, to;
    };
    const std::vector<Change> run{
        {f + 0x10, g_plt}, {g + 0x3c, f + 0x14}, {f + 0x18, thunk},     {g + 0x3c, f + 0x1c},   {f + 0x20, k},
        {k + 0x8, g},      {g + 0x3c, k + 0xc},  {k + 0x10, k},         {k + 0x1c, k + 0x14},   {k + 0x1c, f + 0x24},
        {f + 0x28, maybe}, {maybe + 4, g},       {g + 0x3c, maybe + 8}, {maybe + 0xc, f + 0x2c}};
    std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> without;
    for (std::size_t where = 0; where <= run.size() + 1; ++where) {
        SCOPED_TRACE(where);
        // No interrupt, an interrupt after one of the changes, and one after each.
        const auto interrupts = [&](std::size_t i) { return where == i + 1 || where == run.size() + 1; };
        Script each(setup(dpu::TraceMode::flow));
        ASSERT_EQ(each.code.add_image(file_.string(), 0, "/usr/lib/program"), "");
        each.change(ElementKind::flow, 0x8000, f, user5, 1);
        for (std::size_t i = 0; i < run.size(); ++i) {
            each.change(ElementKind::flow, run[i].from, run[i].to, user5, 1U << i);
            if (!interrupts(i)) continue;
            each.change(ElementKind::flow, run[i].from, 0x200, os5, 0);
            each.change(ElementKind::flow, 0x240, run[i].to, user5, 1000);
        }
        std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> found;
        for (const auto& [function, cost] : each.finish(1).functions())
            if (function.address != 0x200) found[function.name] = {cost.calls, cost.self[0]};
        if (where == 0) {
            EXPECT_EQ(found["g"].first, 4U);
            EXPECT_EQ(found["k"].first, 2U);
            without = found;
        }
        EXPECT_EQ(found, without);
    }
}

TEST_F(Jumps, OfSeveralFunctionsOfANameNoneIsGuessed) {
    change(f + 0x10, d_plt, 2);
    change(g + 0x3c, f + 0x14, 4);
    costs = &script.finish(8);
    EXPECT_EQ((*this)["g"].calls, 1U);
    EXPECT_EQ((*this)["g"].self[0], 4U);
    for (const auto& [function, cost] : costs->functions()) EXPECT_NE(function.name, "d");
    expect_reconciled(*costs);
}

TEST_F(Jumps, OneTheProgramDoesNotDecideCrosses) {
    change(f + 0x10, maybe, 2);
    change(g + 0x3c, f + 0x14, 4);
    change(f + 0x18, maybe, 8);
    change(maybe + 0x10, f + 0x1c, 16);
    costs = &script.finish(32);
    EXPECT_EQ((*this)["maybe"].calls, 2U);
    EXPECT_EQ((*this)["maybe"].self[0], 4U + 16);
    EXPECT_EQ((*this)["maybe"].crossed[0], 4U);
    EXPECT_EQ((*this)["g"].calls, 1U);
    EXPECT_EQ((*this)["g"].self[0], 0U);
    EXPECT_EQ(costs->crossings(), 1U);
    EXPECT_EQ(costs->jumps(), 1U);
    expect_reconciled(*costs);
}

TEST_F(Jumps, CodeWithoutANameIsOneFunctionFromWhereItIsCalled) {
    change(f + 0x10, nameless + 4, 2);
    change(nameless + 0x20, g, 4);
    change(g + 0x3c, nameless + 0x24, 8);
    change(nameless + 0x30, g, 16);
    change(g + 0x3c, nameless + 0x34, 32);
    change(nameless + 0x40, f + 0x14, 64);
    costs = &script.finish(128);
    EXPECT_EQ((*this)["maybe+0x34?"].calls, 1U);
    EXPECT_EQ((*this)["maybe+0x34?"].self[0], 4U + 16 + 64);
    EXPECT_EQ((*this)["g"].calls, 2U);
    for (const auto& [function, cost] : costs->functions())
        if (function.name.ends_with('?')) {
            EXPECT_EQ(function.name, "maybe+0x34?");
        }
    EXPECT_EQ(costs->jumps(), 0U);
    expect_reconciled(*costs);
}

TEST_F(Jumps, AReturnIntoTheMiddleOfAFunctionGoesOnThere) {
    change(f + 0x10, k, 2);
    change(k + 0x10, g, 4);
    change(g + 0x3c, f + 0x40, 8);  // longjmp: f called nothing just before
    change(f + 0x50, k, 16);
    change(k + 0x1c, f + 0x54, 32);
    costs = &script.finish(64);
    EXPECT_EQ((*this)["f"].calls, 1U);
    EXPECT_EQ((*this)["f"].self[0], 2U + 16 + 64);
    EXPECT_EQ((*this)["f"].inclusive[0], 2U + 4 + 8 + 16 + 32 + 64);
    EXPECT_EQ((*this)["k"].calls, 2U);
    EXPECT_EQ(costs->returns_without_call(), 0U);
    expect_reconciled(*costs);
}

/// Two libraries at one address, one after the other: the same code under other names, and a program beside them.
class Turns : public ::testing::Test {
protected:
    static constexpr std::uint32_t program = 0x10000, library = 0x40000, inside = 0x40040;
    enum : std::size_t { main_file, first, second };

    void SetUp() override {
        write("main", program, {{"main", program, 0x100}});
        write("first", library, {{"f", library, 0x40}, {"f_inside", inside, 0x40}});
        write("second", library, {{"g", library, 0x40}, {"g_inside", inside, 0x40}});
    }
    void write(const std::string& name, std::uint32_t at, std::vector<TinyElf::Symbol> symbols) {
        TinyElf elf;
        elf.segments.push_back({.address = at, .bytes = std::vector<std::uint8_t>(0x100)});
        elf.symbols = std::move(symbols);
        paths_.push_back(folder_.write(name + ".elf", elf.build()));
    }
    void take_turns(Script& script, bool timed) {
        script.code.take_turns(CodeTurns({{program, program + 0xff, main_file, 0, std::nullopt},
                                          {library, library + 0xff, first, 0, 100},
                                          {library, library + 0xff, second, 100, 200},
                                          {library, library + 0xff, first, 200, std::nullopt}},
                                         timed),
                               {"/bin/main", "/lib/first.so", "/lib/second.so"});
        const std::array names{"/bin/main", "/lib/first.so", "/lib/second.so"};
        for (std::size_t i = 0; i < names.size(); ++i)
            ASSERT_EQ(script.code.add_image(paths_[i].string(), 0, names[i], i), "");
    }
    /// A call of the library at an offset, and the return from its previous call.
    static void call(Script& script, std::uint64_t offset, std::uint32_t n) {
        script.change_at(offset, program + 0x10, library, n);
        script.change_at(offset + 36, library + 0x3c, program + 0x14, 10 * n);
    }
    static std::map<std::string, std::uint64_t> costs(const DpuCosts& from) {
        std::map<std::string, std::uint64_t> out;
        for (const auto& [f, cost] : from.functions())
            if (cost.self[0] != 0) out[f.name] += cost.self[0];
        return out;
    }
    TemporaryFolder folder_;
    std::vector<std::filesystem::path> paths_;
};

TEST_F(Turns, EachRowHasTheNamesOfItsTime) {
    Script script(setup(dpu::TraceMode::flow));
    take_turns(script, true);
    script.change_at(0, program, program, 1);
    call(script, 28, 1);
    call(script, 100, 2);  // the change comes first: the call enters the code that is there afterwards
    call(script, 200, 4);
    const DpuCosts& out = script.finish(0);
    EXPECT_EQ(costs(out), (std::map<std::string, std::uint64_t>{
                              {"<code not known>", 1}, {"main", 1 + 2 + 4}, {"f", 10 + 40}, {"g", 20}}));
    for (const auto& [f, cost] : out.functions())
        if (f.name == "f" || f.name == "g") {
            ASSERT_LT(f.image, script.code.images().size());
            EXPECT_EQ(script.code.images()[f.image].name, f.name == "f" ? "/lib/first.so" : "/lib/second.so");
            EXPECT_EQ(cost.calls, f.name == "f" ? 2U : 1U);
        }
    EXPECT_EQ(script.code.function(script.code.at(inside, Offset{199})).name, "g_inside");
    EXPECT_EQ(script.code.places_of("f_inside").size(), 1U);
    expect_reconciled(out);
}

TEST_F(Turns, AnIntervalAcrossAChangeIsNobodysAlone) {
    Script script(setup(dpu::TraceMode::flow));
    take_turns(script, true);
    script.change_at(0, program, program, 1);
    script.change_at(64, program + 0x10, library, 2);
    script.change_at(136, inside + 4, program + 0x14, 30);  // a place in the second library, where the first library
                                                            // was entered
    const DpuCosts& out = script.finish(0);
    EXPECT_EQ(costs(out), (std::map<std::string, std::uint64_t>{
                              {"<code not known>", 1}, {"main", 2}, {"[first.so or second.so]", 30}}));
    expect_reconciled(out);
}

TEST_F(Turns, WithoutTimesNoneIsGuessed) {
    Script script(setup(dpu::TraceMode::flow));
    take_turns(script, false);
    script.change_at(0, program, program, 1);
    call(script, 28, 1);
    call(script, 100, 2);
    const DpuCosts& out = script.finish(0);
    EXPECT_EQ(costs(out), (std::map<std::string, std::uint64_t>{
                              {"<code not known>", 1}, {"main", 3}, {"[first.so or second.so]", 30}}));
    EXPECT_EQ(script.code.unknown_turns(), std::vector<std::string>{"[first.so or second.so]"});
    EXPECT_EQ(script.code.places_of("f").size(), 0U);
    expect_reconciled(out);
}

TEST(DpuCosts, LoopsAndData) {
    Script script(setup(dpu::TraceMode::eonce_comp));
    for (const std::uint32_t reps : {15U, 3U}) {
        Element& e = script.element(ElementKind::long_loop);
        e.from = 0x4010;
        e.value = reps;
    }
    Element& pair = script.element(ElementKind::pair);
    pair.from = 0x4010;
    pair.to = 0x4000;
    script.element(ElementKind::user_data).value = 0xcafe0001;
    const DpuCosts& costs = script.finish(0);
    ASSERT_EQ(costs.loops().size(), 1U);
    const DpuLoop& loop = costs.loops().at({0x4010, 0});
    EXPECT_EQ(loop.runs, 1U) << "nothing left the loop in between: it is one run in two entries";
    EXPECT_EQ(loop.jumps, 18U);
    EXPECT_EQ(loop.iterations(), 19U);
    EXPECT_EQ(loop.start, 0x4000U);
    ASSERT_EQ(costs.data().size(), 1U);
    EXPECT_EQ(costs.data()[0].value, 0xcafe0001U);
}

/// A compressed trace of task 5.
class Loops : public Script {
public:
    Loops() : Script(setup(dpu::TraceMode::eonce_comp)) {}
    void pair(std::uint32_t from, std::uint32_t to, dpu::TaskContext context) {
        Element& e = at(ElementKind::pair, context);
        e.from = from;
        e.to = to;
    }
    void loop(std::uint32_t last, std::uint32_t jumps) {
        Element& e = at(ElementKind::long_loop, user5);
        e.from = last;
        e.value = jumps;
    }
    [[nodiscard]] std::string runs(std::uint32_t last) {
        const DpuCosts& costs = finish(0);
        const DpuLoop loop = costs.loops().at({last, 0});
        return fmt::format("{} in {}, {} to {}{}", loop.iterations(), loop.runs, loop.least, loop.most,
                           costs.runs_of_loops_uncertain() ? "?" : "");
    }

private:
    Element& at(ElementKind kind, dpu::TaskContext context) {
        Element& e = element(kind);
        e.context = context;
        e.flags = Element::id_known | Element::privilege_known;
        return e;
    }
};

// One run jumps back 7 times, and an interrupt divides it; then a jump from behind the loop enters it again.
TEST(DpuCosts, AnInterruptCutsNoLoopInTwo) {
    Loops script;
    script.pair(0x3000, 0x3ff0, user5);
    script.loop(0x4010, 4);
    script.pair(0x4004, 0x100, os5);
    script.pair(0x108, 0x4008, user5);
    script.loop(0x4010, 3);
    script.pair(0x4040, 0x3ff0, user5);
    script.loop(0x4010, 1);
    EXPECT_EQ(script.runs(0x4010), "10 in 2, 2 to 8");
}

// An interrupt in the last iteration: execution afterwards belongs to another run.
TEST(DpuCosts, ALoopThatEndsBehindAnInterruptHasEnded) {
    Loops script;
    script.loop(0x4010, 4);
    script.pair(0x4010, 0x100, os5);
    script.pair(0x108, 0x4014, user5);
    script.pair(0x4040, 0x3ff0, user5);
    script.loop(0x4010, 3);
    EXPECT_EQ(script.runs(0x4010), "9 in 2, 4 to 5");
}

// Loops in loops, and a loop whose body calls a function that has one.
TEST(DpuCosts, LoopsInLoopsAndCalls) {
    Loops script;
    for (int i = 0; i < 3; ++i) {
        script.loop(0x4010, 2);
        script.loop(0x4020, 1);
    }
    script.loop(0x4010, 2);
    script.pair(0x4040, 0x3ff0, user5);
    EXPECT_EQ(script.runs(0x4020), "4 in 1, 4 to 4");
    EXPECT_EQ(script.runs(0x4010), "12 in 4, 3 to 3");
    Loops calling;
    for (int i = 0; i < 3; ++i) {
        calling.pair(0x4008, 0x5000, user5);
        calling.loop(0x5010, 9);
        calling.pair(0x5020, 0x400c, user5);
        calling.loop(0x4010, 1);
    }
    EXPECT_EQ(calling.runs(0x5010), "30 in 3, 10 to 10");
    EXPECT_EQ(calling.runs(0x4010).substr(0, 9), "4 in 1, 4");
}

// Where trace is missing, a run may continue: it is not counted again.
TEST(DpuCosts, LoopsAroundALoss) {
    Loops script;
    script.loop(0x4010, 4);
    script.element(ElementKind::held);
    script.loop(0x4010, 3);
    EXPECT_EQ(script.runs(0x4010), "8 in 1, 8 to 8?");
}

// Flow behind a gap is unknown: no change of flow there counts as a call, an interrupt or the beginning of a stay.
TEST(DpuCosts, NothingIsCountedTwiceAroundALoss) {
    DpuSetup s = setup(dpu::TraceMode::flow);
    s.ranges = {{0x10, 0x20}, {0x400, 0x500}};
    Script script(s);
    script.change(ElementKind::flow, 0x10, 0x200, os5, 10);
    script.change(ElementKind::flow, 0x208, 0x14, user5, 3);
    script.element(ElementKind::enabled);
    script.change(ElementKind::flow, 0x18, 0x400, user5, 50, 0, Reading::lossy);
    script.change(ElementKind::flow, 0x404, 0x200, os5, 7);
    script.change(ElementKind::flow, 0x208, 0x408, user5, 3);
    const DpuCosts& costs = script.finish(5);
    const DpuTask& user = costs.tasks().at({DpuOwner::Kind::context, user5, {}});
    EXPECT_EQ(user.entered, 3U) << "the stay around the gap is one";
    EXPECT_EQ(user.sum[0], 22U);
    EXPECT_EQ(user.stays.times, 2U) << "of those whose begin and end are there";
    EXPECT_EQ(costs.tasks().at({DpuOwner::Kind::unattributed}).sum[0], 50U);
    EXPECT_EQ(costs.services().at(0x200).stays.times, 2U);
    EXPECT_EQ(costs.functions().at({0x400, {}}).calls, 0U) << "it may have been entered before";
    EXPECT_EQ(costs.ranges()[0].intervals + costs.ranges()[0].crossings, 0U)
        << "the unit was off between 0x14 and 0x18";
    EXPECT_EQ(costs.ranges()[1].inside[0], 7U + 5);
    EXPECT_EQ(costs.outside_ranges()[0], 10U + 3 + 50 + 3);
}

// While the unit was off, another task may have begun.
TEST(DpuCosts, DataHaveATaskOnlyWhereTheTraceShowsIt) {
    Script script(setup(dpu::TraceMode::flow));
    script.change(ElementKind::flow, 0x10, 0x200, user5, 10);
    Element& before = script.element(ElementKind::user_data);
    before.context = user5;
    before.flags = Element::id_known | Element::privilege_known;
    script.element(ElementKind::enabled);
    script.element(ElementKind::user_data);
    const DpuCosts& costs = script.finish(5);
    ASSERT_EQ(costs.data().size(), 2U);
    EXPECT_EQ(costs.data()[0].context, user5);
    EXPECT_EQ(costs.data()[1].context, std::nullopt);
}

/// With any events, the views add up, and the division of the input changes nothing.
TEST(DpuCosts, AddUpWhatever) {
    std::mt19937 random(7);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (unsigned round = 0; round < 50; ++round) {
        Script script(setup(round % 2 == 0 ? dpu::TraceMode::flow : dpu::TraceMode::task));
        for (unsigned i = 0; i < 200; ++i) {
            const dpu::TaskContext context{below(2) == 0, static_cast<std::uint8_t>(below(4))};
            const auto kind = round % 2 == 0 ? ElementKind::flow : ElementKind::task_switch;
            if (below(20) == 0)
                script.change(ElementKind::sample, 0, 0, context, below(100));
            else
                script.change(kind, below(64) * 4, below(64) * 4, context, below(1U << 30), below(9),
                              below(15) == 0 ? Reading::lossy : std::uint8_t{0});
        }
        const std::uint32_t tail = below(100);
        const DpuCosts& whole = script.finish(tail);
        expect_reconciled(whole);
        const auto all = tasks(whole);
        EXPECT_EQ(tasks(script.finish(tail, 7)), all);
    }
}

}  // namespace
}  // namespace waymark::analysis
