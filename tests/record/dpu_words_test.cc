// Words beside the figures of a DPU: random programs of the core under random programs of the unit, which trace all of
// the run or a part. A figure that is called exact is the true one, a lower bound is not above it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "support/dpu_runs.h"
#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/doctor/dpu.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/dpu/register_program.h"
#include "waymark/record_dpu/dpu.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {
namespace {

using namespace dpu_runs;

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// Counts of the words used.
struct Census {
    std::uint64_t exact = 0, bounds = 0, runs = 0;
};

class DpuWords {
public:
    DpuWords(const doctor::DpuInput& input, const DpuTruth& truth, const Threads& run, Census& census)
        : truth_(truth), run_(run), census_(census) {
        setup_ = input.setup();
        auto sums = doctor::add_up(input.trace(), input.trace_bytes(), setup_, code_);
        EXPECT_TRUE(sums.has_value());
        sums_ = std::move(*sums);
        said_ = input.said(setup_, sums_.decoded);
    }
    void check() {
        ++census_.runs;
        tasks();
        if (said_.mode == dpu::TraceMode::flow) calls();
        if (said_.mode == dpu::TraceMode::eonce_comp) loops();
        data();
    }

private:
    [[nodiscard]] const analysis::DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] answers::Trust trust(std::string_view view) const { return analysis::trust_in(view, said_, costs()); }
    void figure(const std::string& what, const answers::Trust& trust, std::uint64_t shown, std::uint64_t truth) {
        if (has(trust.exact, "lower bound")) {
            ++census_.bounds;
            EXPECT_LE(shown, truth) << what << ": " << trust.exact;
        } else {
            ++census_.exact;
            EXPECT_EQ(shown, truth) << what << ": " << trust.exact;
        }
    }
    void tasks() {
        const answers::Trust words = trust("tasks");
        const bool changes = costs().knows_stays();
        const bool eonce = said_.mode == dpu::TraceMode::eonce_raw || said_.mode == dpu::TraceMode::eonce_comp;
        std::map<DpuTruth::Context, analysis::DpuTask> shown;
        for (const auto& [who, task] : costs().tasks())
            if (who.is_context()) shown[{who.context.supervisor, who.context.id}] = task;
        for (const auto& [context, task] : shown) {
            const auto found = truth_.contexts.find(context);
            const DpuTruth::Counted truth = found == truth_.contexts.end() ? DpuTruth::Counted{} : found->second;
            const std::string who = fmt::format("{} {}", context.supervisor ? "supervisor" : "user", context.id);
            if (changes || eonce) figure("stays of " + who, words, task.entered, truth.times);
            if (!changes) continue;
            if (!has(words.exact, "lower bound")) {
                EXPECT_EQ(task.stays.times, task.entered) << who;
            }
            for (unsigned c = 0; c < dpu::counter_count; ++c)
                if (truth_.counters[c])
                    figure(fmt::format("{} of {}", said_.events[c], who), words, task.sum[c],
                           truth.happened.count[*truth_.counters[c]]);
        }
        if (!changes || has(words.exact, "lower bound") || costs().filtered()) return;
        EXPECT_TRUE(has(words.exact, "every figure")) << words.exact;
        for (const auto& [context, truth] : truth_.contexts) EXPECT_TRUE(shown.contains(context));
    }
    void calls() {
        const answers::Trust words = trust("functions");
        for (const auto& [address, times] : run_.calls) {
            std::uint64_t shown = 0;
            for (const auto& [f, cost] : costs().functions())
                if (f.address == address) shown += cost.calls;
            figure(fmt::format("calls of {:#x}", address), words, shown, times);
        }
        std::uint64_t services = 0, interrupts = 0;
        for (const auto& [entry, service] : costs().services()) services += service.stays.times;
        for (const auto& [key, change] : truth_.changes)
            if (key.first == "interrupt") interrupts += change.times;
        figure("interrupts", trust("interrupts"), services, interrupts);
    }
    void loops() {
        const answers::Trust words = trust("loops");
        for (const auto& [last, truth] : run_.loops) {
            const auto found = costs().loops().find({last, 0});
            const analysis::DpuLoop loop = found == costs().loops().end() ? analysis::DpuLoop{} : found->second;
            figure(fmt::format("runs of {:#x}", last), words, loop.runs, truth.runs);
            figure(fmt::format("iterations of {:#x}", last), words, loop.iterations(), truth.iterations);
        }
    }
    void data() {
        std::vector<std::uint32_t> truth, shown;
        for (const auto& [id, value] : truth_.user_data) truth.push_back(value);
        bool right_tasks = true;
        auto at = truth_.user_data.begin();
        for (const analysis::DpuDatum& d : costs().data()) {
            shown.push_back(d.value);
            // The writer that the trace names wrote the value.
            at = std::find_if(at, truth_.user_data.end(), [&](const auto& each) {
                return each.second == d.value && (!d.context || d.context->id == each.first);
            });
            right_tasks &= at != truth_.user_data.end();
            if (at != truth_.user_data.end()) ++at;
        }
        const bool traced = said_.mode == dpu::TraceMode::user || said_.mode == dpu::TraceMode::user_raw;
        if (!traced && shown.empty()) return;
        EXPECT_TRUE(right_tasks);
        const answers::Trust words = trust("data");
        if (has(words.exact, "there may have been more")) {
            ++census_.bounds;
        } else {
            ++census_.exact;
            EXPECT_EQ(shown, truth) << words.exact;
        }
    }

    const DpuTruth& truth_;
    const Threads& run_;
    Census& census_;
    analysis::DpuCode code_;
    analysis::DpuSetup setup_;
    doctor::DpuSums sums_;
    analysis::DpuSaid said_;
};

TEST(DpuWordsProperty, ExactIsExactAndABoundIsOne) {
    using enum dpu::TraceMode;
    constexpr std::array modes{task, flow, flow, eonce_comp, eonce_comp, eonce_raw, user, user_raw};
    Census census;
    const char* const text = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    const std::uint64_t rounds =
        sized(300U, 120U) * (text == nullptr ? 1 : std::max(1UL, std::strtoul(text, nullptr, 10)));
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
        Threads run(seed);
        const dpu::TraceMode mode = modes[seed % modes.size()];
        const std::string writes = registers(run, mode);
        SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, writes));
        const TemporaryFolder temporary;
        DpuOptions options;
        const auto program = dpu::read_program(writes);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        options.program = *program;
        options.folder = temporary.path() / "out";
        options.command = {"./program"};
        options.core.miss_cycles = 0;
        options.core.os_cycles = 10;
        options.choices.bus_cycles_per_line = run.chance(60) ? 1 : 20 + run.below(100);
        if (!resolve(options)) continue;  // nothing would be traced
        auto recorder = DpuRecorder::create(options);
        ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
        run.on(**recorder);
        ASSERT_TRUE((*recorder)->finish(whole_run).has_value());
        const auto input = doctor::DpuInput::open(options.folder.string());
        ASSERT_TRUE(input.has_value()) << input.error().message;
        const auto truth = read_dpu_truth(options.folder);
        ASSERT_TRUE(truth.has_value());
        DpuWords(*input, *truth, run, census).check();
        if (HasFatalFailure()) return;
    }
    // All kinds of runs occur.
    EXPECT_GT(census.exact, rounds);
    EXPECT_GT(census.bounds, rounds);
}

}  // namespace
}  // namespace waymark::record
