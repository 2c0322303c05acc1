// Entries of loops: against a plain search in random code, and in a function of thousands of loops.
#include "../../src/analysis/loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/analysis/flow_answers.h"

namespace waymark::analysis {
namespace {

using flow::Block;
using flow::End;

LoopCode random_code(synthetic::Random& random) {
    LoopCode code{.instructions = 2 + random.below(30)};
    std::set<std::pair<std::uint32_t, std::uint32_t>> ways;
    for (std::uint32_t n = 0; n + 1 < code.instructions; ++n)
        if (random.below(5) != 0) ways.emplace(n, n + 1);
    for (std::uint32_t more = random.below(code.instructions); more != 0; --more)
        ways.emplace(random.below(code.instructions), random.below(code.instructions));
    for (const auto& [from, to] : ways) code.flows.push_back({from, to, 1 + random.below(1000)});
    if (random.below(8) != 0) code.begins.push_back(0);
    if (random.below(8) == 0) code.begins.push_back(1 + random.below(code.instructions - 1));
    return code;
}

/// What `flows_within` finds, found plainly.
std::uint64_t plainly(const LoopCode& code, const LoopBounds& loop) {
    const auto inside = [&](std::uint32_t n) { return n >= loop.head && n <= loop.tail; };
    std::set<std::uint32_t> others;
    for (const std::uint32_t n : code.begins)
        if (!inside(n)) others.insert(n);
    for (bool more = true; more;) {
        more = false;
        for (const CodeFlow& f : code.flows)
            if (!inside(f.to) && others.contains(f.from)) more |= others.insert(f.to).second;
    }
    std::uint64_t out = 0;
    for (const CodeFlow& f : code.flows)
        if (inside(f.to) && (inside(f.from) || (f.to != loop.head && !others.contains(f.from)))) out += f.times;
    return out;
}

TEST(FlowsWithin, AreThoseOfAPlainSearch) {
    std::size_t left = 0, less = 0, all = 0;
    for (std::uint64_t seed = 1; seed <= sized(500U, 100U); ++seed) {
        synthetic::Random random(seed);
        const LoopCode code = random_code(random);
        std::vector<LoopBounds> loops;
        for (std::uint32_t head = 0; head < code.instructions; ++head)
            for (std::uint32_t tail = head; tail < code.instructions; ++tail) loops.push_back({head, tail});
        std::uint64_t work = 0, none = 0;
        const LoopFlows exact = flows_within(code, loops, work, ~std::uint64_t{0});
        const LoopFlows quick = flows_within(code, loops, none, 0);
        ASSERT_EQ(exact.inside.size(), loops.size());
        for (std::size_t i = 0; i < loops.size(); ++i) {
            const std::uint64_t expected = plainly(code, loops[i]);
            const std::string which = fmt::format("seed {}, {} to {}", seed, loops[i].head, loops[i].tail);
            ASSERT_EQ(exact.inside[i], expected) << which;
            ASSERT_FALSE(exact.at_least[i]) << which;
            // Without more work it is right, or at least and said to be.
            if (quick.at_least[i])
                ASSERT_LE(quick.inside[i], expected) << which;
            else
                ASSERT_EQ(quick.inside[i], expected) << which;
            left += quick.at_least[i] ? 1U : 0U;
            less += quick.inside[i] < expected ? 1U : 0U;
        }
        all += loops.size();
    }
    // Both happen: what is looked at once more was right already, and was not; and neither often.
    EXPECT_GT(less, 0U);
    EXPECT_GT(left, less);
    EXPECT_LT(left, all / 4);
}

TEST(FlowsWithin, OfNoCodeAreNone) {
    std::uint64_t work = 0;
    EXPECT_TRUE(flows_within({}, {}, work, 0).inside.empty());
    const std::vector<LoopBounds> loops{{0, 0}};
    EXPECT_EQ(flows_within({.instructions = 1}, loops, work, 0).inside, std::vector<std::uint64_t>{0});
    EXPECT_EQ(flows_within({.instructions = 1, .flows = {{0, 0, 7}}}, loops, work, 0).inside,
              std::vector<std::uint64_t>{7});
}

/// A function of many loops behind each other. Each runs three times, and the first time and the last through a block
/// behind all loops, which leads back into its middle.
TEST(Loops, ThousandsOfOneFunctionAreExact) {
    constexpr std::uint32_t loops = 4000, hot = 6, cold = 2, words = loops * (hot + cold) + 1;
    constexpr std::uint64_t base = 0x10000;
    const auto begin = [](std::uint32_t k) { return k * hot; };
    const auto moved = [](std::uint32_t k) { return loops * hot + 1 + k * cold; };
    const auto at = [](std::uint32_t word) { return base + std::uint64_t{4} * word; };
    std::vector<std::uint32_t> code(words);
    const auto branch = [&](std::uint32_t opcode, std::uint32_t from, std::uint32_t to) {
        code[from] = opcode | ((to - from - 2) & 0xffffff);
    };
    std::vector<Block> blocks;
    const auto block = [&](std::uint32_t first, std::uint32_t last, std::uint8_t flags, std::uint32_t target) {
        blocks.push_back({.start = at(first),
                          .target = at(target),
                          .bytes = 4 * (last - first + 1),
                          .instructions = last - first + 1,
                          .section = 0,
                          .isa = isa::Isa::a32,
                          .end = End::direct,
                          .last_bytes = 4,
                          .flags = flags});
        return static_cast<std::uint32_t>(blocks.size() - 1) * 2;
    };
    std::vector<flow::Range> ranges;
    const auto run = [&](std::uint32_t edge, bool taken) {
        ranges.push_back({edge + (taken ? 1U : 0U), 0, flow::no_cycles, 1});
    };
    for (std::uint32_t k = 0; k < loops; ++k) {
        const std::uint32_t mov = begin(k), head = mov + 1, middle = mov + 3, tail = mov + 5;
        code[mov] = 0xe3a04003;                    //    mov r4, #3
        code[head] = 0xe3140001;                   // l: tst r4, #1
        branch(0x1a000000, head + 1, moved(k));    //    bne c
        code[middle] = 0xe2866001;                 // b: add r6, r6, #1
        code[middle + 1] = 0xe2544001;             //    subs r4, r4, #1
        branch(0x1a000000, tail, head);            //    bne l
        code[moved(k)] = 0xe2855001;               // c: add r5, r5, #1
        branch(0xea000000, moved(k) + 1, middle);  //    b b
        const std::uint32_t first = block(mov, head + 1, Block::conditional, moved(k));
        const std::uint32_t again = block(head, head + 1, Block::conditional, moved(k));
        const std::uint32_t aside = block(moved(k), moved(k) + 1, 0, middle);
        const std::uint32_t rest = block(middle, tail, Block::conditional, head);
        run(first, true);
        run(aside, true);
        run(rest, true);
        run(again, false);
        run(rest, true);
        run(again, true);
        run(aside, true);
        run(rest, false);
    }
    code[loops * hot] = 0xe12fff1e;  // bx lr
    std::vector<std::uint8_t> bytes;
    for (const std::uint32_t word : code)
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    image::MemoryMap memory;
    image::Symbols symbols;
    ASSERT_TRUE(memory.add_bytes(bytes, {base}, {}, "program").has_value());
    symbols.add("f", {base}, 4 * words, image::SymbolKind::function);

    FlowCode known(symbols, memory);
    FlowSink sink(known, [](Offset offset) { return offset.value; }, {.calls = true});
    sink.consume({blocks, {}, ranges, {}});
    sink.finish();
    Answers a;
    fill_flow_answers(a, {{.sink = &sink, .source = "source"}}, {.instructions = true});
    ASSERT_EQ(a.loops.size(), 2 * loops);
    for (std::uint32_t k = 0; k < loops; ++k) {
        const Loop& loop = a.loops[2 * k];
        ASSERT_EQ(loop.head, at(begin(k) + 1));
        ASSERT_EQ(loop.tail, at(begin(k) + 5));
        ASSERT_EQ(loop.entries, 1U) << k;
        ASSERT_EQ(loop.iterations, 3U) << k;

        ASSERT_EQ(loop.costs, Costs{15}) << k;
        // The branch back from the block behind is backward too: what lies between is come to from this loop's head
        // thrice, and from each of those before it twice.
        const Loop& back = a.loops[2 * k + 1];
        ASSERT_EQ(back.head, at(begin(k) + 3));
        ASSERT_EQ(back.tail, at(moved(k) + 1));
        ASSERT_EQ(back.entries, 3 + 2 * k) << k;
        ASSERT_EQ(back.iterations, 3U) << k;
    }
    EXPECT_TRUE(a.health.empty());
}

}  // namespace
}  // namespace waymark::analysis
