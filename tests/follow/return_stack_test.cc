#include "waymark/follow/return_stack.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <vector>

#include "support/random.h"
#include "waymark/follow/block_cache.h"

namespace waymark::follow {
namespace {

ReturnStack::Entry entry(std::uint64_t address) { return {{{address}, Isa::a64}, address % 3 == 0}; }

TEST(ReturnStack, DiscardsTheOldest) {
    ReturnStack stack;
    EXPECT_TRUE(stack.empty());
    for (std::uint64_t i = 0; i < ReturnStack::depth + 3; ++i) stack.push(entry(i));
    EXPECT_EQ(stack.size(), ReturnStack::depth);
    for (std::uint64_t i = ReturnStack::depth + 3; i-- > 3;) EXPECT_EQ(stack.pop(), entry(i));
    EXPECT_TRUE(stack.empty());
}

TEST(ReturnStack, DoesWhatAListDoes) {
    synthetic::Random random(1);
    ReturnStack stack;
    std::deque<ReturnStack::Entry> list;
    for (std::uint64_t i = 0; i < 10000; ++i) {
        if (random.below(100) == 0) {
            stack.clear();
            list.clear();
        } else if (random.below(5) < 3) {
            stack.push(entry(i));
            list.push_back(entry(i));
            if (list.size() > ReturnStack::depth) list.pop_front();
        } else if (!list.empty()) {
            EXPECT_EQ(stack.pop(), list.back());
            list.pop_back();
        }
        ASSERT_EQ(stack.size(), list.size());
    }
}

// A64 and A32 instructions have four bytes, T32 instructions two or four.
TEST(Starts, AreRegularWhereAnInstructionCanBegin) {
    for (std::uint64_t address = 0x1000; address < 0x1008; ++address) {
        const auto regular = [&](Isa isa) { return Starts::regular({{address}, isa}); };
        EXPECT_EQ(regular(Isa::a32), address % 4 == 0) << address;
        EXPECT_EQ(regular(Isa::a64), address % 4 == 0) << address;
        EXPECT_EQ(regular(Isa::t32), address % 2 == 0) << address;
        EXPECT_FALSE(regular(Isa::tee));
        EXPECT_FALSE(regular(Isa::jazelle));
    }
}

TEST(Starts, OfDifferentPlacesHaveDifferentKeys) {
    std::set<std::uint32_t> keys;
    unsigned places = 0;
    for (std::uint32_t low = 0xfff0; low < 0x10010; ++low)
        for (const Isa isa : {Isa::a32, Isa::t32, Isa::a64})
            if (Starts::regular({{low}, isa})) {
                keys.insert(Starts::key(low, isa));
                ++places;
            }
    EXPECT_EQ(places, 32U);
    EXPECT_EQ(keys.size(), places);
}

// Half full with eight entries: collisions at the end of the table continue at its beginning.
TEST(Starts, FindsWhatWasPutInAFullTable) {
    synthetic::Random random(3);
    for (unsigned times = 0; times < 500; ++times) {
        Starts starts;
        std::vector<std::uint32_t> keys;
        while (keys.size() < 8) {
            const std::uint32_t key = Starts::key(random.below(1U << 30) * 4, Isa::a32);
            ASSERT_EQ(starts.find(key), nowhere);
            starts.insert(key, static_cast<Position>(keys.size()));
            keys.push_back(key);
        }
        for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(starts.find(keys[i]), static_cast<Position>(i));
    }
}

TEST(Starts, FindsWhatWasPutIn) {
    synthetic::Random random(2);
    Starts starts;
    std::vector<std::uint32_t> keys;
    for (Position i = 0; i < 5000; ++i) {
        const std::uint32_t low = random.below(1U << 16) * 4 + (random.half() ? 0xffff0000U : 0);
        const Isa isas[] = {Isa::a32, Isa::t32, Isa::a64};
        const std::uint32_t key = Starts::key(low, isas[random.below(3)]);
        if (starts.find(key) != nowhere) continue;
        starts.insert(key, static_cast<Position>(keys.size()));
        keys.push_back(key);
    }
    ASSERT_GT(keys.size(), 4000U);
    for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(starts.find(keys[i]), static_cast<Position>(i));
}

// A lookup moves the start to the first slot of its key, in place of another one.
TEST(Starts, FindsEachAgainInAnyOrder) {
    synthetic::Random random(4);
    for (const std::size_t most : {8U, 500U}) {
        Starts starts;
        std::map<std::uint32_t, Position> all;
        for (unsigned times = 0; times < 50000; ++times) {
            // Key 0 is also that of an empty slot.
            const std::uint32_t key = random.below(1000) * 4;
            const auto found = all.find(key);
            ASSERT_EQ(starts.find(key), found == all.end() ? nowhere : found->second);
            if (found != all.end() || all.size() == most) continue;
            const auto at = static_cast<Position>(all.size());
            starts.insert(key, at);
            all.emplace(key, at);
        }
        EXPECT_EQ(all.size(), most);
    }
}

/// A program of which nothing is known.
class Nothing final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address, const isa::Space&) const override { return {}; }
};
struct Table {
    flow::BlockTable& table() { return blocks; }
    void reserve(std::uint32_t) {}
    flow::BlockTable blocks;
};

TEST(BlockCache, TellsPlacesApartByAllBitsAndInstructionSets) {
    const Nothing nothing;
    BlockCache cache({}, nothing, {});
    Table table;
    std::vector<Place> places;
    for (const std::uint64_t high : {0x0ULL, 0x1ULL, 0xaaaaULL, 0xffff8000ULL})
        for (const std::uint64_t low : {0x0ULL, 0x8000ULL, 0x8002ULL, 0x8004ULL, 0xfffffffcULL})
            for (const Isa isa : {Isa::a32, Isa::t32, Isa::tee, Isa::a64}) places.push_back({{high << 32 | low}, isa});
    // Addresses inside instructions, to which only damage leads.
    for (const std::uint64_t low : {0x8001ULL, 0x8003ULL})
        for (const Isa isa : {Isa::a32, Isa::t32, Isa::a64}) places.push_back({{low}, isa});
    for (const Place& place : places) {
        EXPECT_EQ(cache.peek(place), nowhere);
        Position at = 0;
        EXPECT_EQ(cache.find(place, table, at).start(), place);
        EXPECT_EQ(at, nowhere) << "no execution passes it";
    }
    std::set<Position> positions;
    for (const Place& place : places) {
        positions.insert(cache.peek(place));
        Position at = 0;
        EXPECT_EQ(cache.find(place, table, at).start(), place);
    }
    EXPECT_EQ(positions.size(), places.size());
}

}  // namespace
}  // namespace waymark::follow
