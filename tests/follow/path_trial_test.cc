// Which of the two ways a trial keeps (follow::PathTrial), by a clock that the test sets.

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

#include "waymark/follow/paths.h"

namespace waymark::follow {
namespace {

struct SetClock {
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<SetClock, duration>;
    [[maybe_unused]] static constexpr bool is_steady = true;
    static time_point now() { return time; }
    static inline time_point time{};
};
using Trial = PathTrial<SetClock>;

/// Decodes up to the end of a trial in which each byte takes these times with and without paths. Returns the number of
/// bytes before the steps that it compares.
std::size_t decode(Trial& trial, int with, int without) {
    const unsigned compared = 10;
    std::size_t before = 0;
    for (unsigned left = compared + (trial.asks() ? 1 : 2); left > 0; --left) {
        const std::size_t bytes = trial.length();
        if (left > compared) before += bytes;
        // In two pieces, with time between them that does not count.
        const std::chrono::nanoseconds took(static_cast<long>(bytes / 2) * (trial.asks() ? with : without));
        SetClock::time += took;
        trial.stop();
        SetClock::time += std::chrono::seconds(trial.asks() ? 1 : 2);
        trial.begin();
        SetClock::time += took;
        trial.next(bytes);
    }
    return before;
}

TEST(PathTrial, KeepsTheFasterWayForLongerEachTime) {
    Trial trial(false);
    EXPECT_TRUE(trial.asks());
    EXPECT_EQ(decode(trial, 2, 3), 64U * 1024);
    EXPECT_TRUE(trial.asks());
    EXPECT_EQ(trial.length(), 128U * 1024);
    for (int i = 0; i < 10; ++i) (void)decode(trial, 2, 3);
    EXPECT_TRUE(trial.asks());
    EXPECT_EQ(trial.length(), 2048U * 1024);
}
TEST(PathTrial, GivesUpPathsThatTakeLonger) {
    Trial trial(false);
    (void)decode(trial, 3, 2);
    EXPECT_FALSE(trial.asks());
    EXPECT_EQ(trial.length(), 64U * 1024);
    // Before paths are compared again, they are recorded for a 128th part of the rest.
    EXPECT_EQ(decode(trial, 3, 2), 64U * 1024 + 512);
    EXPECT_FALSE(trial.asks());
    EXPECT_EQ(decode(trial, 3, 2), 129U * 1024);
    EXPECT_EQ(decode(trial, 2, 3), 258U * 1024);
    EXPECT_TRUE(trial.asks());
    EXPECT_EQ(trial.length(), 64U * 1024);
}
TEST(PathTrial, OneStepThatTakesLongDecidesNothing) {
    Trial trial(false);
    trial.next(trial.length());
    SetClock::time += std::chrono::seconds(1);
    trial.next(2048);
    for (int i = 0; i < 9; ++i) {
        SetClock::time += std::chrono::nanoseconds(2048 * (trial.asks() ? 2 : 3));
        trial.next(2048);
    }
    EXPECT_TRUE(trial.asks());
    EXPECT_EQ(trial.length(), 64U * 1024);
}

}  // namespace
}  // namespace waymark::follow
