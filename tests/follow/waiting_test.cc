// Waiting gives the same results as Uncommitted, whenever elements are delivered.

#include "waymark/follow/waiting.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "support/random.h"
#include "uncommitted.h"

namespace waymark::follow {
namespace {

using Plain = Uncommitted<std::string>;
using Queue = Waiting<std::string>;
using Kind = Queue::Kind;

/// Delivered elements with their offsets: E, N, and elements by their names; packed addresses as #value, counts as
/// +value.
struct Delivered {
    std::string text;
    void operator()(Offset at, const Outcomes& o) {
        for (unsigned i = 0; i < o.count; ++i) word(at, (o.e >> i & 1) != 0 ? "E" : "N");
    }
    void operator()(Offset at, const PackedAddress& a) { word(at, "#" + std::to_string(a.value)); }
    void operator()(Offset at, const PackedCount& c) { word(at, "+" + std::to_string(c.value)); }
    void operator()(Offset at, const std::string& name) { word(at, name); }

private:
    void word(Offset at, const std::string& name) { text += std::to_string(at.value) + ':' + name + ' '; }
};

/// Delivers what is due, and what nothing can cancel any more.
void deliver(Queue& queue, Delivered& out) {
    queue.hold();
    while (queue.deliver_first(out)) {
    }
}

std::string delivered(Queue& queue) {
    Delivered out;
    deliver(queue, out);
    return out.text;
}

/// Including the newest committed outcome.
std::string settled(Queue& queue) {
    Delivered out;
    queue.settle(out);
    return out.text;
}

TEST(Waiting, DeliversWhatIsDueAndWhatNothingCanCancel) {
    Queue queue;
    queue.add({1}, Outcomes{0b0110, 4});
    queue.add({2}, Kind::kept, "time");
    queue.add({3}, Kind::p0, "exception");
    queue.add({4}, PackedAddress{64});
    EXPECT_TRUE(queue.commit(3));
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_EQ(queue.due(), 3U);
    // The newest outcome stays.
    EXPECT_EQ(delivered(queue), "1:N 1:E ");
    EXPECT_EQ(queue.due(), 0U);
    EXPECT_EQ(queue.first(), Offset{1});
    EXPECT_TRUE(queue.commit(2));
    EXPECT_EQ(delivered(queue), "1:E ");
    queue.add({5}, Outcomes{0b1, 1});
    EXPECT_TRUE(queue.commit(1));
    EXPECT_EQ(delivered(queue), "1:N 2:time 3:exception 4:#64 ");
    EXPECT_EQ(settled(queue), "5:E ");
    EXPECT_TRUE(queue.empty());
    // Without an outcome, no element has to stay.
    queue.add({6}, Kind::p0, "exception");
    EXPECT_TRUE(queue.commit(1));
    EXPECT_EQ(delivered(queue), "6:exception ");
}

// Committed elements cannot be cancelled. Only the newest committed outcome may be mispredicted.
TEST(Waiting, OnlyTheNewestOutcomeOfWhatIsCommittedIsNotSettled) {
    Queue queue;
    queue.add({1}, Outcomes{0b11, 2});
    queue.add({2}, PackedAddress{8});
    EXPECT_TRUE(queue.commit(2));
    EXPECT_FALSE(queue.commit(1));
    EXPECT_FALSE(queue.cancel(1));
    queue.add({3}, Outcomes{0b111, 3});
    EXPECT_TRUE(queue.commit(1));
    EXPECT_FALSE(queue.cancel(3));
    EXPECT_TRUE(queue.cancel(1));
    EXPECT_TRUE(queue.mispredict());
    EXPECT_TRUE(queue.commit(1));
    EXPECT_EQ(delivered(queue), "1:E 1:E 2:#8 3:E ");
    EXPECT_TRUE(queue.mispredict());
    EXPECT_EQ(settled(queue), "3:E ");
    EXPECT_FALSE(queue.mispredict());
}

TEST(Waiting, ACommittedOutcomeMayBeMispredicted) {
    Queue queue;
    queue.add({1}, Outcomes{0b1, 1});
    queue.add({2}, PackedAddress{8});
    queue.add({3}, Kind::p0, "exception");
    EXPECT_TRUE(queue.commit(2));
    EXPECT_EQ(delivered(queue), "");
    EXPECT_TRUE(queue.mispredict());
    EXPECT_EQ(settled(queue), "1:N 3:exception ");
}

// When no more elements can be committed, all committed elements are delivered, and those of the others that happened
// in any case.
TEST(Waiting, SettlesWhatItDiscards) {
    Queue queue;
    queue.add({1}, Outcomes{0b1, 1});
    queue.add({2}, PackedAddress{8});
    queue.add({3}, Kind::kept, "time");
    queue.add({4}, Outcomes{0b0, 1});
    queue.add({5}, PackedAddress{16});
    EXPECT_TRUE(queue.commit(1));
    Delivered out;
    EXPECT_EQ(queue.discard(out), 1U);
    EXPECT_EQ(out.text, "1:E 2:#8 3:time ");
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.depth(), 0U);
}

// An element that came with a commit follows the committed elements, and precedes all waiting ones.
TEST(Waiting, AddsBehindWhatWasCommitted) {
    Queue queue;
    queue.add({1}, Outcomes{0b0110, 4});
    queue.add({2}, Kind::kept, "time");
    queue.add({3}, Outcomes{0b1, 1});
    EXPECT_TRUE(queue.commit(3));
    queue.add_before_waiting({4}, PackedCount{4});  // between the outcomes of one row
    EXPECT_TRUE(queue.commit(1));
    queue.add_before_waiting({5}, PackedCount{5});  // behind released elements
    EXPECT_EQ(delivered(queue), "1:N 1:E 1:E 4:+4 ");
    EXPECT_EQ(queue.depth(), 1U);
    queue.add_before_waiting({6}, PackedCount{6});
    EXPECT_TRUE(queue.commit(1));
    queue.add_before_waiting({7}, PackedCount{7});
    EXPECT_EQ(delivered(queue), "1:N 2:time 5:+5 6:+6 ");
    EXPECT_EQ(settled(queue), "3:E 7:+7 ");
    EXPECT_TRUE(queue.empty());
    queue.add_unseen({8}, 5);
    EXPECT_TRUE(queue.commit(2));
    queue.add_before_waiting({9}, PackedCount{9});
    EXPECT_EQ(delivered(queue), "");
    EXPECT_EQ(settled(queue), "9:+9 ");
    EXPECT_EQ(queue.depth(), 3U);
}

// The newest outcome is searched from the nearer end, with the same result.
TEST(Waiting, HoldsTheNewestOutcomeHoweverMuchWaits) {
    for (const std::uint64_t kept : {1U, 2000U}) {
        Queue queue;
        queue.add({1}, Outcomes{0b01, 2});
        queue.add({2}, Kind::p0, "exception");
        for (std::uint64_t i = 0; i < kept; ++i) queue.add({3}, Kind::kept, "time");
        EXPECT_TRUE(queue.commit(3));
        EXPECT_EQ(delivered(queue), "1:E ");
        EXPECT_EQ(queue.size(), 2 + kept);
        queue.add({4}, Outcomes{0b1, 1});
        EXPECT_TRUE(queue.commit(1));
        EXPECT_TRUE(delivered(queue).starts_with("1:N 2:exception 3:time "));
        EXPECT_EQ(queue.size(), 1U);
    }
}

TEST(Waiting, WhatCameBeforeTheSyncIsCountedOnly) {
    Queue queue;
    queue.add_unseen({1}, 0);
    EXPECT_TRUE(queue.empty());
    queue.add_unseen({1}, 0xffff'ffff);
    queue.add({2}, PackedAddress{8});
    EXPECT_TRUE(queue.mispredict());  // an outcome that was not seen
    queue.add({3}, Outcomes{1, 1});
    EXPECT_TRUE(queue.commit(0xffff'fffe));
    EXPECT_EQ(delivered(queue), "");
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_TRUE(queue.cancel(1));
    EXPECT_TRUE(queue.commit(1));
    EXPECT_EQ(delivered(queue), "");
    EXPECT_TRUE(queue.mispredict());  // it is still the newest
    EXPECT_EQ(settled(queue), "");
    EXPECT_TRUE(queue.empty());
    EXPECT_FALSE(queue.mispredict());
}

TEST(Waiting, AnInnerLoopPutsAndTakesRows) {
    Queue queue;
    queue.add({1}, Outcomes{0b01, 2});
    Queue::Room room = queue.room(2);
    EXPECT_EQ(room.depth, 2U);
    EXPECT_EQ(room.undelivered, 2U);
    *room.row++ = WaitingRow::of(Outcomes{0b1, 1}, {2});
    *room.row++ = WaitingRow::of(PackedAddress{24}, {3});
    queue.added({room.row, 1, 3});
    EXPECT_EQ(queue.due(), 2U);
    WaitingRow* const first = queue.rows();
    EXPECT_EQ(first->weight, 2U);
    EXPECT_EQ(queue.rows_end() - first, 3);
    EXPECT_NE(queue.rows_end()->is, WaitingRow::Is::outcomes);
    EXPECT_NE(queue.rows_end()->is, WaitingRow::Is::packed_address);
    EXPECT_NE(queue.rows_end()->is, WaitingRow::Is::packed_count);
    queue.taken(first + 1, 0);
    EXPECT_EQ(queue.first(), Offset{2});
    EXPECT_EQ(delivered(queue), "");
    EXPECT_TRUE(queue.commit(1));
    EXPECT_EQ(delivered(queue), "");
    EXPECT_EQ(settled(queue), "2:E 3:#24 ");
}

TEST(Waiting, DoesWhatUncommittedDoes) {
    unsigned refused = 0, discarded = 0;
    std::size_t longest = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        SCOPED_TRACE(seed);
        synthetic::Random random(seed);
        Plain plain;
        Queue queue;
        Delivered expected, out;
        for (std::uint64_t i = 0; i < 500; ++i) {
            const auto count = random.below(6);
            const std::string name = std::to_string(i);
            switch (random.below(20)) {
                case 0:
                case 1:
                case 2:
                case 3: {
                    const auto n = static_cast<std::uint8_t>(1 + random.below(random.below(2) != 0 ? 5 : 32));
                    const Outcomes outcomes{static_cast<std::uint32_t>(random() & ((std::uint64_t{1} << n) - 1)), n};
                    plain.add({i}, outcomes);
                    queue.add({i}, outcomes);
                    break;
                }
                case 4:
                case 5:
                case 6:
                case 7:
                    plain.add({i}, Kind::address, "#" + name);
                    queue.add({i}, PackedAddress{i});
                    break;
                case 8:
                case 9:
                case 10:
                case 11: {
                    const auto kind = static_cast<Kind>(random.below(4));
                    plain.add({i}, kind, name);
                    queue.add({i}, kind, name);
                    break;
                }
                case 12:
                case 13: {
                    const bool fits = plain.commit(5 * count, expected);
                    ASSERT_EQ(queue.commit(5 * count), fits);
                    if (!fits || random.half()) break;
                    plain.add_before_waiting({i}, "+" + name);
                    queue.add_before_waiting({i}, PackedCount{i});
                    break;
                }
                case 14:
                case 15: {
                    const bool fits = plain.cancel(4 * count);
                    refused += fits ? 0 : 1;
                    ASSERT_EQ(queue.cancel(4 * count), fits);
                    break;
                }
                case 16: {
                    Plain after = plain;
                    if (after.cancel(count)) {
                        ASSERT_EQ(queue.outcome_before(count), after.mispredict());
                    }
                    ASSERT_EQ(queue.mispredict(), plain.mispredict());
                    break;
                }
                case 17:
                    plain.add_unseen({i}, count);
                    queue.add_unseen({i}, static_cast<std::uint32_t>(count));
                    break;
                case 18:
                    if (count != 0) break;
                    deliver(queue, out);
                    discarded += plain.empty() ? 0 : 1;
                    ASSERT_EQ(queue.discard(out), plain.discard(expected));
                    ASSERT_TRUE(queue.empty());
                    break;
                default: deliver(queue, out); break;
            }
            plain.release(expected);
            longest = std::max(longest, queue.size());
            ASSERT_EQ(queue.depth(), plain.depth());
            ASSERT_TRUE(expected.text.starts_with(out.text)) << out.text << "\n" << expected.text;
            // Sometimes delivers all elements that are due; then rows and entries wait in equal numbers.
            if (random.below(8) == 0) {
                deliver(queue, out);
                ASSERT_EQ(out.text, expected.text);
                ASSERT_EQ(queue.size(), plain.size());
                ASSERT_EQ(queue.empty(), plain.empty());
                if (!queue.empty()) {
                    ASSERT_EQ(queue.first(), plain.first());
                }
            }
        }
        ASSERT_TRUE(plain.commit(plain.depth(), expected));
        plain.settle(expected);
        ASSERT_TRUE(queue.commit(queue.depth()));
        queue.settle(out);
        ASSERT_EQ(out.text, expected.text);
    }
    EXPECT_GT(refused, 0U);
    EXPECT_GT(discarded, 0U);
    EXPECT_GT(longest, 50U);
}

}  // namespace
}  // namespace waymark::follow
