#include "waymark/core/offset_map.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace waymark {
namespace {

TEST(OffsetMap, MapsAndJoinsNeighbours) {
    OffsetMap map;
    EXPECT_EQ(map.capture({5}), Offset{5});
    map.add({0}, {100});
    map.add({10}, {110});
    map.add({15}, {120});
    EXPECT_EQ(map.entries(), 2U);
    EXPECT_EQ(map.capture({0}), Offset{100});
    EXPECT_EQ(map.capture({14}), Offset{114});
    EXPECT_EQ(map.capture({15}), Offset{120});
    EXPECT_EQ(map.capture({20}), Offset{125});
}

TEST(OffsetMap, ForgetsButWhatIsPinned) {
    std::mt19937_64 random(1);
    OffsetMap map;
    std::map<std::uint64_t, std::uint64_t> truth;
    std::uint64_t stream = 0, capture = 0;
    for (unsigned i = 0; i < 1000; ++i) {
        map.add({stream}, {capture});
        const std::uint64_t run = 1 + random() % 15;
        for (std::uint64_t k = 0; k < run; ++k) truth[stream + k] = capture + k;
        stream += run;
        capture += run + 1 + random() % 40;
    }
    const Offset pins[] = {{17}, {stream / 2}};
    const Offset keep{stream * 3 / 4};
    map.forget(keep, pins);
    EXPECT_LT(map.entries(), 300U);
    EXPECT_EQ(map.capture(pins[0]).value, truth[pins[0].value]);
    EXPECT_EQ(map.capture(pins[1]).value, truth[pins[1].value]);
    for (std::uint64_t at = keep.value; at < stream; ++at) ASSERT_EQ(map.capture({at}).value, truth[at]);
}

}  // namespace
}  // namespace waymark
