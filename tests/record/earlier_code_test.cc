#include "waymark/record/earlier_code.h"

#include <gtest/gtest.h>

#include <vector>

namespace waymark::record {
namespace {

using capture::RanBefore;

constexpr std::uint32_t nop = 0xd503201f, ret = 0xd65f03c0;
/// cbz x0, . + 16
constexpr std::uint32_t cbz_16 = 0xb4000080;

Code block(std::uint64_t address, const std::vector<std::uint32_t>& words) {
    Definition definition;
    definition.address = {address};
    definition.instructions = static_cast<std::uint32_t>(words.size());
    for (const std::uint32_t word : words)
        for (unsigned byte = 0; byte < 4; ++byte)
            definition.bytes.push_back(static_cast<std::uint8_t>(word >> 8 * byte));
    return understand(definition, isa::Isa::a64, {});
}

CompletedPart whole(const Code& code) { return {0, static_cast<std::uint32_t>(code.instructions.size()), false}; }

TEST(EarlierCode, JoinsWhatLiesSideBySide) {
    EarlierCode earlier;
    const Code first = block(0x1000, {nop, nop}), second = block(0x1008, {nop}), third = block(0x2000, {nop, nop, ret});
    for (const Code* code : {&third, &first, &second, &first}) earlier.ran(1, *code, whole(*code));
    const RanBefore found = earlier.found();
    EXPECT_EQ(found.instructions, 8U);
    EXPECT_EQ(found.code, (std::vector<RanBefore::Stretch>{{{0x1000}, 12}, {{0x2000}, 12}}));
    EXPECT_TRUE(found.branches.empty());
}

TEST(EarlierCode, APartOfABlockRan) {
    EarlierCode earlier;
    const Code code = block(0x1000, {nop, nop, cbz_16});
    earlier.ran(1, code, {0, 2, true});
    earlier.ran(1, code, {0, 1, true});
    earlier.ran(1, code, {0, 0, false});
    const RanBefore found = earlier.found();
    EXPECT_EQ(found.instructions, 3U);
    EXPECT_EQ(found.code, (std::vector<RanBefore::Stretch>{{{0x1000}, 8}}));
    EXPECT_TRUE(found.branches.empty()) << "the branch did not run";
}

TEST(EarlierCode, TheNextBlockShowsTheWay) {
    const Code branch = block(0x1000, {cbz_16}), next = block(0x1004, {nop}), target = block(0x1010, {nop}),
               other = block(0x3000, {nop}), indirect = block(0x1000, {ret});
    const auto ways = [&](const std::vector<const Code*>& blocks) {
        EarlierCode earlier;
        for (const Code* code : blocks) earlier.ran(1, *code, whole(*code));
        return earlier.found().branches;
    };
    using Ways = std::vector<RanBefore::Passed>;
    EXPECT_EQ(ways({&branch, &target}), Ways{});
    EXPECT_EQ(ways({&branch, &next}), (Ways{{{0x1000}, false}}));
    EXPECT_EQ(ways({&branch, &next, &branch, &target}), (Ways{{{0x1000}, true}}));
    EXPECT_EQ(ways({&branch, &target, &branch, &next}), (Ways{{{0x1000}, true}}));
    // Not known: the next block is neither target, or there was no next block.
    EXPECT_EQ(ways({&branch, &other}), (Ways{{{0x1000}, true}}));
    EXPECT_EQ(ways({&branch}), (Ways{{{0x1000}, true}}));
    EXPECT_EQ(ways({&indirect, &other}), Ways{});
    // The outcome is not known: a conditional indirect branch may lead to the next instruction too.
    EXPECT_EQ(ways({&indirect, &next}), (Ways{{{0x1000}, true}}));
}

TEST(EarlierCode, ASignalHidesTheWay) {
    EarlierCode earlier;
    const Code branch = block(0x1000, {ret}), handler = block(0x3000, {nop});
    earlier.ran(1, branch, whole(branch));
    earlier.interrupted(1);
    earlier.ran(1, handler, whole(handler));
    EXPECT_EQ(earlier.found().branches, (std::vector<RanBefore::Passed>{{{0x1000}, true}}));
}

TEST(EarlierCode, ThreadsGoTheirOwnWays) {
    EarlierCode earlier;
    const Code branch = block(0x1000, {cbz_16}), next = block(0x1004, {nop}), target = block(0x1010, {nop});
    earlier.ran(1, branch, whole(branch));
    earlier.ran(2, next, whole(next));
    earlier.ran(1, target, whole(target));
    EXPECT_TRUE(earlier.found().branches.empty());
}

}  // namespace
}  // namespace waymark::record
