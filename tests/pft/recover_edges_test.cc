// Heads of a program of four branches, small enough to follow by hand: the recovered flow, and the figures of its
// certainty. docs/spec/pft.md, 2.11.
#include <gtest/gtest.h>

#include <cmath>

#include "pft/support.h"
#include "waymark/pft/recover.h"

namespace waymark::pft {
namespace {

/// 0x8000: BEQ 0x8008; 0x8004: BNE 0x800c; 0x8008: BEQ 0x8000; 0x800c: B 0x8000
class FourBranches final : public isa::CodeReader {
public:
    explicit FourBranches(std::uint64_t first = 0x8000) : first_(first) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < first_ || address.value >= first_ + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - first_), 0};
    }
    [[nodiscard]] std::vector<CodeExtent> extents() const { return {{{first_}, bytes_.size()}}; }

private:
    std::uint64_t first_;
    std::vector<std::uint8_t> bytes_ = test::hex("00 00 00 0a  00 00 00 1a  fc ff ff 0a  fb ff ff ea");
};

/// The only path that these atoms allow: 8000 N, 8004 N, 8008 N, 800c E, 8000 E, 8008 E, 8000 N, 8004 E, 800c E.
constexpr const char* around = "86 86 86 84 84 84 86 84 84 ";
constexpr const char* sync = "00 00 00 00 00 80  08 00 80 00 00 01 ";  // periodic, at 0x8000

HeadRecovery recover(const std::string& stream, const RecoverLimits& limits = {}) {
    const FourBranches code;
    const auto extents = code.extents();
    return recover_head({}, code, extents, test::hex(stream), limits);
}

// A packet has up to seven bytes, so the first seven are not known; all after them are.
TEST(RecoverByHand, TheOnlyWay) {
    const HeadRecovery head = recover(std::string(around) + around + sync);
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.async.value, 18U);
    EXPECT_EQ(head.sync.value, 24U);
    EXPECT_EQ(head.first.value, 7U);
    ASSERT_EQ(head.stretches.size(), 1U);
    EXPECT_EQ(head.stretches[0].first.value, 7U);
    EXPECT_EQ(head.stretches[0].end.value, 24U);
    EXPECT_EQ(head.stretches[0].standing.current, (Place{{0x8004}, Isa::a32}));
    EXPECT_EQ(head.stretches[0].standing.last, (Place{{0x8004}, Isa::a32}));
    EXPECT_TRUE(head.stretches[0].standing.returns.empty());
    EXPECT_EQ(head.packets, 11U);
    EXPECT_EQ(head.bytes(), 17U);
    EXPECT_EQ(head.bytes_before_async(), 11U);
    EXPECT_EQ(head.paths, 1U);
    EXPECT_EQ(head.places, 4U);
    // Each outcome of each branch is met; the unconditional branch has one outcome.
    EXPECT_EQ(head.checks, 7U);
    EXPECT_TRUE(head.confirmed);
    // No packet is unseen in twelve bytes, so eight packets in sixteen more bytes are assumed.
    EXPECT_DOUBLE_EQ(head.unseen, 8.0 / (12 + 16));
    EXPECT_DOUBLE_EQ(head.chance, 0.5);  // too few places were tested to measure it
    const double odds = head.unseen / (1 - head.unseen);
    EXPECT_NEAR(head.confidence, 1 / (1 + odds * 4 * std::pow(0.5, 7) / 4), 1e-12);
}

// An I-sync in the head gives the place of execution, and flow before it is recovered too.
TEST(RecoverByHand, AnISyncInTheHead) {
    // If the atoms before the I-sync lead to its address, all is one stretch.
    const HeadRecovery one = recover(std::string(around) + around + "08 00 80 00 00 41 " + around + sync);
    ASSERT_EQ(one.outcome, HeadOutcome::recovered);
    ASSERT_EQ(one.stretches.size(), 1U);
    EXPECT_EQ(one.stretches[0].first.value, 7U);
    EXPECT_EQ(one.stretches[0].standing.current, (Place{{0x8004}, Isa::a32}));
    EXPECT_EQ(one.stretches[0].end.value, 39U);
    EXPECT_EQ(one.packets, 11U + 1U + 9U);
    // At another place, tracing began again: flow after the I-sync continues from there.
    const HeadRecovery two = recover(std::string(around) + around + "08 08 80 00 00 61 84 " + around + sync);
    ASSERT_EQ(two.outcome, HeadOutcome::recovered);
    EXPECT_EQ(two.bytes(), 33U);
    EXPECT_EQ(two.stretches.back().end.value, 40U);
    EXPECT_TRUE(two.confirmed);
    // Right after it, the I-sync itself is the first known place.
    const HeadRecovery last = recover("86 86 86 86 86 86 86 86 08 08 80 00 00 61 84 " + std::string(around) + sync);
    ASSERT_EQ(last.outcome, HeadOutcome::recovered);
    ASSERT_EQ(last.stretches.size(), 1U);
    EXPECT_EQ(last.stretches[0].first.value, 8U);
    EXPECT_EQ(last.stretches[0].end.value, 30U);
    EXPECT_EQ(last.stretches[0].standing.current, (Place{{0x8008}, Isa::a32}));
    EXPECT_EQ(last.stretches[0].standing.last, (Place{{0x8008}, Isa::a32}));
    EXPECT_EQ(last.packets, 1U + 1U + 9U);
    EXPECT_EQ(last.places, 1U);
}

// Taken branches alternate between 0x8000 and 0x8008, and 0x8004 leads there by 0x800c: at the end execution may be at
// either. An I-sync that is not periodic does not show which, since tracing began again there.
TEST(RecoverByHand, EitherOfTwo) {
    const std::string taken = "84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 84 ";
    const HeadRecovery either = recover(taken + "00 00 00 00 00 80 08 00 80 00 00 41 ");
    EXPECT_EQ(either.outcome, HeadOutcome::ambiguous);
    EXPECT_EQ(either.paths, 2U);
    EXPECT_TRUE(either.stretches.empty());
    EXPECT_FALSE(either.confirmed);
    // A periodic I-sync does.
    const HeadRecovery one = recover(taken + "00 00 00 00 00 80 08 00 80 00 00 01 ");
    EXPECT_EQ(one.paths, 1U);
    // Flow that is known before the two paths part stays known.
    const HeadRecovery before = recover(std::string(around) + around + "00 00 00 00 00 80 08 00 80 00 00 41 ");
    ASSERT_EQ(before.outcome, HeadOutcome::recovered);
    EXPECT_EQ(before.stretches[0].first.value, 7U);
    EXPECT_FALSE(before.confirmed);
}

TEST(RecoverByHand, WhyThereIsNothing) {
    const auto outcome = [](const std::string& stream, const RecoverLimits& limits = {}) {
        const HeadRecovery head = recover(stream, limits);
        if (head.outcome != HeadOutcome::recovered) {
            EXPECT_EQ(head.first, head.sync);
            EXPECT_TRUE(head.stretches.empty());
            EXPECT_EQ(head.bytes(), 0U);
        }
        return head.outcome;
    };
    const std::string way = std::string(around) + around;
    EXPECT_EQ(outcome(way + sync), HeadOutcome::recovered);
    EXPECT_EQ(outcome(sync), HeadOutcome::no_head);
    EXPECT_EQ(outcome(way), HeadOutcome::no_sync);
    EXPECT_EQ(outcome(way + "86 " + sync), HeadOutcome::no_path);  // a path that ends at 0x8004
    EXPECT_EQ(outcome("86 86 86 86 86 86 86 86 86 86 86 " + std::string(sync)), HeadOutcome::no_path);
    EXPECT_EQ(outcome(way + sync, {.steps = 3}), HeadOutcome::too_much);
    const FourBranches code;
    EXPECT_EQ(recover_head({}, code, {}, test::hex(way + sync)).outcome, HeadOutcome::no_code);
    // No AArch32 code is above 4 GB.
    const FourBranches above(0x1'0000'8000);
    EXPECT_NE(recover_head({}, above, above.extents(), test::hex(way + sync)).outcome, HeadOutcome::recovered);
}

// Packets without outcomes do not show where execution is: the known flow begins after the first outcome.
TEST(RecoverByHand, PacketsWithoutOutcomes) {
    const HeadRecovery head = recover("0c 0c 0c 0c 0c 0c 0c 0c 0c " + std::string(around) + around + sync);
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.first.value, 10U);
    EXPECT_EQ(head.stretches[0].standing.current, (Place{{0x8004}, Isa::a32}));
    EXPECT_EQ(head.packets, 17U);
    EXPECT_EQ(head.checks, 7U);
}

// The longest packet with cycle counts and a Context ID of four bytes is an I-sync of fifteen.
TEST(RecoverByHand, TheLongestPacket) {
    Config config;
    config.cycle_accurate = true;
    config.context_id_bytes = 4;
    const FourBranches code;
    const auto extents = code.extents();
    const std::string way = std::string(around) + around + around + around;
    const HeadRecovery head =
        recover_head(config, code, extents, test::hex(way + "00 00 00 00 00 80 08 00 80 00 00 01 11 22 33 44"));
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.first.value, 15U);
    EXPECT_EQ(head.stretches[0].standing.current, (Place{{0x8000}, Isa::a32}));  // six entries after the first
                                                                                 // iteration
    EXPECT_EQ(head.packets, 21U);
}

/// 0x8000: BL f; 0x8004: BL f; 0x8008: BEQ 0x8000; 0x800c: B 0x8000. f, 0x8020: BL g; 0x8024: BX LR. g, 0x8030: BX LR
class Calls final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < 0x8000 || address.value >= 0x8000 + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - 0x8000), 0};
    }
    [[nodiscard]] std::vector<CodeExtent> extents() const { return {{{0x8000}, bytes_.size()}}; }

private:
    std::vector<std::uint8_t> bytes_ = test::hex(
        "06 00 00 eb 05 00 00 eb fc ff ff 0a fb ff ff ea 00 f0 20 e3 00 f0 20 e3 00 f0 20 e3 00 f0 20 e3 "
        "02 00 00 eb 1e ff 2f e1 00 f0 20 e3 00 f0 20 e3 1e ff 2f e1");
};

// With a return stack, returns are atoms. f is called from two places, and calls g from one: the entry below g's return
// address on the stack distinguishes the calls of f.
TEST(RecoverByHand, ReturnsWithinReturns) {
    Config config;
    config.return_stack = true;
    const Calls code;
    const auto extents = code.extents();
    const std::string round = "84 84 84 84 84 84 84 84 86 84 ";
    const auto recovered = [&](const std::string& head) {
        return recover_head(config, code, extents, test::hex(head + sync));
    };
    const HeadRecovery head = recovered(round + round + round + round);
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    ASSERT_EQ(head.stretches.size(), 1U);
    EXPECT_EQ(head.first.value, 7U);
    // A path in f, called for the second time.
    EXPECT_EQ(head.stretches[0].standing.current, (Place{{0x8024}, Isa::a32}));
    EXPECT_EQ(head.stretches[0].standing.returns, (std::vector<Place>{{{0x8008}, Isa::a32}}));
    EXPECT_EQ(head.packets, 33U);
    EXPECT_TRUE(head.confirmed);
    // A path that begins in the first call of g.
    const HeadRecovery later = recovered("84 84 84 84 84 84 84 " + round + round);
    ASSERT_EQ(later.outcome, HeadOutcome::recovered);
    EXPECT_EQ(later.first.value, 14U);
    EXPECT_EQ(later.stretches[0].standing.returns, (std::vector<Place>{{{0x8008}, Isa::a32}}));
    EXPECT_EQ(later.packets, 13U);
}

/// FourBranches at the end of 32-bit addresses, and bytes beyond it, which cannot be AArch32 code.
class AtTheEnd final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        if (address.value >= std::uint64_t{1} << 32) ADD_FAILURE() << std::hex << address.value;
        return code_.at(address, space);
    }
    [[nodiscard]] std::vector<CodeExtent> extents() const { return {{{0xfffffff0}, 0x1000}}; }

private:
    const FourBranches code_{0xfffffff0};
};

TEST(RecoverByHand, NoCodeLiesAbove4GB) {
    const AtTheEnd code;
    const auto extents = code.extents();
    const std::string head = std::string(around) + around;
    const HeadRecovery recovered =
        recover_head({}, code, extents, test::hex(head + "00 00 00 00 00 80  08 f0 ff ff ff 01"));
    EXPECT_EQ(recovered.outcome, HeadOutcome::recovered);
    EXPECT_EQ(recovered.first.value, 7U);
}

// Only the 256 KB before the A-sync are searched, so that a longer head takes no more time.
TEST(RecoverByHand, OfALongHeadTheEndAlone) {
    constexpr std::size_t looked_at = std::size_t{256} << 10;
    std::string head;
    while (head.size() / 3 < looked_at + 1000) head += around;
    const HeadRecovery recovered = recover(head + sync);
    ASSERT_EQ(recovered.outcome, HeadOutcome::recovered);
    const std::size_t async = head.size() / 3;
    EXPECT_GE(recovered.first.value, async - looked_at);
    EXPECT_LE(recovered.first.value, async - looked_at + 7);
}

/// 60 branches, each a BEQ to the next instruction, and then the four branches from 0x80f0 on.
class ManyBranches final : public isa::CodeReader {
public:
    static constexpr std::uint64_t first = 0x8000;
    ManyBranches() {
        for (std::uint32_t i = 0; i < 60; ++i) {
            const std::uint32_t branch = 0x0a000000U | ((58 - i) & 0xffffffU);
            for (unsigned byte = 0; byte < 4; ++byte) bytes_.push_back(static_cast<std::uint8_t>(branch >> 8 * byte));
        }
        const auto four = test::hex("00 00 00 0a  00 00 00 1a  fc ff ff 0a  fb ff ff ea");
        bytes_.insert(bytes_.end(), four.begin(), four.end());
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < first || address.value >= first + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - first), 0};
    }
    [[nodiscard]] std::vector<CodeExtent> extents() const { return {{{first}, bytes_.size()}}; }

private:
    std::vector<std::uint8_t> bytes_;
};

// The share of wrong places that pass is measured if there are at least 64 tests: here each of 64 branches may be
// taken, and all taken branches lead to three places.
TEST(RecoverByHand, ChanceIsMeasured) {
    const ManyBranches code;
    const auto extents = code.extents();
    std::string stream = "84 " + std::string(around) + around + "00 00 00 00 00 80  08 f0 80 00 00 01 ";
    for (unsigned i = 0; i < 400; ++i) stream += "84 ";
    const HeadRecovery head = recover_head({}, code, extents, test::hex(stream));
    ASSERT_EQ(head.outcome, HeadOutcome::recovered);
    EXPECT_EQ(head.places, 64U);
    EXPECT_DOUBLE_EQ(head.chance, 0.9);  // all places passed, but none is sure
    EXPECT_EQ(head.stretches[0].standing.current.isa, Isa::a32);
}

// Packets after the A-sync that belong to missing code reduce the certainty of all figures.
TEST(RecoverByHand, WhatIsUnseenBehind) {
    const std::string way = std::string(around) + around + sync;
    EXPECT_DOUBLE_EQ(recover(way + "84 84 84 84").unseen, 8.0 / (16 + 16));
    // An I-sync elsewhere; the atoms after it, four bytes up to the end, belong to unknown code.
    EXPECT_DOUBLE_EQ(recover(way + "08 00 00 10 00 41 84 84 84 84").unseen, (4.0 + 8) / (22 + 16));
    // Program flow before the first A-sync, from streams that were cut at many places of their heads: the uncut stream
    // shows the truth. docs/spec/pft.md, 2.11.
    EXPECT_DOUBLE_EQ(recover(way + "08 00 00 10 00 41 84 84 84 84 08 00 80 00 00 41 84 86").unseen,
                     recover(way + "08 00 00 10 00 41 84 84 84 84 08 00 80 00 00 41 84 84").unseen);
}

}  // namespace
}  // namespace waymark::pft
