// Loops of random code against their definition, and in a function of thousands of loops.
#include "../../src/analysis/loops.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/analysis/flow_answers.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using flow::Block;
using flow::End;

LoopCode random_code(synthetic::Random& random) {
    LoopCode code{.instructions = 2 + random.below(24)};
    std::set<std::pair<std::uint32_t, std::uint32_t>> ways;
    for (std::uint32_t n = 0; n + 1 < code.instructions; ++n)
        if (random.below(5) != 0) ways.emplace(n, n + 1);
    for (std::uint32_t more = random.below(code.instructions); more != 0; --more)
        ways.emplace(random.below(code.instructions), random.below(code.instructions));
    for (const auto& [from, to] : ways) code.flows.push_back({from, to, 1 + random.below(1000)});
    if (random.below(8) != 0) code.begins.push_back(0);
    if (random.below(8) == 0) code.begins.push_back(1 + random.below(code.instructions - 1));
    if (random.below(8) == 0) code.resumes.push_back(1 + random.below(code.instructions - 1));
    return code;
}

using Nodes = std::set<std::uint32_t>;

/// Loops by their definition, from plain searches alone.
class Plainly {
public:
    struct Found {
        Nodes nodes, entries;
        std::uint32_t head{};  // of natural ones
        bool irreducible{};
    };
    explicit Plainly(const LoopCode& code) : code_(code), begins_(code.begins.begin(), code.begins.end()) {
        Nodes ran(code.resumes.begin(), code.resumes.end());
        for (const CodeFlow& f : code.flows) ran.insert({f.from, f.to});
        std::map<std::uint32_t, Nodes> from;
        for (const std::uint32_t n : ran) from[n] = reach({n}, {}, false);
        for (;;) {
            const Nodes reached = reach(begins_, {}, false);
            Nodes left;
            for (const std::uint32_t n : ran)
                if (!reached.contains(n)) left.insert(n);
            if (left.empty()) break;
            // The lowest node of a cycle to which no remaining node outside the cycle leads.
            for (const std::uint32_t n : left) {
                bool first = true;
                for (const std::uint32_t other : left)
                    if (from[other].contains(n) && (!from[n].contains(other) || other < n)) first = false;
                if (first) begins_.insert(n);
            }
        }
        reached_ = reach(begins_, {}, false);
        for (std::uint32_t h = 0; h < code.instructions; ++h) around_.push_back(reach(begins_, {h}, false));
        for (std::uint32_t h = 0; h < code.instructions; ++h) {
            Nodes latches;
            for (const CodeFlow& f : code.flows)
                if (f.to == h && is_back(f)) latches.insert(f.from);
            if (latches.empty()) continue;
            Nodes nodes = reach(latches, {h}, true);
            nodes.insert(h);
            found.push_back({nodes, {h}, h, false});
        }
        const std::size_t natural = found.size();
        Nodes done;
        for (const std::uint32_t n : reached_) {
            if (done.contains(n)) continue;
            Nodes region;
            for (const std::uint32_t other : without_back(n))
                if (without_back(other).contains(n)) region.insert(other);
            if (region.size() < 2) continue;
            done.insert(region.begin(), region.end());
            Found made{region, {}, 0, true};
            for (std::size_t i = 0; i < natural; ++i)
                if (region.contains(found[i].head)) made.nodes.insert(found[i].nodes.begin(), found[i].nodes.end());
            for (const std::uint32_t in : begins_)
                if (made.nodes.contains(in)) made.entries.insert(in);
            for (const CodeFlow& f : code.flows)
                if (made.nodes.contains(f.to) && reached_.contains(f.from) && !made.nodes.contains(f.from))
                    made.entries.insert(f.to);
            found.push_back(made);
        }
    }
    [[nodiscard]] std::uint64_t inside(const Found& loop) const {
        std::uint64_t out = 0;
        for (const CodeFlow& f : code_.flows)
            if (loop.entries.contains(f.to) && loop.nodes.contains(f.from)) out += f.times;
        return out;
    }

    std::vector<Found> found;

private:
    /// All nodes of `from` not in `not_by`, and all that they lead to, or that lead to them.
    [[nodiscard]] Nodes reach(const Nodes& from, const Nodes& not_by, bool backwards) const {
        Nodes out;
        for (const std::uint32_t n : from)
            if (!not_by.contains(n)) out.insert(n);
        for (bool more = true; more;) {
            more = false;
            for (const CodeFlow& f : code_.flows) {
                const std::uint32_t a = backwards ? f.to : f.from, b = backwards ? f.from : f.to;
                if (out.contains(a) && !not_by.contains(b) && (!backwards || reached_.contains(b)))
                    more |= out.insert(b).second;
            }
        }
        return out;
    }
    [[nodiscard]] bool is_back(const CodeFlow& f) const {
        if (!reached_.contains(f.from)) return false;
        return f.from == f.to || !around_[f.to].contains(f.from);
    }
    [[nodiscard]] Nodes without_back(std::uint32_t n) const {
        Nodes out{n};
        for (bool more = true; more;) {
            more = false;
            for (const CodeFlow& f : code_.flows)
                if (out.contains(f.from) && !is_back(f)) more |= out.insert(f.to).second;
        }
        return out;
    }

    const LoopCode& code_;
    Nodes begins_, reached_;
    std::vector<Nodes> around_;  // by node: nodes that are reachable without it
};

TEST(FindLoops, GivesThoseOfTheDefinition) {
    std::size_t natural = 0, irreducible = 0, nested = 0;
    for (std::uint64_t seed = 1; seed <= sized(150U, 40U); ++seed) {
        synthetic::Random random(seed);
        const LoopCode code = random_code(random);
        const CodeLoops loops = find_loops(code);
        const Plainly expected(code);
        ASSERT_EQ(loops.loops.size(), expected.found.size()) << seed;
        for (std::uint32_t i = 0; i < loops.loops.size(); ++i) {
            const CodeLoop& loop = loops.loops[i];
            Nodes nodes;
            for (std::uint32_t n = 0; n < code.instructions; ++n)
                if (loops.contains(i, n)) nodes.insert(n);
            const auto same = std::find_if(expected.found.begin(), expected.found.end(),
                                           [&](const Plainly::Found& f) { return f.nodes == nodes; });
            const std::string which = fmt::format("seed {}, loop at {}", seed, loop.head);
            ASSERT_NE(same, expected.found.end()) << which;
            ASSERT_EQ(loop.irreducible, same->irreducible) << which;
            ASSERT_EQ(Nodes(loop.entries.begin(), loop.entries.end()), same->entries) << which;
            ASSERT_EQ(loop.inside, expected.inside(*same)) << which;
            if (!loop.irreducible)
                ASSERT_EQ(loop.head, same->head) << which;
            else
                ASSERT_TRUE(same->entries.contains(loop.head)) << which;
            // The jump back that is at the highest address.
            std::uint32_t tail = 0;
            for (const CodeFlow& f : code.flows)
                if (f.to == loop.head && nodes.contains(f.from)) tail = std::max(tail, f.from);
            ASSERT_EQ(loop.tail, tail) << which;
            std::uint32_t depth = 0;
            const Plainly::Found* outer = nullptr;
            for (const Plainly::Found& f : expected.found) {
                if (!std::includes(f.nodes.begin(), f.nodes.end(), nodes.begin(), nodes.end())) continue;
                ++depth;
                if (&f != &*same && (outer == nullptr || f.nodes.size() < outer->nodes.size())) outer = &f;
            }
            ASSERT_EQ(loop.depth, depth) << which;
            ASSERT_EQ(loop.outer == no_loop, outer == nullptr) << which;
            if (outer != nullptr) {
                for (std::uint32_t n = 0; n < code.instructions; ++n)
                    ASSERT_EQ(loops.contains(loop.outer, n), outer->nodes.contains(n)) << which;
            }
            ++(loop.irreducible ? irreducible : natural);
            nested += depth > 1 ? 1U : 0U;
        }
    }
    // All kinds occur.
    EXPECT_GT(natural, sized(75U, 20U));
    EXPECT_GT(irreducible, sized(7U, 2U));
    EXPECT_GT(nested, sized(7U, 2U));
}

TEST(FindLoops, InNoCodeAreNone) {
    EXPECT_TRUE(find_loops({}).loops.empty());
    EXPECT_TRUE(find_loops({.instructions = 1}).loops.empty());
    const CodeLoops one = find_loops({.instructions = 1, .flows = {{0, 0, 7}}, .begins = {0}});
    ASSERT_EQ(one.loops.size(), 1U);
    EXPECT_EQ(one.loops[0].inside, 7U);
    EXPECT_FALSE(one.loops[0].irreducible);
}

TEST(FindLoops, WhereTraceBeganWithinALoopIsNoEntry) {
    // 0 → 1 → 2 → 1; lost trace came back at 2.
    const CodeLoops loops =
        find_loops({.instructions = 3, .flows = {{0, 1, 1}, {1, 2, 5}, {2, 1, 5}}, .begins = {0}, .resumes = {2}});
    ASSERT_EQ(loops.loops.size(), 1U);
    EXPECT_FALSE(loops.loops[0].irreducible);
    EXPECT_EQ(loops.loops[0].head, 1U);
}

TEST(FindLoops, ThousandsWithinOneAnother) {
    // k-th header: header k leads on; from the middle, all nodes lead back.
    constexpr std::uint32_t depth = 12000;
    LoopCode code{.instructions = 2 * depth, .begins = {0}};
    for (std::uint32_t n = 0; n + 1 < 2 * depth; ++n) code.flows.push_back({n, n + 1, 1});
    for (std::uint32_t k = 0; k < depth; ++k) code.flows.push_back({2 * depth - 1 - k, k, 2});
    const CodeLoops loops = find_loops(code);
    ASSERT_EQ(loops.loops.size(), depth);
    EXPECT_EQ(loops.loops.front().depth, depth);
    EXPECT_EQ(loops.loops.back().depth, 1U);
    EXPECT_EQ(loops.loops.back().inside, 2U);
}

/// A function of many loops behind each other. Each runs three times, and the first time and the last through a block
/// behind all loops, which leads back into its middle.
TEST(Loops, ThousandsOfOneFunctionAreExact) {
    constexpr std::uint32_t loops = sized(12000U, 3000U), hot = 6, cold = 2, words = loops * (hot + cold) + 1;
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
    ASSERT_EQ(a.loops.size(), loops);
    for (std::uint32_t k = 0; k < loops; ++k) {
        // The block after all loops is part of it.
        const Loop& loop = a.loops[k];
        ASSERT_EQ(loop.head, at(begin(k) + 1));
        ASSERT_EQ(loop.tail, at(begin(k) + 5));
        ASSERT_EQ(loop.entries, 1U) << k;
        ASSERT_EQ(loop.iterations, 3U) << k;
        ASSERT_EQ(loop.depth, 1U) << k;
        ASSERT_FALSE(loop.irreducible) << k;
        ASSERT_EQ(loop.costs, Costs{19}) << k;
    }
    EXPECT_TRUE(a.health.empty());
}

}  // namespace
}  // namespace waymark::analysis
