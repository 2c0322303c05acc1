// Targets of indirect branches, counted by decoders (flow::WayCounts), equal the targets that the analysis of calls
// finds in single ranges: in whole and damaged trace, on any number of threads.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "support/elements.h"
#include "support/measured_a64.h"
#include "support/measured_streams.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/etm4/parallel_decoder.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/way_counts.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"
#include "waymark/pft/parallel_decoder.h"

namespace waymark {
namespace {

/// `0x1000+8 section 1 -> 0x2000`: number of times.
using Ways = std::map<std::string, std::uint64_t>;

std::string branch_text(const flow::Block& from) {
    return fmt::format("{:#x}+{} section {} -> ", from.start, from.bytes, from.section);
}

template <class D>
struct Decoded {
    Ways ways;
    std::uint64_t edges{};
    std::uint64_t returns{}, inclusive{};  // of calls
    flow::Troubles troubles{};
};

/// Counts do not give cycles to ranges.
void expect_same_troubles(const flow::Troubles& counted, const flow::Troubles& one_by_one) {
    const auto list = [](const flow::Troubles& t) {
        std::string out = fmt::format("{} handlers, {} resumptions, {} without code, {} untraced without a size",
                                      t.handlers_left_out, t.resumptions, t.without_code, t.untraced_unsized);
        const auto add = [&](std::string_view name, const flow::Trouble& one) {
            if (one.times != 0)
                out += fmt::format("\n{}: {} times, {} bytes, from {} on, {:#x}, {:#x}, amount {}", name, one.times,
                                   one.bytes, one.offset, one.address, one.expected, one.amount);
        };
        for (const flow::Trouble& gap : t.gaps) add("gap", gap);
        for (const flow::Trouble& conflict : t.contradictions) add("contradiction", conflict);
        add("no image", t.no_memory);
        add("overflow", t.overflows);
        add("no branch", t.long_walks);
        add("no address", t.unplaced);
        add("untraced", t.untraced);
        add("uncommitted", t.uncommitted);
        return out;
    };
    EXPECT_EQ(list(counted), list(one_by_one));
}

/// From single ranges, or from the counts of the decoder.
template <class D, class Part>
Decoded<D> decode(const Part& part, Bytes bytes, bool by_counts, unsigned workers) {
    const image::Symbols symbols;
    const image::MemoryMap memory;
    analysis::FlowCode code(symbols, memory);
    analysis::FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = !by_counts, .ways = by_counts});
    flow::BlockTable blocks;
    D decoder(part.config, *part.code, blocks, sink,
              {.workers = workers,
               .ranges = by_counts ? D::Ranges::counted : D::Ranges::delivered,
               .piece_bytes = 2048,
               .ways = by_counts});
    decoder.feed(bytes);
    decoder.finish();
    if (by_counts) {
        const auto counts = decoder.counts();
        const auto ways = decoder.ways();
        EXPECT_EQ(ways.left_out, 0U);
        sink.take_counts({blocks.blocks(), counts, decoder.cycles(), ways.ways, ways.left_out});
    }
    sink.finish();
    Decoded<D> out;
    out.troubles = sink.troubles();
    for (const analysis::FlowCounts* counts : sink.counts()) {
        for (const std::uint64_t times : counts->times) out.edges += times;
        for (std::size_t i = 0; i < counts->ways().size(); ++i) {
            const analysis::Way& way = counts->ways()[i];
            const analysis::WaySum& sum = counts->way_sums()[i];
            out.returns += sum.returns;
            out.inclusive += sum.inclusive.instructions;
            const std::uint64_t times = sum.times;
            if (times == 0) continue;
            const flow::Block& from = counts->known.blocks[way.edge / 2];
            EXPECT_EQ(from.end, flow::End::indirect);
            EXPECT_EQ(way.edge & 1U, 1U);
            const bool nowhere = way.to == ~std::uint64_t{0} || part.code->at({way.to}, {}).bytes.empty();
            out.ways[branch_text(from) + (nowhere ? "nowhere" : fmt::format("{:#x}", way.to))] += times;
        }
    }
    return out;
}

/// By branch: how often the trace names a target whose first outcome contradicts the code. The decoder counts such a
/// branch, and no range shows it.
template <class D, class Part>
Ways contradicted(const Part& part, Bytes bytes) {
    using synthetic::Kind;
    flow::BlockTable blocks;
    synthetic::ElementSink sink;
    D decoder(part.config, *part.code, blocks, sink, {.ranges = D::Ranges::delivered});
    decoder.feed(bytes);
    decoder.finish();
    Ways out;
    const synthetic::Element* last = nullptr;  // that ran
    for (const synthetic::Element& e : sink.elements()) {
        if (e.kind == Kind::inconsistency && e.a == static_cast<std::uint64_t>(flow::Conflict::always_taken) &&
            last != nullptr && last->taken && last->block.end == flow::End::indirect)
            ++out[branch_text(last->block)];
        if (e.kind == Kind::range)
            last = &e;
        else if (e.kind != Kind::context && e.kind != Kind::timestamp && e.kind != Kind::cycles)
            last = nullptr;
    }
    return out;
}

template <class D, class Part>
void expect_same(const Part& part, Bytes bytes) {
    const Decoded<D> one_by_one = decode<D>(part, bytes, false, 1);
    for (const unsigned workers : {1U, 2U, 3U}) {
        SCOPED_TRACE(fmt::format("{} workers", workers));
        if (workers != 1) {
            const Decoded<D> several = decode<D>(part, bytes, false, workers);
            EXPECT_EQ(several.edges, one_by_one.edges);
            EXPECT_EQ(several.returns, one_by_one.returns);
            EXPECT_EQ(several.inclusive, one_by_one.inclusive);
            ASSERT_EQ(several.ways, one_by_one.ways);
            expect_same_troubles(several.troubles, one_by_one.troubles);
        }
        const Decoded<D> counted = decode<D>(part, bytes, true, workers);
        EXPECT_EQ(counted.edges, one_by_one.edges);
        expect_same_troubles(counted.troubles, one_by_one.troubles);
        // Where an exception came before the first instruction, and no block begins, counts have no block.
        Ways expected;
        for (const auto& [way, times] : one_by_one.ways) {
            const bool known = counted.ways.contains(way);
            expected[known ? way : way.substr(0, way.find("-> ")) + "-> nowhere"] += times;
        }
        Ways unshown = contradicted<D>(part, bytes);
        for (const auto& [way, times] : counted.ways) {
            std::uint64_t& left = unshown[way.substr(0, way.find("-> ") + 3)];
            const std::uint64_t shown = expected.contains(way) ? expected[way] : 0;
            const std::uint64_t more = std::min(left, times - std::min(times, shown));
            if (more == 0) continue;
            expected[way] += more;
            left -= more;
        }
        ASSERT_EQ(counted.ways, expected);
    }
}

template <class D, class Part>
void expect_same_when_damaged(const Part& part, char which) {
    expect_same<D>(part, part.bytes);
    for (unsigned round = 0; round < sized(20U, 3U); ++round) {
        SCOPED_TRACE(fmt::format("round {}", round));
        synthetic::Random random(1000U * static_cast<unsigned char>(which) + round);
        std::vector<std::uint8_t> bytes = part.bytes;
        for (unsigned n = 1 + random.below(30); n != 0; --n) {
            const auto at = random.below(static_cast<std::uint32_t>(bytes.size()));
            if (random.below(2) == 0)
                bytes[at] = static_cast<std::uint8_t>(random.below(256));
            else
                bytes.erase(bytes.begin() + at);
        }
        expect_same<D>(part, bytes);
    }
}

TEST(Ways, OfProgramFlowTrace) {
    for (const char* which = synthetic::measured_streams; *which != 0; ++which) {
        SCOPED_TRACE(*which);
        for (const auto& part : synthetic::measured_stream(*which, sized(60000U, 8000U)).parts)
            expect_same_when_damaged<pft::ParallelDecoder>(part, *which);
    }
}

TEST(Ways, OfEtm4) {
    for (const char* which = synthetic::measured_a64_streams; *which != 0; ++which) {
        SCOPED_TRACE(*which);
        for (const auto& part : synthetic::measured_a64_stream(*which, sized(60000U, 8000U)).parts)
            expect_same_when_damaged<etm4::ParallelDecoder>(part, *which);
    }
}

/// Every kind of event. (At an exception that interrupts the target of a branch, the decoder itself reports the way.)
std::vector<flow::What> all_events() {
    static_assert(std::variant_size_v<flow::What> == 14, "a new kind of event belongs to this list");
    std::vector<flow::What> all{flow::Context{},
                                flow::Context{.ns = true},
                                flow::Context{.context_id = 2},
                                flow::Context{.vmid = 3},
                                flow::Timestamp{},
                                flow::Exception{},
                                flow::ExceptionReturn{},
                                flow::NoMemory{},
                                flow::Trigger{},
                                flow::Cycles{.cycles = 3},
                                flow::Atoms{1, 2},
                                flow::Reached{},
                                flow::Untraced{{0x2000}, {0x2000}, 4, true},
                                flow::Untraced{{}, {0x2000}, 0, false}};
    for (unsigned reason = 0; reason <= static_cast<unsigned>(GapReason::stopped); ++reason)
        all.emplace_back(Gap{{10}, {20}, static_cast<GapReason>(reason)});
    for (unsigned reason = 0; reason <= static_cast<unsigned>(flow::TraceOnReason::recovered); ++reason)
        all.emplace_back(flow::TraceOn{static_cast<flow::TraceOnReason>(reason)});
    for (unsigned conflict = 0; conflict <= static_cast<unsigned>(flow::Conflict::vmid_missing); ++conflict)
        all.emplace_back(flow::Inconsistency{static_cast<flow::Conflict>(conflict), {}, {}});
    for (unsigned kind = 0; kind <= static_cast<unsigned>(flow::Mark::Kind::uncommitted); ++kind)
        all.emplace_back(flow::Mark{static_cast<flow::Mark::Kind>(kind), 1, 0});
    return all;
}

/// How often a branch led to the block at 0x2000, which runs after the branch and this event.
template <class Writer>
std::uint64_t times_there(const flow::What& event) {
    constexpr bool by_counts = std::is_same_v<Writer, flow::CountWriter>;
    const image::Symbols symbols;
    const image::MemoryMap memory;
    analysis::FlowCode code(symbols, memory);
    analysis::FlowSink sink(code, [](Offset at) { return at.value; }, {.calls = !by_counts, .ways = by_counts});
    flow::BlockTable blocks;
    Writer out(blocks, sink);
    if constexpr (by_counts) out.count_ways();
    flow::Block block{.start = 0x1000, .bytes = 4, .instructions = 1, .end = flow::End::indirect, .last_bytes = 4};
    const std::uint32_t branch = blocks.intern(block);
    block.start = 0x2000;
    block.end = flow::End::not_a_waypoint;
    const std::uint32_t there = blocks.intern(block);
    out.range(2 * branch + 1, {1});
    out.event({2}, event);
    out.range(2 * there, {3});
    out.flush();
    if constexpr (by_counts) {
        const std::vector<flow::EdgeWay> ways = out.ways().all();
        sink.take_counts({blocks.blocks(), out.counts(), out.cycles(), ways, 0});
    }
    sink.finish();
    std::uint64_t times = 0;
    for (const analysis::FlowCounts* counts : sink.counts())
        for (std::size_t i = 0; i < counts->ways().size(); ++i)
            if (counts->ways()[i].to == 0x2000) times += counts->way_sums()[i].times;
    return times;
}

TEST(Ways, EndAtTheSameEventsWhoeverCountsThem) {
    std::map<std::uint64_t, unsigned> counted;
    const std::vector<flow::What> events = all_events();
    for (std::size_t i = 0; i < events.size(); ++i) {
        const std::uint64_t times = times_there<flow::BatchWriter>(events[i]);
        EXPECT_EQ(times_there<flow::CountWriter>(events[i]), times) << "event " << i << ", kind " << events[i].index();
        ++counted[times];
    }
    EXPECT_GT(counted[0], 10U);
    EXPECT_GT(counted[1], 10U);
}

TEST(WayCounts, MoreThanItsFirstTableHasRoomFor) {
    flow::WayCounts ways;
    for (unsigned round = 0; round < 3; ++round)
        for (std::uint32_t edge = 1; edge < 4000; edge += 2)
            for (std::uint32_t block = 0; block < 3; ++block) ways.add(edge, block * edge, 1);
    for (std::uint32_t edge = 1; edge < 4000; edge += 2) ways.add(edge, 2 * edge, ~std::uint64_t{0} - 2);
    const auto all = ways.all();
    EXPECT_EQ(all.size(), 4000U) << "ways that were taken back as often as they were counted are none";
    for (const flow::EdgeWay& way : all) EXPECT_EQ(way.times, 3U);
    EXPECT_EQ(ways.left_out(), 0U);
}

}  // namespace
}  // namespace waymark
