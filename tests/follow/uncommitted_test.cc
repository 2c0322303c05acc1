#include "uncommitted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "support/random.h"

namespace waymark::follow {
namespace {

using Queue = Uncommitted<std::string>;
using Kind = Queue::Kind;

/// Delivered elements, one word each: E, N, and elements by their names.
struct Delivered {
    std::string text;
    void operator()(Offset, const Outcomes& o) {
        for (unsigned i = 0; i < o.count; ++i) text += (o.e >> i & 1) != 0 ? "E " : "N ";
    }
    void operator()(Offset, const std::string& name) { text += name + ' '; }
};

std::string committed(Queue& queue, std::size_t count) {
    Delivered out;
    EXPECT_TRUE(queue.commit(count, out));
    return out.text;
}
/// All remaining elements, P0 elements too.
std::string rest(Queue& queue) {
    Delivered out;
    EXPECT_TRUE(queue.commit(queue.depth(), out));
    queue.settle(out);
    EXPECT_TRUE(queue.empty());
    return out.text;
}

TEST(Uncommitted, CommitsTheOldest) {
    Queue queue;
    queue.add({1}, Outcomes{0b0110, 4});
    queue.add({2}, Kind::kept, "time");
    queue.add({3}, Kind::p0, "exception");
    EXPECT_EQ(queue.depth(), 5U);
    // The newest outcome stays until a newer one is committed.
    EXPECT_EQ(committed(queue, 3), "N E ");
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_EQ(queue.first(), Offset{1});
    EXPECT_EQ(committed(queue, 1), "E ");
    EXPECT_EQ(queue.first(), Offset{1});
    EXPECT_EQ(committed(queue, 1), "");
    queue.add({4}, Outcomes{0b1, 1});
    EXPECT_EQ(committed(queue, 1), "N time exception ");
    Delivered out;
    queue.settle(out);
    EXPECT_EQ(out.text, "E ");
    EXPECT_TRUE(queue.empty());
    // Without an outcome, no element has to stay.
    queue.add({5}, Kind::p0, "exception");
    EXPECT_EQ(committed(queue, 1), "exception ");
}

// The newest outcome may turn out to be mispredicted after it was committed, but not after a newer one was committed.
TEST(Uncommitted, ACommittedOutcomeMayBeMispredicted) {
    Queue queue;
    queue.add({1}, Outcomes{0b11, 2});
    queue.add({2}, Kind::address, "wrong");
    queue.add({3}, Kind::kept, "time");
    EXPECT_EQ(committed(queue, 2), "E ");
    queue.add({4}, Outcomes{0b1, 1});
    EXPECT_FALSE(queue.cancel(2));
    EXPECT_TRUE(queue.cancel(1));
    EXPECT_TRUE(queue.mispredict());
    queue.add({5}, Kind::address, "right");
    queue.add({6}, Outcomes{0b1, 1});
    EXPECT_EQ(committed(queue, 1), "N ");
    EXPECT_EQ(rest(queue), "time right E ");
    EXPECT_FALSE(queue.mispredict());
}

// An element that came with a commit follows the committed elements, and precedes all waiting ones.
TEST(Uncommitted, AddsBehindWhatWasCommitted) {
    Queue queue;
    queue.add({1}, Outcomes{0b0110, 4});
    EXPECT_EQ(committed(queue, 2), "N ");
    queue.add_before_waiting({2}, "count");  // between the outcomes of one entry
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_EQ(committed(queue, 2), "E count E ");
    queue.add_before_waiting({3}, "count");
    EXPECT_EQ(rest(queue), "N count ");
}

TEST(Uncommitted, TellsWhereAnOutcomeStood) {
    Queue queue;
    queue.add({5}, Outcomes{0b11, 2});
    queue.add({9}, Outcomes{0b1, 1});
    std::vector<std::uint64_t> at;
    const auto take = [&](Offset offset, const auto&) { at.push_back(offset.value); };
    EXPECT_TRUE(queue.commit(3, take));
    queue.settle(take);
    EXPECT_EQ(at, (std::vector<std::uint64_t>{5, 9}));
}

TEST(Uncommitted, RefusesMoreThanThereIs) {
    Queue queue;
    queue.add({1}, Outcomes{1, 2});
    Delivered out;
    EXPECT_FALSE(queue.commit(3, out));
    EXPECT_FALSE(queue.cancel(3));
    EXPECT_EQ(out.text, "");
    EXPECT_EQ(queue.depth(), 2U);
}

TEST(Uncommitted, CancelsTheNewestButKeepsTimes) {
    Queue queue;
    queue.add({1}, Outcomes{0b1, 1});
    queue.add({2}, Kind::address, "to");
    queue.add({3}, Kind::kept, "time1");
    queue.add({4}, Outcomes{0b101, 3});
    queue.add({5}, Kind::dropped, "context");
    queue.add({6}, Kind::kept, "time2");
    queue.add({7}, Kind::p0, "exception");
    queue.add({8}, Kind::address, "vector");
    queue.add({9}, Kind::kept, "time3");
    EXPECT_TRUE(queue.cancel(3));
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_EQ(rest(queue), "E to time1 E time2 time3 ");
}

// Outcomes of a packet that were cancelled or delivered leave no bits in its entry.
TEST(Uncommitted, OutcomesHaveOnlyTheirBits) {
    Queue queue;
    queue.add({1}, Outcomes{0b11111, 5});
    EXPECT_TRUE(queue.cancel(2));
    std::vector<Outcomes> delivered;
    const auto take = [&](Offset, const auto& element) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(element)>, Outcomes>) delivered.push_back(element);
    };
    EXPECT_TRUE(queue.commit(1, take));
    EXPECT_TRUE(queue.commit(2, take));
    queue.settle(take);
    EXPECT_EQ(delivered, (std::vector<Outcomes>{{0b11, 2}, {0b1, 1}}));
}

TEST(Uncommitted, AMispredictedOutcomeLosesItsAddress) {
    Queue queue;
    queue.add({1}, Outcomes{0b11, 2});
    queue.add({2}, Kind::address, "before");
    queue.add({3}, Outcomes{0b01, 3});
    queue.add({4}, Kind::address, "wrong");
    queue.add({5}, Kind::kept, "time");
    queue.add({6}, Kind::dropped, "context");
    EXPECT_TRUE(queue.mispredict());
    EXPECT_EQ(rest(queue), "E E before E N E time context ");
}

TEST(Uncommitted, WithoutAnOutcomeNothingCanBeMispredicted) {
    Queue queue;
    EXPECT_FALSE(queue.mispredict());
    queue.add({1}, Kind::p0, "exception");
    EXPECT_FALSE(queue.mispredict());
    Queue synced;
    synced.add_unseen({1}, 2);
    synced.add({2}, Kind::address, "wrong");
    EXPECT_TRUE(synced.mispredict());  // an outcome that was not seen
    EXPECT_EQ(rest(synced), "");
}

TEST(Uncommitted, WhatCameBeforeTheSyncIsCountedOnly) {
    Queue queue;
    queue.add_unseen({1}, 1'000'000'000'000);
    queue.add({2}, Outcomes{1, 1});
    EXPECT_EQ(committed(queue, 999'999'999'999), "");
    EXPECT_TRUE(queue.cancel(1));
    queue.add({3}, Kind::p0, "exception");
    EXPECT_EQ(queue.depth(), 2U);
    EXPECT_EQ(rest(queue), "exception ");
}

TEST(Uncommitted, ReleasesWhatNothingCanCancel) {
    Queue queue;
    Delivered out;
    queue.add({1}, Kind::kept, "time");
    queue.add({2}, Kind::address, "to");
    queue.add({3}, Outcomes{0, 1});
    queue.add({4}, Kind::kept, "later");
    queue.release(out);
    EXPECT_EQ(out.text, "time to ");
    EXPECT_EQ(queue.first(), Offset{3});
}

TEST(Uncommitted, CountsWhatNeverCommitted) {
    Queue queue;
    const auto fill = [&] {
        queue.add({1}, Kind::kept, "time1");
        queue.add({2}, Outcomes{0, 5});
        queue.add({3}, Kind::address, "to");
        queue.add({4}, Kind::kept, "time2");
        queue.add({5}, Kind::p0, "exception");
    };
    fill();
    Delivered discarded;
    EXPECT_EQ(queue.discard(discarded), 6U);
    EXPECT_EQ(discarded.text, "time1 time2 ");
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.depth(), 0U);
    // Committed elements are delivered first.
    fill();
    Delivered settled;
    EXPECT_TRUE(queue.commit(2, settled));
    EXPECT_EQ(queue.discard(settled), 4U);
    EXPECT_EQ(settled.text, "time1 N N time2 ");
    EXPECT_TRUE(queue.empty());
}

/// The same queue, as simple as possible: one entry for each P0 element, in a list.
class Plain {
public:
    enum class Is : std::uint8_t { p0, address, dropped, kept, outcome };
    void add(const Outcomes& o) {
        for (unsigned i = 0; i < o.count; ++i) list_.push_back({Is::outcome, (o.e >> i & 1) != 0 ? "E" : "N", false});
    }
    void add(Kind kind, const std::string& name) { list_.push_back({static_cast<Is>(kind), name, false}); }
    [[nodiscard]] std::size_t depth() const {
        std::size_t n = 0;
        for (const Entry& e : list_) n += counts(e) && !e.committed ? 1 : 0;
        return n;
    }
    bool commit(std::size_t count, std::string& text) {
        if (count > depth()) return false;
        std::size_t last = 0, newest = 0, i = 0;  // committed P0 element, outcome of them: index + 1
        for (Entry& e : list_) {
            ++i;
            if (counts(e) && !e.committed && count != 0) e.committed = true, --count;
            if (e.committed) last = i;
            if (e.committed && e.is == Is::outcome) newest = i;
        }
        for (std::size_t n = newest != 0 ? newest - 1 : last; n != 0; --n) {
            // Up to the last P0 element before the newest outcome.
            if (std::none_of(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(n), counts)) break;
            text += list_.front().name + ' ';
            list_.erase(list_.begin());
        }
        return true;
    }
    void settle(std::string& text) {
        for (; !list_.empty() && (!counts(list_.front()) || list_.front().committed); list_.erase(list_.begin()))
            text += list_.front().name + ' ';
    }
    bool cancel(std::size_t count) {
        if (count > depth()) return false;
        for (std::size_t i = list_.size(); count != 0; --i) {
            const Entry& e = list_[i - 1];
            count -= counts(e) ? 1 : 0;
            if (e.is != Is::kept) list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(i - 1));
        }
        return true;
    }
    bool mispredict() {
        std::size_t i = list_.size();
        while (i != 0 && list_[i - 1].is != Is::outcome) --i;
        if (i == 0) return false;
        list_[i - 1].name = list_[i - 1].name == "E" ? "N" : "E";
        for (std::size_t j = list_.size(); j > i; --j)
            if (list_[j - 1].is == Is::address) list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(j - 1));
        return true;
    }

private:
    struct Entry {
        Is is;
        std::string name;
        bool committed = false;
    };
    static bool counts(const Entry& e) { return e.is == Is::p0 || e.is == Is::outcome; }
    std::vector<Entry> list_;
};

TEST(Uncommitted, DoesWhatAPlainListDoes) {
    unsigned refused = 0;
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        synthetic::Random random(seed);
        Queue queue;
        Plain plain;
        Delivered out;
        std::string expected;
        for (unsigned i = 0; i < 300; ++i) {
            const auto count = random.below(6);
            switch (random.below(6)) {
                case 0:
                case 1: {
                    const auto n = static_cast<std::uint8_t>(1 + random.below(24));
                    const Outcomes outcomes{static_cast<std::uint32_t>(random()) & ((1U << n) - 1), n};
                    queue.add({i}, outcomes);
                    plain.add(outcomes);
                    break;
                }
                case 2: {
                    const auto kind = static_cast<Kind>(random.below(4));
                    queue.add({i}, kind, std::to_string(i));
                    plain.add(kind, std::to_string(i));
                    break;
                }
                case 3: ASSERT_EQ(queue.commit(5 * count, out), plain.commit(5 * count, expected)); break;
                case 4: {
                    const bool fits = plain.cancel(4 * count);
                    refused += fits ? 0 : 1;
                    ASSERT_EQ(queue.cancel(4 * count), fits);
                    break;
                }
                default: ASSERT_EQ(queue.mispredict(), plain.mispredict()); break;
            }
            ASSERT_EQ(queue.depth(), plain.depth());
            ASSERT_EQ(out.text, expected);
        }
        ASSERT_TRUE(queue.commit(queue.depth(), out));
        ASSERT_TRUE(plain.commit(plain.depth(), expected));
        ASSERT_EQ(out.text, expected);
        queue.settle(out);
        plain.settle(expected);
        ASSERT_EQ(out.text, expected);
    }
    EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace waymark::follow
