/// Intervals of shares, against published ones.
#include "waymark/answers/interval.h"

#include <gtest/gtest.h>

namespace waymark::answers {
namespace {

TEST(Interval, IsTheOneOfWilson) {
    struct Known {
        std::uint64_t part, all;
        double low, high;
    };
    // R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in Medicine 17 (1998), table
    // I, method 3.
    for (const Known& k : {Known{81, 263, 0.2553, 0.3662}, Known{15, 148, 0.0624, 0.1605}, Known{0, 20, 0, 0.1611},
                           Known{1, 29, 0.0061, 0.1718}}) {
        const Interval found = wilson_95(k.part, k.all);
        EXPECT_NEAR(found.low, k.low, 0.00005) << k.part << " of " << k.all;
        EXPECT_NEAR(found.high, k.high, 0.00005) << k.part << " of " << k.all;
        const Interval mirrored = wilson_95(k.all - k.part, k.all);
        EXPECT_NEAR(mirrored.low, 1 - k.high, 0.00005);
        EXPECT_NEAR(mirrored.high, 1 - k.low, 0.00005);
    }
}

TEST(Interval, HasTheShareInside) {
    EXPECT_EQ(wilson_95(0, 7).low, 0);
    EXPECT_EQ(wilson_95(7, 7).high, 1);
    EXPECT_LE(wilson_95(1, 1'000'000'000).low, 1e-9);
}

TEST(Interval, OfSharesThatWereObservedLessOftenIsWider) {
    const Interval of_100 = wilson_95_of(5000, 10'000, 100), same = wilson_95(50, 100);
    EXPECT_DOUBLE_EQ(of_100.low, same.low);
    EXPECT_DOUBLE_EQ(of_100.high, same.high);
}

TEST(Interval, OfNothingIsEverything) {
    for (const Interval& each : {wilson_95(0, 0), wilson_95_of(1, 2, 0), wilson_95_of(0, 0, 5)}) {
        EXPECT_EQ(each.low, 0);
        EXPECT_EQ(each.high, 1);
    }
}

}  // namespace
}  // namespace waymark::answers
