// Programs for a Statistical Profiling unit, on its model: random events give the profile that a recorder's programming
// gives, each step that is left out is noticed, and a wrong order of steps causes an objection.

#include "waymark/program/profiler_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace waymark::program {
namespace {

constexpr std::uint64_t buffer = 0xffff'0000'8000'0000, buffer_bytes = 1U << 16;

record::SpeOptions drawn_event(std::mt19937_64& random) {
    const auto one_in = [&](unsigned n) { return random() % n == 0; };
    for (;;) {
        record::SpeOptions o;
        o.period = 256U << random() % 4;
        o.ts_enable = one_in(2), o.pa_enable = one_in(2), o.jitter = one_in(2);
        o.branch_filter = one_in(4), o.load_filter = one_in(4), o.store_filter = one_in(4);
        if (one_in(4)) o.event_filter = 1U << (1 + random() % 5);
        if (one_in(4)) o.inv_event_filter = 1U << (6 + random() % 2);
        if (one_in(4)) o.min_latency = static_cast<std::uint32_t>(1 + random() % 100);
        if (one_in(6)) o.inv_data_src_filter = random();
        if (one_in(6)) o.simd_filter = true, o.load_filter_mask = one_in(2);
        if (check(o)) return o;
    }
}

TEST(ProfilerPlan, GivesTheProfileOfARecording) {
    std::mt19937_64 random(36);
    std::uint64_t samples = 0;
    for (unsigned n = 0; n < 30; ++n) {
        SCOPED_TRACE(n);
        const auto plan = make_profiler_plan(drawn_event(random), buffer, buffer_bytes);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_TRUE(order_objections(*plan).empty()) << order_objections(*plan).front();
        const auto proof = prove(*plan, n);
        ASSERT_TRUE(proof) << proof.error().message;
        EXPECT_FALSE(proof->differs_at) << *proof->differs_at << " of " << proof->wanted_bytes;
        EXPECT_EQ(proof->wanted_bytes, proof->given_bytes);
        EXPECT_TRUE(proof->same());
        samples += proof->samples;
    }
    EXPECT_GT(samples, 1000U);
}

TEST(ProfilerPlan, NoticesEachStepThatIsLeftOut) {
    record::SpeOptions options;
    options.period = 256;
    options.load_filter = options.load_filter_mask = true;
    options.event_filter = 2, options.inv_event_filter = 0x20;
    options.min_latency = 2;
    options.inv_data_src_filter = 0xff;
    const auto whole = make_profiler_plan(options, buffer, buffer_bytes);
    ASSERT_TRUE(whole) << whole.error().message;
    for (const bool start : {true, false}) {
        const std::size_t steps = (start ? whole->start : whole->stop).size();
        // The last ISB of each list precedes samples or reads, and no rule here checks their order.
        for (std::size_t left_out = 0; left_out < steps; ++left_out) {
            ProfilerPlan without = *whole;
            auto& list = start ? without.start : without.stop;
            const ProfilerStep step = list[left_out];
            if (start && left_out + 1 == steps) continue;
            SCOPED_TRACE(std::string(start ? "start " : "stop ") + std::to_string(left_out) + ": " + step.name);
            list.erase(list.begin() + static_cast<std::ptrdiff_t>(left_out));
            bool noticed = false;
            for (unsigned seed = 0; seed < 8 && !noticed; ++seed) {
                const auto proof = prove(without, seed);
                noticed = !proof || !proof->same();
            }
            EXPECT_TRUE(noticed);
        }
    }
}

TEST(ProfilerPlan, ObjectsToAnotherOrder) {
    const auto whole = make_profiler_plan({}, buffer, buffer_bytes);
    ASSERT_TRUE(whole);
    // Each write is moved before the write in front of it, together with its barriers.
    const auto objections = [&](auto&& change) {
        ProfilerPlan plan = *whole;
        change(plan);
        std::string out;
        for (const std::string& one : order_objections(plan)) out += one + "\n";
        return out;
    };
    const auto at = [](const std::vector<ProfilerStep>& list, std::string_view name, bool zero) {
        return std::find_if(list.begin(), list.end(),
                            [&](const ProfilerStep& s) { return s.name == name && (s.value == 0) == zero; }) -
               list.begin();
    };
    EXPECT_EQ(objections([](ProfilerPlan&) {}), "");
    EXPECT_NE(objections([&](ProfilerPlan& p) {
                  const auto on = static_cast<std::size_t>(at(p.start, "PMSCR_EL2", false));
                  std::swap(p.start[on], p.start[on - 1]);
              }),
              "");
    EXPECT_NE(objections([&](ProfilerPlan& p) {
                  const auto on = at(p.start, "PMBLIMITR_EL1", false);
                  std::rotate(p.start.begin() + at(p.start, "PMBPTR_EL1", false), p.start.begin() + on,
                              p.start.begin() + on + 1);
              }).find("PMBPTR_EL1: it is written while the buffer may be on"),
              std::string::npos);
    EXPECT_NE(objections([&](ProfilerPlan& p) {
                  std::rotate(p.stop.begin(), p.stop.begin() + at(p.stop, "PMBLIMITR_EL1", true), p.stop.end());
              }).find("samples are lost"),
              std::string::npos);
}

TEST(ProfilerPlan, SaysWhatCannotBeProgrammed) {
    const auto refused = [](const record::SpeOptions& options, std::uint64_t at, std::uint64_t bytes) {
        const auto plan = make_profiler_plan(options, at, bytes);
        return plan ? std::string() : plan.error().message;
    };
    EXPECT_EQ(refused({}, 0x1000, 0x1000), "");
    EXPECT_EQ(refused({}, 0x1001, 0x1000),
              "--buffer-address 0x1001: a profiling buffer begins at a multiple of 0x1000");
    EXPECT_EQ(refused({}, 0x1000, 0x1800), "--buffer-size 6144: a profiling buffer has a multiple of 4096 bytes");
    EXPECT_EQ(refused({}, 0xffff'ffff'ffff'f000, 0x2000),
              "--buffer-address 0xfffffffffffff000: the buffer reaches beyond the last address");
    record::SpeOptions options;
    options.period = 100;
    EXPECT_EQ(refused(options, 0x1000, 0x1000), "period 100: an interval has at least 256 operations");
    const auto plan = make_profiler_plan({}, buffer, buffer_bytes);
    ASSERT_TRUE(plan);
    const auto proof = prove(*plan);
    ASSERT_TRUE(proof);
    for (const Language target : {Language::openocd, Language::csal, Language::devmem, Language::t32, Language::sysfs})
        EXPECT_FALSE(script(*plan, target, *proof, ""));
    for (const Language target : {Language::perf, Language::c, Language::json})
        EXPECT_TRUE(script(*plan, target, *proof, ""));
}

}  // namespace
}  // namespace waymark::program
