// Programs for a Debug and Profiling Unit, on its model: random options give the trace and the counters that they give
// when a recorder programs the unit, and each access that is left out is noticed.

#include "waymark/program/counter_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "waymark/dpu/registers.h"
#include "waymark/program/script.h"

namespace waymark::program {
namespace {

CounterWanted drawn_counters(std::mt19937_64& random) {
    CounterWanted wanted;
    record::DpuOptions& o = wanted.options;
    const auto& modes = record::dpu_modes();
    o.mode = modes[random() % modes.size()].second;
    o.events = {static_cast<std::uint8_t>(random() % dpu::event_sets),
                static_cast<std::uint8_t>(random() % dpu::event_sets)};
    o.initial = static_cast<std::uint32_t>(random()) & dpu::counter_mask;
    o.buffer_bytes = 64U << random() % 8;
    o.request = random() % 3 == 0;
    o.user_data = random() % 2 == 0;
    o.sample_every = o.mode == dpu::TraceMode::sw_sample ? 1 : 0;
    o.watchpoints.push_back({5, Address{0}});
    wanted.buffer = 0x1000'0000 + 32 * static_cast<std::uint32_t>(random() % 1000);
    wanted.base = 0xfff0a000;
    return wanted;
}

TEST(CounterPlan, GivesTheTraceOfARecording) {
    std::mt19937_64 random(36);
    std::uint64_t entries = 0;
    for (unsigned n = 0; n < 30; ++n) {
        SCOPED_TRACE(n);
        CounterWanted wanted = drawn_counters(random);
        const Status resolved = record::resolve(wanted.options);
        ASSERT_TRUE(resolved) << resolved.error().message;
        const auto plan = make_counter_plan(wanted);
        ASSERT_TRUE(plan) << plan.error().message;
        const auto proof = prove_counters(wanted, *plan, n);
        ASSERT_TRUE(proof) << proof.error().message;
        EXPECT_FALSE(proof->differs_at) << *proof->differs_at << " of " << proof->wanted_bytes << ", given "
                                        << proof->given_bytes;
        entries += proof->traced;
        for (const Language target :
             {Language::devmem, Language::openocd, Language::csal, Language::t32, Language::json})
            EXPECT_TRUE(script(*plan, target, *proof, {}));
    }
    EXPECT_GT(entries, 1000U);
}

TEST(CounterPlan, NoticesEachAccessThatDecides) {
    CounterWanted wanted;
    wanted.buffer = 0x1000'0000;
    wanted.options.mode = dpu::TraceMode::task;
    wanted.options.buffer_bytes = 1024;
    wanted.options.initial = 0x1000'0000;
    ASSERT_TRUE(record::resolve(wanted.options));
    const auto whole = make_counter_plan(wanted);
    ASSERT_TRUE(whole) << whole.error().message;
    // Controls of single counters do not count while DP_TAC and DP_TBC control all; the others are not used.
    const std::set<std::string> unseen{"DP_CR",   "DP_MR",   "DP_RPID", "DP_RDID", "DP_CA0C", "DP_CA1C",
                                       "DP_CA2C", "DP_CB0C", "DP_CB1C", "DP_CB2C", "DP_TER"};
    const auto& steps = whole->components.front().program.enable;
    unsigned tried = 0;
    for (std::size_t left_out = 0; left_out < steps.size(); ++left_out) {
        const flow::RegisterStep& step = steps[left_out];
        if (step.kind != flow::RegisterStep::Kind::write || unseen.contains(step.name)) continue;
        // The effect of stopping is visible only if later writes act because of it.
        if (left_out < 4) continue;
        SCOPED_TRACE(step.name);
        Plan without = *whole;
        auto& enable = without.components.front().program.enable;
        enable.erase(enable.begin() + static_cast<std::ptrdiff_t>(left_out));
        bool noticed = false;
        for (unsigned seed = 0; seed < 4 && !noticed; ++seed) {
            const auto proof = prove_counters(wanted, without, seed);
            noticed = !proof || !proof->same();
        }
        EXPECT_TRUE(noticed);
        ++tried;
    }
    EXPECT_GT(tried, 10U);
}

TEST(CounterPlan, SaysWhatCannotBeProgrammed) {
    const auto refused = [](std::uint32_t buffer, const char* registers) {
        CounterWanted wanted;
        wanted.buffer = buffer;
        if (*registers != '\0') wanted.options.program = *dpu::read_program(registers);
        const Status resolved = record::resolve(wanted.options);
        if (!resolved) return resolved.error().message;
        const auto plan = make_counter_plan(wanted);
        return plan ? std::string() : plan.error().message;
    };
    EXPECT_EQ(refused(0x1000, ""), "");
    EXPECT_EQ(refused(0x1010, ""), "--buffer-address 0x1010: a virtual trace buffer begins at a multiple of 32");
    EXPECT_EQ(refused(0x1000,
                      "DP_TSA 0x20000000\nDP_TEA 0x20000fe0\nDP_TW 0x20000000\nDP_TAC TENM=immediate CEG=2 "
                      "CMODE=trace TCEN=1\n@500 DP_TC TMODE=TASK EN=1\n"),
              "line 5: a script writes all registers at once; leave out '@500'");
}

}  // namespace
}  // namespace waymark::program
