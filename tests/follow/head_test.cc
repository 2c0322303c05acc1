// The search for a head, on programs small enough to follow by hand, without any protocol: the effects of observations
// on paths, and the conditions under which two paths become one. docs/recover.md.
#include "waymark/follow/head.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace waymark::follow {
namespace {

constexpr std::uint64_t first = 0x8000;

/// Words of code from `first` on.
class Words final : public isa::CodeReader {
public:
    Words(std::initializer_list<std::uint32_t> words) {
        for (const std::uint32_t word : words)
            for (unsigned byte = 0; byte < 4; ++byte) bytes_.push_back(static_cast<std::uint8_t>(word >> 8 * byte));
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < first || address.value >= first + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - first), 0};
    }
    [[nodiscard]] std::vector<CodeExtent> extents() const { return {{{first}, bytes_.size()}}; }

private:
    std::vector<std::uint8_t> bytes_;
};

constexpr std::uint32_t ret = 0xd65f03c0, br = 0xd61f0000;
/// A64 branches, with distances in instructions from the branch itself.
constexpr std::uint32_t b(int to) { return 0x14000000U | (static_cast<std::uint32_t>(to) & 0x3ffffffU); }
constexpr std::uint32_t bl(int to) { return 0x94000000U | (static_cast<std::uint32_t>(to) & 0x3ffffffU); }
constexpr std::uint32_t b_eq(int to) { return 0x54000000U | (static_cast<std::uint32_t>(to) & 0x7ffffU) << 5; }

constexpr Place a64(std::uint64_t address) { return {{address}, Isa::a64}; }
/// The low 7 bits that a word-aligned address has above bit 1.
SentPlace low(std::uint64_t address) { return {.bits = address >> 2 & 0x7f, .width = 7, .a64 = true}; }
SentPlace whole(std::uint64_t address) { return {.bits = address >> 2, .width = 62, .whole = true, .a64 = true}; }
SentPlace repeats(std::uint8_t entry) { return {.repeats = entry, .a64 = true}; }

HeadRules rules_a64(bool return_stack = false) {
    return {.isas = {Isa::a64}, .return_stack = return_stack, .indirect = Rules::Indirect::waits, .history = 3};
}
seen::Outcomes outcomes(const char* text) {
    seen::Outcomes out;
    for (; *text != 0; ++text) out.taken |= (*text == 'E' ? 1U : 0U) << out.count++;
    return out;
}

/// The result of a search with observations at offsets 0, 10, 20 …
HeadRecovery search(const HeadRules& rules, const Words& code, std::vector<Observed> all, double unseen = 1e-6,
                    const RecoverLimits& limits = {}) {
    std::vector<Observation> observations;
    for (Observed& one : all) observations.push_back({{observations.size() * 10}, std::move(one)});
    HeadRecovery out;
    const auto extents = code.extents();
    search_head(rules, code, extents, observations, unseen, limits, out);
    return out;
}

/// 8000: BR; 8004: B.EQ 8000; 8008: B 8004; 800c: BR. Only BR is followed by an address.
const Words& indirect() {
    static const Words code{br, b_eq(-1), b(-1), br};
    return code;
}

// An address is the target of a taken indirect branch: it excludes direct branches, even though the outcomes would fit
// them too.
TEST(HeadSearch, AnAddressFollowsAnIndirectBranch) {
    const HeadRecovery head =
        search(rules_a64(), indirect(),
               {outcomes("E"), seen::Arrival{whole(0x8008)}, outcomes("EN"), seen::Sync{a64(0x8008), true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    ASSERT_EQ(head.stretches.size(), 1U);
    EXPECT_EQ(head.stretches[0].first.value, 20U);
    EXPECT_EQ(head.stretches[0].end.value, 30U);
    EXPECT_EQ(head.stretches[0].standing.current, a64(0x8008));
    EXPECT_EQ(head.stretches[0].standing.last, a64(0x8008));
    EXPECT_TRUE(head.confirmed);
    // At the end execution can only be at this place.
    EXPECT_EQ(search(rules_a64(), indirect(),
                     {outcomes("E"), seen::Arrival{whole(0x8008)}, outcomes("EN"), seen::Sync{a64(0x8004), true}})
                  .outcome,
              HeadOutcome::no_path);
}

// An indirect branch that no address follows contradicts a unit without a return stack.
TEST(HeadSearch, WithoutReturnStackAnAddressMustFollow) {
    const HeadRecovery head = search(
        rules_a64(), indirect(),
        {seen::Restart{}, seen::Arrival{whole(0x8000)}, outcomes("E"), outcomes("E"), seen::Sync{a64(0x8000), true}});
    EXPECT_NE(head.outcome, HeadOutcome::recovered);
    EXPECT_TRUE(head.stretches.empty());
}

// An address whose low bits alone are sent takes the upper bits of the last address: once this is known, the decoder
// gets the bits that complete it. A repeated address is the entry that it names.
TEST(HeadSearch, AddressesAreCompletedWithThoseBefore) {
    const HeadRecovery head =
        search(rules_a64(), indirect(),
               {outcomes("E"), seen::Arrival{whole(0x8004)}, outcomes("NE"), outcomes("NE"), seen::Named{low(0x800c)},
                seen::Named{repeats(1)}, seen::Interrupted{repeats(1), false}, seen::Arrival{repeats(2)}, outcomes("E"),
                seen::Sync{a64(0x800c), false}});
    // 8004 N, 8008 E, 8004 N, 8008 E: at 8004; 800c is named, then 8004, then 800c, which is not where execution is.
    EXPECT_NE(head.outcome, HeadOutcome::recovered);
    const HeadRecovery right =
        search(rules_a64(), indirect(),
               {outcomes("E"), seen::Arrival{whole(0x8004)}, outcomes("NE"), outcomes("NE"), seen::Named{low(0x800c)},
                seen::Named{repeats(1)}, seen::Interrupted{repeats(0), false}, seen::Arrival{repeats(2)}, outcomes("E"),
                seen::Sync{a64(0x8000), true}});
    // An exception before the instruction at 8004; its handler is at 800c, a BR.
    ASSERT_EQ(right.outcome, HeadOutcome::recovered);
    EXPECT_EQ(right.stretches.front().first.value, 20U);
    EXPECT_EQ(right.stretches.back().end.value, 90U);
}

// A packet that repeats an address from before the head may mean any place. Such packets are counted.
TEST(HeadSearch, ARepeatedAddressFromBeforeIsAnyPlace) {
    const HeadRecovery head =
        search(rules_a64(), indirect(), {outcomes("E"), seen::Arrival{repeats(1)}, seen::Sync{a64(0x8004), false}});
    EXPECT_EQ(head.obstacles.repeated, 1U);
    EXPECT_TRUE(head.stretches.empty());
}

// Instructions whose path is not traced end the known flow.
TEST(HeadSearch, UntracedInstructionsAreCounted) {
    const HeadRecovery head =
        search(rules_a64(), indirect(),
               {seen::Restart{}, seen::Arrival{whole(0x8004)}, outcomes("NEN"), seen::Untraced{}, outcomes("E"),
                seen::Arrival{whole(0x8004)}, outcomes("NE"), seen::Sync{a64(0x8004), true}});
    EXPECT_EQ(head.obstacles.untraced, 1U);
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    ASSERT_EQ(head.stretches.size(), 1U);
    EXPECT_EQ(head.stretches[0].first.value, 60U);
}

// 8000: BL 8010; 8004: B.EQ 8000; 8008: BL 8010; 800c: B 8000; 8010: RET. Two calls of one function: which call a
// return belongs to is on the return stack, and two paths that differ in it alone become one.
const Words& calls() {
    static const Words code{bl(4), b_eq(-1), bl(2), b(-3), ret};
    return code;
}

TEST(HeadSearch, ReturnsGoWhereTheStackSays) {
    // A complete iteration: BL, RET, B.EQ not taken, BL, RET, B.
    const HeadRecovery head =
        search(rules_a64(true), calls(),
               {outcomes("EENEEE"), outcomes("EENEEE"), outcomes("EENEEE"), seen::Sync{a64(0x8000), true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.stretches[0].first.value, 10U);
    EXPECT_EQ(head.stretches[0].standing.current, a64(0x8000));
    EXPECT_EQ(head.paths, 1U);
}

// A path that begins inside the function: the entry for the first return was pushed before the head, and the decoder
// gets this entry.
TEST(HeadSearch, WhatWasOnTheStackBeforeIsGivenToTheDecoder) {
    const HeadRecovery head = search(rules_a64(true), calls(),
                                     {outcomes("EENEE"), seen::Nothing{}, outcomes("EEENE"), outcomes("EE"),
                                      outcomes("EEN"), seen::Sync{a64(0x8008), true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    for (const HeadStretch& stretch : head.stretches)
        for (const Place& entry : stretch.standing.returns)
            EXPECT_TRUE(entry == a64(0x8004) || entry == a64(0x800c)) << std::hex << entry.address.value;
}

// If two paths have become one, only their common part is known, not the part before they met.
TEST(HeadSearch, PathsThatMeetKeepWhatTheyShare) {
    // 8000: B 8008; 8004: B 8008; 8008: B.EQ 8008; 800c: BR. From either of two places the way is the same.
    const Words code{b(2), b(1), b_eq(0), br};
    const HeadRecovery head = search(rules_a64(), code,
                                     {outcomes("E"), outcomes("E"), outcomes("EEN"), outcomes("E"),
                                      seen::Arrival{low(0x8008)}, outcomes("EN"), seen::Sync{a64(0x800c), true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    // After the first outcome both are at 8008.
    EXPECT_EQ(head.stretches[0].first.value, 10U);
    EXPECT_EQ(head.stretches[0].standing.current, a64(0x8008));
}

// The same bytes are other instructions in another instruction set: the walks from one address are kept apart.
TEST(HeadSearch, OneAddressInTwoInstructionSets) {
    HeadRules rules;
    rules.isas = {Isa::a32, Isa::t32};
    rules.isa_of_base = true;
    // A32: B to itself. T32: 0xfffe is no waypoint by itself, 0xeafe is part of a wide instruction.
    const Words code{0xeafffffeU};
    const HeadRecovery head =
        search(rules, code, {outcomes("EE"), outcomes("E"), seen::Sync{{{first}, Isa::a32}, true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.stretches[0].standing.current, (Place{{first}, Isa::a32}));
    EXPECT_EQ(search(rules, code, {outcomes("EE"), outcomes("E"), seen::Sync{{{first}, Isa::t32}, true}}).outcome,
              HeadOutcome::no_path);
}

// ETE: branches before the one that the packet names were not taken.
TEST(HeadSearch, AnUnconditionalBranchIsTaken) {
    const Words code{b(0)};
    EXPECT_EQ(search(rules_a64(), code, {outcomes("N"), outcomes("N"), seen::Sync{a64(first), true}}).outcome,
              HeadOutcome::no_path);
}

// ETE: branches before the named one were not taken.
TEST(HeadSearch, ASourceAddressNamesTheTakenOne) {
    const Words code{b_eq(3), b_eq(2), b_eq(-2), br};
    const HeadRecovery head =
        search(rules_a64(), code,
               {seen::Restart{}, seen::Arrival{whole(0x8000)}, seen::Source{low(0x8008)}, outcomes("E"), outcomes("E"),
                seen::Arrival{low(0x8004)}, seen::Sync{a64(0x8004), true}});
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_TRUE(head.confirmed);
    EXPECT_EQ(search(rules_a64(), code,
                     {seen::Restart{}, seen::Arrival{whole(0x8008)}, seen::Source{low(0x8000)},
                      seen::Sync{a64(0x8008), true}})
                  .outcome,
              HeadOutcome::no_path);
}

TEST(HeadSearch, LimitsEndIt) {
    const Words code{b(0)};
    HeadRecovery out;
    const auto extents = code.extents();
    const std::vector<Observation> all{{{0}, outcomes("EEEE")}, {{1}, seen::Sync{a64(first), true}}};
    search_head(rules_a64(), code, extents, all, 0.5, {.steps = 2}, out);
    EXPECT_EQ(out.outcome, HeadOutcome::too_much);
    EXPECT_TRUE(out.stretches.empty());
}

// ---- where packets begin

// Packets of one byte or of three: chains from the first four bytes meet at byte 5.
TEST(HeadChains, MeetWhereAllAreOne) {
    const std::vector<std::uint8_t> head{1, 3, 3, 1, 1, 3, 1, 1, 1, 1};
    const HeadChains chains(head.size(), head.size(), 4, [&](std::size_t at) -> std::size_t { return head[at]; });
    ASSERT_EQ(chains.joined(), 5U);
    EXPECT_EQ(chains.length(5), 3U);
    // The last packet must end where the synchronisation packet begins.
    const HeadChains apart(2, 2, 4, [](std::size_t) -> std::size_t { return 3; });
    EXPECT_EQ(apart.joined(), std::nullopt);
    // Two chains that never meet.
    const HeadChains two(8, 7, 2, [](std::size_t) -> std::size_t { return 2; });
    EXPECT_EQ(two.joined(), std::nullopt);
}

TEST(Head, SyncIsHeldWithEnoughAfterIt) {
    std::vector<std::uint8_t> bytes(5);
    bytes.push_back(0x80);
    bytes.resize(6 + judged_bytes - 1, 1);
    EXPECT_FALSE(holds_sync(bytes, 5));
    bytes.push_back(1);
    EXPECT_TRUE(holds_sync(bytes, 5));
    EXPECT_FALSE(holds_sync(bytes, 6));
}

TEST(Head, ExtentsBelow4GB) {
    const std::vector<CodeExtent> all{{{0x8000}, 16}, {{0xffff'fff0}, 64}, {{std::uint64_t{1} << 32}, 16}};
    EXPECT_EQ(below_4gb(all), (std::vector<CodeExtent>{{{0x8000}, 16}, {{0xffff'fff0}, 16}}));
}

TEST(Head, ObstaclesInWords) {
    EXPECT_EQ(text(Obstacles{}), "");
    EXPECT_EQ(text(Obstacles{.untraced = 1, .repeated = 0, .lost = 2}), "1 Q element, 2 losses of trace");
}

// A loop that calls through a pointer repeats an address in each iteration: the search from there is the same each
// time, and is done once.
TEST(HeadSearch, ALoopOfRepeatedAddressesIsSearchedOnce) {
    constexpr unsigned rounds = 200;
    std::vector<Observed> all;
    for (unsigned i = 0; i < rounds; ++i) {
        all.emplace_back(outcomes("E"));
        all.emplace_back(seen::Arrival{repeats(0)});
    }
    all.insert(all.end(), {outcomes("E"), seen::Arrival{whole(0x8008)}, outcomes("EN"), seen::Sync{a64(0x8008), true}});
    RecoverLimits few;
    few.steps = 1500;
    const HeadRecovery head = search(rules_a64(), indirect(), all, 1e-6, few),
                       all_steps = search(rules_a64(), indirect(), all);
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.obstacles.repeated, rounds);
    ASSERT_EQ(head.stretches.size(), all_steps.stretches.size());
    EXPECT_EQ(head.stretches.back().standing, all_steps.stretches.back().standing);
    EXPECT_EQ(head.first, all_steps.first);
    EXPECT_EQ(head.first.value, 10U * (2 * rounds + 2));
}

// Remembered runs are compared with the following observations, one by one: each comparison is a step, so many of them
// reach the limit.
TEST(HeadSearch, ComparisonsWithRememberedRunsAreSteps) {
    // Twice twelve branches that lead to the next instruction either way, and a BR.
    constexpr std::uint32_t b1 = b_eq(1);
    static const Words code{b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, br,
                            b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, b1, br};
    constexpr unsigned count = 11, runs = 1U << count;
    std::vector<Observed> all;
    for (unsigned i = 0; i < runs; ++i) {
        all.emplace_back(seen::Outcomes{.taken = i | runs, .count = count + 1});
        all.emplace_back(seen::Arrival{repeats(0)});
    }
    all.insert(all.end(), {outcomes("E"), seen::Arrival{whole(0x802c)}, outcomes("N"), seen::Sync{a64(0x8030), true}});
    RecoverLimits few;
    few.steps = std::uint64_t{runs} * runs * 3 / 8;  // three quarters of the comparisons
    EXPECT_EQ(search(rules_a64(), code, all, 1e-6, few).outcome, HeadOutcome::too_much);
    few.steps *= 4;
    EXPECT_EQ(search(rules_a64(), code, all, 1e-6, few).outcome, HeadOutcome::recovered);
}

}  // namespace
}  // namespace waymark::follow
