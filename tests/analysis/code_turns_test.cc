#include "waymark/analysis/code_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace waymark::analysis {
namespace {

using Files = std::vector<std::size_t>;

Files files_at(const CodeTurns& turns, std::uint64_t address, std::uint64_t time) {
    const std::uint32_t layer = turns.layer(address, time);
    return layer != 0 && turns.layers()[layer].known ? turns.layers()[layer].files : Files();
}

TEST(CodeTurns, WhereOneFileLayThereIsOneLayer) {
    const CodeTurns turns({{0x1000, 0x1fff, 0, 0, 5}, {0x1000, 0x1fff, 0, 7, {}}, {0x2000, 0x2fff, 1, 3, {}}}, true);
    EXPECT_EQ(turns.layers().size(), 1U);
    EXPECT_EQ(turns.layer(0x1800, 6), 0U);
    EXPECT_TRUE(turns.lies_alone(0));
    EXPECT_TRUE(turns.lies_alone(1));
    EXPECT_FALSE(turns.lies_alone(2));
}

TEST(CodeTurns, WhatWasMappedLastIsThere) {
    const CodeTurns turns({{0x1000, 0x1fff, 0, 2, 10}, {0x1000, 0x1fff, 1, 20, 30}, {0x1000, 0x1fff, 0, 40, {}}}, true);
    EXPECT_EQ(files_at(turns, 0x1000, 1), Files()) << "nothing was there yet";
    EXPECT_EQ(files_at(turns, 0x1000, 2), Files{0});
    EXPECT_EQ(files_at(turns, 0x1fff, 19), Files{0}) << "until another takes its place";
    EXPECT_EQ(files_at(turns, 0x1fff, 20), Files{1});
    EXPECT_EQ(files_at(turns, 0x1000, 40), Files{0});
    EXPECT_EQ(turns.layer(0x1000, 2), turns.layer(0x1000, 50)) << "what comes back has its layer again";
    EXPECT_EQ(turns.layer(0x2000, 2), 0U);
    EXPECT_FALSE(turns.lies_alone(0));
    EXPECT_FALSE(turns.layers()[turns.layer(0x1000)].known);
    EXPECT_EQ(turns.layers()[turns.layer(0x1000)].files, (Files{0, 1}));
}

TEST(CodeTurns, WhatCameAndWentBetweenTwoRowsIsNowhere) {
    // While tracing was off, the first file made room for the second and came back.
    const CodeTurns turns({{0x1000, 0x1fff, 0, 0, 10}, {0x1000, 0x1fff, 0, 10, {}}, {0x1000, 0x1fff, 1, 10, 10}}, true);
    EXPECT_EQ(files_at(turns, 0x1000, 10), Files{0});
}

TEST(CodeTurns, PartsOfAZoneChangeOneByOne) {
    const CodeTurns turns({{0x1000, 0x3fff, 0, 0, 10}, {0x1000, 0x1fff, 1, 10, {}}, {0x3000, 0x3fff, 2, 20, {}}}, true);
    EXPECT_EQ(files_at(turns, 0x3000, 5), Files{0});
    EXPECT_EQ(files_at(turns, 0x1000, 15), Files{1});
    EXPECT_EQ(files_at(turns, 0x1000, 20), (Files{1, 2}));
}

TEST(CodeTurns, WithoutTimesNothingIsKnown) {
    const CodeTurns turns({{0x1000, 0x1fff, 0, 0, 10}, {0x1800, 0x27ff, 1, 10, {}}}, false);
    for (const std::uint64_t time : {0U, 10U, 99U}) EXPECT_EQ(files_at(turns, 0x1900, time), Files());
    EXPECT_NE(turns.layer(0x27ff, 10), 0U);
    EXPECT_EQ(turns.layers().size(), 2U);
}

/// Random mappings that replace each other, against a list of the mapping at each byte.
TEST(CodeTurns, AgreesWithAListOfBytes) {
    std::mt19937 random(3);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (unsigned round = 0; round < 200; ++round) {
        std::vector<CodeTurns::Mapping> mappings;
        constexpr std::uint64_t times = 20, addresses = 24;
        std::vector<std::vector<std::size_t>> truth(times, std::vector<std::size_t>(addresses, ~std::size_t{0}));
        for (std::uint64_t t = 0; t < times; ++t) {
            if (t != 0) truth[t] = truth[t - 1];
            if (below(2) == 0) continue;
            // A file has one place in memory.
            const std::size_t file = below(5);
            const std::uint64_t first = file * 3, last = first + 4 + file % 3;
            // Overlapped mappings are removed as a whole, like a library that was unloaded.
            for (auto& each : mappings)
                if (!each.to && each.first <= last && first <= each.last) {
                    each.to = t;
                    for (std::uint64_t a = each.first; a <= each.last; ++a) truth[t][a] = ~std::size_t{0};
                }
            mappings.push_back({first, last, file, t, {}});
            for (std::uint64_t a = first; a <= last; ++a) truth[t][a] = file;
        }
        const CodeTurns turns(mappings, true);
        for (std::uint64_t t = 0; t < times; ++t)
            for (std::uint64_t a = 0; a < addresses; ++a) {
                const std::uint32_t layer = turns.layer(a, t);
                if (layer == 0 || truth[t][a] == ~std::size_t{0}) continue;
                const Files files = files_at(turns, a, t);
                EXPECT_TRUE(std::find(files.begin(), files.end(), truth[t][a]) != files.end())
                    << "round " << round << ", time " << t << ", address " << a;
                for (const CodeTurns::Mapping& m : mappings)
                    if (a >= m.first && a <= m.last && m.file != truth[t][a]) {
                        EXPECT_TRUE(std::find(files.begin(), files.end(), m.file) == files.end());
                    }
            }
    }
}

}  // namespace
}  // namespace waymark::analysis
