// The account of a run: rows add up, words and statuses follow from the table of reasons, and the document shows it.
#include "waymark/answers/account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>

#include "waymark/answers/account_effects.h"

namespace waymark::answers {
namespace {

TEST(Account, IsSortedAndHasOneRowForEachReasonAndThing) {
    Account account;
    add(account, {.reason = AccountReason::no_image, .of = "libm.so", .times = 2, .instructions = 5});
    add(account, {.reason = AccountReason::overflow, .times = 3});
    add(account, {.reason = AccountReason::no_image, .of = "libc.so"});
    add(account, {.reason = AccountReason::no_image, .of = "libm.so", .times = 1, .instructions = 7});
    ASSERT_EQ(account.size(), 3U);
    EXPECT_EQ(account[0], (AccountRow{.reason = AccountReason::overflow, .times = 3}));
    EXPECT_EQ(account[1], (AccountRow{.reason = AccountReason::no_image, .of = "libc.so"}));
    EXPECT_EQ(account[2],
              (AccountRow{.reason = AccountReason::no_image, .of = "libm.so", .times = 3, .instructions = 12}));
}

TEST(Account, EachSizeIsAdded) {
    Account account;
    add(account, {.reason = AccountReason::no_image, .bytes = 1, .instructions = 10, .ranges = 100, .records = 1000});
    add(account, {.reason = AccountReason::no_image, .bytes = 2, .instructions = 20, .ranges = 200, .records = 2000});
    EXPECT_EQ(account, (Account{{.reason = AccountReason::no_image,
                                 .times = 2,
                                 .bytes = 3,
                                 .instructions = 30,
                                 .ranges = 300,
                                 .records = 3000}}));
}

TEST(Account, AnUnknownSizeIsNotZero) {
    Account account;
    add(account, {.reason = AccountReason::frames, .times = 1, .bytes = 16});
    add(account, {.reason = AccountReason::frames, .times = 1});
    EXPECT_EQ(account[0].bytes, std::nullopt);
    EXPECT_EQ(account_sentence(account), "lost: 2 stretches of damaged frames");
}

TEST(Account, NumbersDoNotWrap) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    Account account;
    add(account, {.reason = AccountReason::cut, .times = most, .bytes = most});
    add(account, {.reason = AccountReason::cut, .times = 2, .bytes = 2});
    EXPECT_EQ(account[0].times, most);
    EXPECT_EQ(account[0].bytes, most);
}

TEST(Account, AddsUpInAnyOrder) {
    std::mt19937 random(7);
    for (unsigned round = 0; round < 100; ++round) {
        std::vector<Account> parts(3);
        for (Account& part : parts)
            for (unsigned i = 0; i < 6; ++i) {
                AccountRow row{static_cast<AccountReason>(random() % account_reasons), random() % 2 != 0 ? "x" : "",
                               1 + random() % 3};
                if (random() % 2 != 0) row.bytes = random() % 100;
                if (random() % 2 != 0) row.instructions = random() % 100;
                add(part, row);
            }
        Account left = parts[0], right = parts[2], inner = parts[1];
        add(left, parts[1]);
        add(left, parts[2]);
        add(inner, parts[2]);
        Account outer = parts[0];
        add(outer, inner);
        EXPECT_EQ(left, outer);
        add(right, parts[1]);
        add(right, parts[0]);
        EXPECT_EQ(left, right);
    }
}

TEST(Account, WordsFollowFromTheReasons) {
    const auto word = [](std::initializer_list<AccountReason> reasons) {
        Account account;
        for (const AccountReason reason : reasons) add(account, {.reason = reason});
        return std::string(completeness(account).word());
    };
    using enum AccountReason;
    EXPECT_EQ(word({}), "exact");
    EXPECT_EQ(word({decoded}), "exact");
    EXPECT_EQ(word({decoded, overflow}), "lower bound");
    EXPECT_EQ(word({decoded, no_image}), "lower bound");
    EXPECT_EQ(word({decoded, strobing}), "estimate");
    EXPECT_EQ(word({decoded, strobing, overflow}), "estimate");
    EXPECT_EQ(word({decoded, shared_address}), "estimate");
    // With a wrong image, code that did not run is counted: no bound.
    EXPECT_EQ(word({decoded, contradiction}), "estimate");
}

TEST(Account, CountsAreOfNoMoreThanTheirNoteSays) {
    const auto note = [](std::initializer_list<AccountReason> reasons) {
        Account account;
        for (const AccountReason reason : reasons) add(account, {.reason = reason});
        return counts_note(account);
    };
    using enum AccountReason;
    EXPECT_EQ(note({decoded}), "");
    EXPECT_EQ(note({decoded, overflow}), "counts are of what was decoded; as figures of the run they are lower bounds");
    EXPECT_EQ(note({decoded, sampled}),
              "counts are of what was decoded; as figures of the run, counts and shares are estimates");
    // Samples represent only what the filter lets pass.
    EXPECT_EQ(note({decoded, sampled, filtered}),
              "counts are of what was decoded, and estimates; the rest of the run has no counts");
}

TEST(Account, EveryReasonButTheObservedPartHidesCode) {
    for (const AccountRule& rule : account_rules()) {
        const bool observed = rule.state == AccountState::observed;
        EXPECT_EQ(rule.hides == Hides::nothing, observed) << rule.what;
        EXPECT_EQ(rule.one.empty(), observed) << rule.what;
        EXPECT_FALSE(rule.what.empty());
        EXPECT_TRUE(observed || rule.lowers_sums || rule.estimates) << rule.what;
    }
}

TEST(Account, OneSentence) {
    Account account;
    EXPECT_EQ(account_sentence(account), "");
    add(account, {.reason = AccountReason::decoded, .instructions = 61081, .ranges = 300});
    EXPECT_EQ(account_sentence(account), "observed 61,081 instructions");
    add(account, {.reason = AccountReason::no_image, .of = "libm.so", .times = 2});
    add(account, {.reason = AccountReason::no_image, .of = "libc.so", .times = 1, .instructions = 1});
    add(account, {.reason = AccountReason::overflow, .times = 1, .bytes = 21});
    add(account, {.reason = AccountReason::before_start});
    add(account, {.reason = AccountReason::no_address, .times = 1, .ranges = 40});
    EXPECT_EQ(account_sentence(account),
              "observed 61,081 instructions; not traced: what ran before the recording began; lost: 1 overflow (21 "
              "bytes); not decoded: 1 stretch without an image (libc.so, 1 instruction), 2 stretches without an image "
              "(libm.so), 1 stretch without an address (40 waypoints)");
}

// Who records from main on leaves out what loads the program on purpose.
TEST(Account, FromMainOnIsOnPurpose) {
    const Account late{{.reason = AccountReason::before_start}};
    const Account from_main{{.reason = AccountReason::before_start, .of = std::string(at_main)}};
    EXPECT_TRUE(completeness(late).strict);
    EXPECT_FALSE(completeness(from_main).strict);
    EXPECT_TRUE(completeness(from_main).lower_bounds);
    EXPECT_EQ(completeness(from_main).hides, Hides::anything);
}

// Whoever counted what ran before saw which code it was.
TEST(Account, APartBeforeOfAKnownSizeHidesThatCodeAlone) {
    Account account{{.reason = AccountReason::before_start, .of = std::string(at_main), .instructions = 98213}};
    EXPECT_EQ(completeness(account).hides, Hides::reachable);
    EXPECT_TRUE(completeness(account).lower_bounds);
    EXPECT_EQ(account_sentence(account),
              "not traced: what ran before main, where the recording began (98,213 instructions)");
    add(account, account);
    EXPECT_EQ(completeness(account).hides, Hides::reachable);
    // If the size of one row is unknown, the size of the sum is unknown.
    add(account, {.reason = AccountReason::before_start, .of = std::string(at_main)});
    EXPECT_EQ(completeness(account).hides, Hides::anything);
}

TEST(Account, Document) {
    const std::string path = WAYMARK_SOURCE_DIR "/docs/account.md";
    if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path) << account_document();
    std::ifstream in(path);
    std::ostringstream text;
    text << in.rdbuf();
    EXPECT_EQ(text.str(), account_document()) << "run with WM_UPDATE_APPROVED=1, then read the difference";
}

}  // namespace
}  // namespace waymark::answers
