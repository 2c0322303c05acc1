// Random programs, random executions of them, and their trace under random configurations: the expected result of both
// decoders is known without any decoder. docs/spec/pft.md, sections 4 and 5.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "pft/support.h"
#include "support/damage.h"
#include "support/elements.h"
#include "support/paths.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

using synthetic::Damage;
using synthetic::Element;
using synthetic::flow_after;
using synthetic::Kind;

/// One random program, execution and configuration.
struct Case {
    std::uint64_t seed;
    Config config;
    synthetic::Program program;
    std::vector<std::uint8_t> bytes;
    std::vector<Element> truth;
    std::vector<synthetic::SyncPoint> syncs;
    std::uint64_t traced = 0;
};

Config random_config(synthetic::Random& random) {
    Config c;
    c.cycle_accurate = random.half();
    c.return_stack = random.half();
    c.branch_broadcast = !c.return_stack && random.chance(3000);
    c.timestamps = random.half();
    c.barrier_waypoints = random.chance(3000);
    c.minor_version = random.chance(2500) ? 0 : 1;
    c.vmid_trace = c.minor_version == 1 && random.chance(3000);
    constexpr std::uint8_t sizes[] = {0, 0, 1, 2, 4};
    c.context_id_bytes = sizes[random.below(5)];
    c.timestamp_bytes = c.minor_version == 1 && random.half() ? 9 : 7;
    c.gray_timestamps = c.minor_version == 0 || random.half();
    c.update_is_compression_base = random.half();
    c.hyp_kept_without_info_1 = random.half();
    return c;
}

struct Shape {
    std::uint64_t steps = 1500;
    std::uint32_t most_sync_bytes = 1060;
};

Case make_case(std::uint64_t seed, Shape shape = {}) {
    synthetic::Random random(seed * 0x10001 + 7);
    Case c;
    c.seed = seed;
    c.config = random_config(random);

    synthetic::ProgramOptions program;
    program.seed = random();
    program.blocks = random.chance(3000) ? 30 : random.chance(500) ? 5000 : 300;
    program.sections = 1 + random.below(6);
    program.tee = random.chance(3000);
    program.barrier_waypoints = c.config.barrier_waypoints;
    c.program = make_program(program);
    c.program.memory.one_view = random.chance(7000);

    synthetic::WalkOptions walk;
    walk.seed = random();
    walk.trustzone = random.chance(7000);
    walk.virtualization = c.config.minor_version == 1 && walk.trustzone && random.half();
    walk.prohibited = random.chance(2000) ? 10 : 0;
    if (random.chance(2000)) walk.exceptions = 2000;

    synthetic::TraceWriterOptions writer;
    writer.seed = random();
    writer.sync_bytes = random.chance(2000) ? 0 : 60 + random.below(shape.most_sync_bytes - 60);
    writer.return_stack_depth = 1 + random.below(16);
    writer.trigger_chance = random.below(60);
    writer.ignore_chance = random.below(60);
    writer.timestamp_chance = random.below(200);
    writer.barrier_packet_chance = 3000;
    writer.delay_isync = random.half();
    if (random.chance(3000)) {
        writer.exclude = random.half();
        for (unsigned i = random.below(3) + 1; i != 0; --i) {
            const auto& b = c.program.blocks[random.below(static_cast<std::uint32_t>(c.program.blocks.size()))].block;
            const std::uint64_t from = b.start & ~std::uint64_t{0xff};
            writer.ranges.emplace_back(from, from + 0x100 + random.below(0x2000));
        }
    }

    synthetic::TraceWriter out(c.config, writer);
    synthetic::Walk(c.program, walk).run(out, shape.steps);
    out.finish();
    c.bytes = out.bytes();
    c.truth = out.truth();
    c.syncs = out.syncs();
    c.traced = out.traced();
    return c;
}

template <class D>
std::vector<Element> decode(const Config& config, const isa::CodeReader& code, Bytes bytes,
                            const std::vector<std::size_t>& cuts = {}, std::uint64_t* packets = nullptr) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    synthetic::vary_paths();
    D decoder(config, code, out);
    std::size_t from = 0;
    for (const std::size_t cut : cuts) {
        decoder.feed(bytes.subspan(from, cut - from));
        from = cut;
    }
    decoder.feed(bytes.subspan(from));
    decoder.finish();
    if (packets != nullptr) *packets = decoder.packets();
    return sink.take();
}

/// The fast decoder with this number of workers and small pieces; `counted` gives only the events, and checks the
/// counts.
std::vector<Element> decode_parallel(const Config& config, const isa::CodeReader& code, Bytes bytes, unsigned workers,
                                     std::size_t piece, const std::vector<std::size_t>& cuts = {},
                                     std::uint64_t* packets = nullptr) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    synthetic::vary_paths();
    ParallelDecoder decoder(config, code, table, sink, {.workers = workers, .piece_bytes = piece});
    std::size_t from = 0;
    for (const std::size_t cut : cuts) {
        decoder.feed(bytes.subspan(from, cut - from));
        from = cut;
    }
    decoder.feed(bytes.subspan(from));
    decoder.finish();
    if (packets != nullptr) *packets = decoder.packets();
    return sink.take();
}

std::string describe(const Case& c) {
    return "seed " + std::to_string(c.seed) + (c.config.cycle_accurate ? " CA" : "") +
           (c.config.return_stack ? " return-stack" : "") + (c.config.branch_broadcast ? " broadcast" : "") +
           (c.config.timestamps ? " timestamps" : "") + (c.config.vmid_trace ? " VMID" : "") + " context-id " +
           std::to_string(c.config.context_id_bytes) + " v1." + std::to_string(c.config.minor_version);
}

std::vector<std::size_t> random_cuts(synthetic::Random& random, std::size_t size) {
    std::vector<std::size_t> cuts;
    const std::uint32_t longest = 1U << random.below(12);
    for (std::size_t at = random.below(longest); at < size; at += 1 + random.below(longest)) cuts.push_back(at);
    return cuts;
}

/// Seeds for repeating each property: WAYMARK_PROPERTY_ROUNDS requests more of them, for a long run by hand.
std::vector<std::uint64_t> seeds(std::uint64_t first, std::uint64_t count) {
    const char* text = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    const std::uint64_t rounds = text != nullptr ? std::max(1UL, std::strtoul(text, nullptr, 10)) : 1;
    count = sized(count, std::max<std::uint64_t>(2, count / 10));
    std::vector<std::uint64_t> out;
    for (std::uint64_t round = 0; round < rounds; ++round)
        for (std::uint64_t i = 0; i < count; ++i) out.push_back(first + i + round * 1000000);
    return out;
}

TEST(GroundTruth, BothDecodersGiveWhatRan) {
    std::uint64_t traced = 0, elements = 0;
    for (const std::uint64_t seed : seeds(1, 400)) {
        const Case c = make_case(seed);
        SCOPED_TRACE(describe(c));
        const std::vector<Element> reference = decode<ReferenceDecoder>(c.config, c.program.memory, c.bytes);
        ASSERT_EQ(difference(reference, c.truth, "reference", "truth"), "");
        const std::vector<Element> fast = decode<Decoder>(c.config, c.program.memory, c.bytes);
        ASSERT_EQ(difference(fast, c.truth, "fast", "truth"), "");
        traced += c.traced;
        elements += c.truth.size();
    }
    std::printf("%llu waypoints and exceptions, %llu elements\n", static_cast<unsigned long long>(traced),
                static_cast<unsigned long long>(elements));
}

/// The result as counts: executions of blocks by address and outcome, and all other elements in order.
using Tally = std::pair<std::map<std::array<std::uint64_t, 5>, std::uint64_t>, std::vector<Element>>;
Tally tally(const std::vector<Element>& elements) {
    Tally t;
    for (const Element& e : elements) {
        if (e.kind != Kind::range)
            t.second.push_back(e);
        else
            ++t.first[{e.block.start, e.block.bytes, e.block.section, static_cast<std::uint64_t>(e.block.isa),
                       e.taken}];
    }
    return t;
}
Tally tally_counts(const Config& config, const isa::CodeReader& code, Bytes bytes, unsigned workers,
                   std::size_t piece) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    synthetic::vary_paths();
    ParallelDecoder decoder(config, code, table, sink,
                            {.workers = workers, .ranges = ParallelDecoder::Ranges::counted, .piece_bytes = piece});
    decoder.feed(bytes);
    decoder.finish();
    Tally t{{}, synthetic::events_of(sink.take())};
    const std::vector<std::uint64_t> counts = decoder.counts();
    for (std::size_t edge = 0; edge < counts.size(); ++edge)
        if (counts[edge] != 0) {
            const flow::Block& b = table.blocks()[edge / 2];
            t.first[{b.start, b.bytes, b.section, static_cast<std::uint64_t>(b.isa), edge & 1}] += counts[edge];
        }
    return t;
}

/// Decodes in all ways, which must agree in every element.
std::vector<Element> decode_both(const Config& config, const isa::CodeReader& code, Bytes bytes,
                                 const std::vector<std::size_t>& cuts = {}) {
    std::uint64_t packets = 0, fast_packets = 0, parallel_packets = 0;
    std::vector<Element> reference = decode<ReferenceDecoder>(config, code, bytes, {}, &packets);
    const std::vector<Element> fast = decode<Decoder>(config, code, bytes, cuts, &fast_packets);
    EXPECT_EQ(fast_packets, packets);
    EXPECT_EQ(difference(fast, reference, "fast", "reference"), "");
    const std::vector<Element> parallel = decode_parallel(config, code, bytes, 2, 100, {}, &parallel_packets);
    EXPECT_EQ(parallel_packets, packets);
    // Alone, this decoder decodes piece by piece.
    (void)decode_parallel(config, code, bytes, 1, 100, {}, &parallel_packets);
    EXPECT_EQ(parallel_packets, packets);
    EXPECT_EQ(difference(parallel, reference, "parallel", "reference"), "");
    return reference;
}

TEST(GroundTruth, AnyNumberOfWorkersGivesTheSame) {
    for (const std::uint64_t seed : seeds(6001, 60)) {
        const Case c = make_case(seed, {.steps = 3000, .most_sync_bytes = 300});
        if (c.bytes.empty()) continue;
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        const Damage d = damage(c.bytes, random);
        for (const Bytes bytes : {Bytes(c.bytes), Bytes(d.bytes)}) {
            const std::vector<Element> one = decode<Decoder>(c.config, c.program.memory, bytes);
            const Tally counts = tally(one);
            ASSERT_EQ(synthetic::ways_with<Decoder>({.eager = true}, bytes, c.config, c.program.memory),
                      synthetic::ways_with<Decoder>({.none = true}, bytes, c.config, c.program.memory));
            for (const unsigned workers : {1U, 2U, 3U, 7U}) {
                SCOPED_TRACE(std::to_string(workers) + " workers");
                const std::size_t piece = 1 + random.below(1000);
                ASSERT_EQ(difference(decode_parallel(c.config, c.program.memory, bytes, workers, piece), one), "");
                ASSERT_EQ(difference(decode_parallel(c.config, c.program.memory, bytes, workers, piece / 10,
                                                     random_cuts(random, bytes.size())),
                                     one),
                          "");
                const Tally counted = tally_counts(c.config, c.program.memory, bytes, workers, piece);
                ASSERT_EQ(difference(counted.second, counts.second), "");
                ASSERT_EQ(counted.first, counts.first);
            }
        }
    }
}

/// More memory spaces than a decoder keeps, and more code than one piece shows: workers learn from each other, forget
/// and learn again.
TEST(GroundTruth, WorkersThatLearnFromEachOtherGiveTheSame) {
    for (const std::uint64_t seed : seeds(8001, 6)) {
        synthetic::Random random(seed);
        Config config = random_config(random);
        config.context_id_bytes = 4;
        const bool many_spaces = seed % 2 == 0;
        synthetic::Program program = synthetic::make_program({.seed = seed,
                                                              .blocks = many_spaces ? 60U : 8000U,
                                                              .tee = random.half(),
                                                              .barrier_waypoints = config.barrier_waypoints});
        program.memory.one_view = !many_spaces;
        synthetic::TraceWriter writer(config, {.seed = seed, .sync_bytes = 200});
        synthetic::Walk(program, {.seed = seed, .context_changes = many_spaces ? 1500U : 20U}).run(writer, 20'000);
        writer.finish();
        SCOPED_TRACE("seed " + std::to_string(seed));
        for (const unsigned workers : {2U, 3U, 7U})
            for (const std::size_t piece : {300U, 3000U})
                ASSERT_EQ(difference(decode_parallel(config, program.memory, writer.bytes(), workers, piece),
                                     writer.truth(), "parallel", "truth"),
                          "");
    }
}

TEST(GroundTruth, HoldsForAnyCutOfTheInput) {
    for (const std::uint64_t seed : seeds(1001, 60)) {
        const Case c = make_case(seed, {.steps = 400});
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        for (unsigned i = 0; i < 4; ++i) {
            const std::vector<std::size_t> cuts = random_cuts(random, c.bytes.size());
            ASSERT_EQ(difference(decode<ReferenceDecoder>(c.config, c.program.memory, c.bytes, cuts), c.truth), "");
            ASSERT_EQ(difference(decode<Decoder>(c.config, c.program.memory, c.bytes, cuts), c.truth), "");
        }
    }
}

bool overlaps(const flow::Block& b, const std::pair<std::uint64_t, std::uint64_t>& hole) {
    return b.start < hole.second && hole.first < b.start + b.bytes;
}

/// The expected part of the truth if some memory is unknown: nothing from the first block that touches a hole up to the
/// next packet with an address. Section 4.4. `blind`: number of outcomes that packets carry there.
struct Blind {
    std::uint64_t taken{}, not_taken{};
    std::vector<std::uint64_t> reached;
    friend bool operator==(const Blind&, const Blind&) = default;
};
std::vector<Element> with_holes(const Case& c, const synthetic::Memory& memory, Blind& blind) {
    std::vector<Element> out;
    bool known = false;
    std::size_t sync = 0;
    for (Element e : c.truth) {
        while (sync < c.syncs.size() && c.syncs[sync].isync <= e.offset) {
            known = true;
            ++sync;
        }
        if (e.kind == Kind::range) {
            const bool address_follows = (c.bytes[e.offset] & 1U) != 0;
            if (known && std::any_of(memory.holes.begin(), memory.holes.end(),
                                     [&](const auto& hole) { return overlaps(e.block, hole); }))
                known = false;
            if (known)
                out.push_back(e);
            else if (e.block.end == flow::End::not_a_waypoint)
                blind.reached.push_back(e.block.start + e.block.bytes - e.block.last_bytes);
            else if (!address_follows)
                ++(e.taken ? blind.taken : blind.not_taken);
            if (address_follows) known = true;
            continue;
        }
        if (e.kind == Kind::exception) {
            if (!known) e.b = Element::absent;
            known = e.a != 1;
        }
        out.push_back(e);
    }
    return out;
}

/// Removes the elements that stand for missing memory, after checking them.
std::vector<Element> without_misses(const std::vector<Element>& found, const synthetic::Memory& memory, Blind& blind) {
    std::vector<Element> out;
    for (const Element& e : found) {
        if (e.kind == Kind::cycles) continue;
        if (e.kind == Kind::atoms) {
            blind.taken += e.a;
            blind.not_taken += e.b;
            continue;
        }
        if (e.kind == Kind::reached) {
            blind.reached.push_back(e.a);
            continue;
        }
        if (e.kind != Kind::no_memory) {
            out.push_back(e);
            continue;
        }
        // The first halfword of the instruction may still be known.
        EXPECT_TRUE(std::any_of(memory.holes.begin(), memory.holes.end(), [&](const auto& hole) {
            return hole.first <= e.a + 2 && e.a < hole.second;
        })) << to_text(e);
        if (!out.empty() && out.back().kind == Kind::range && out.back().offset == e.offset &&
            out.back().block.end == flow::End::not_a_waypoint && out.back().block.start + out.back().block.bytes == e.a)
            out.pop_back();
    }
    return out;
}

TEST(GroundTruth, MissingMemoryHidesOnlyWhatLiesInIt) {
    std::size_t kept = 0, all = 0;
    for (const std::uint64_t seed : seeds(2001, 150)) {
        Case c = make_case(seed);
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        synthetic::Memory memory = c.program.memory;
        for (unsigned i = 1 + random.below(4); i != 0; --i) {
            const auto& b = c.program.blocks[random.below(static_cast<std::uint32_t>(c.program.blocks.size()))].block;
            const std::uint64_t first = (b.start + random.below(b.bytes)) & ~std::uint64_t{1};
            memory.holes.emplace_back(first, first + 2 + random.below(256) * 2);
        }
        const std::vector<Element> found = decode_both(c.config, memory, c.bytes, random_cuts(random, c.bytes.size()));
        ASSERT_FALSE(HasFailure());
        if (c.config.return_stack) continue;  // entries are lost with their calls: less is known
        Blind blind, reported;
        const std::vector<Element> expected = with_holes(c, memory, blind);
        ASSERT_EQ(difference(without_misses(found, memory, reported), expected), "");
        ASSERT_EQ(reported.taken, blind.taken);
        ASSERT_EQ(reported.not_taken, blind.not_taken);
        ASSERT_EQ(reported.reached, blind.reached);
        kept += expected.size();
        all += c.truth.size();
    }
    std::printf("%zu of %zu elements lie outside the holes\n", kept, all);
}

/// Every executed address must be mapped.
void expect_mapped(const std::vector<Element>& elements, const synthetic::Memory& memory) {
    for (const Element& e : elements) {
        if (e.kind != Kind::range) continue;
        for (std::uint64_t at = e.block.start; at < e.block.start + e.block.bytes;) {
            const Bytes piece = memory.at({at & 0xffffffff}, {}).bytes;
            ASSERT_FALSE(piece.empty()) << to_text(e);
            at += piece.size();
        }
    }
}

/// After a gap nothing is known: the context is delivered again before any code.
void expect_context_after_gaps(const std::vector<Element>& elements) {
    bool reported = false;
    for (const Element& e : elements) {
        if (e.kind == Kind::gap) reported = false;
        if (e.kind == Kind::context) reported = true;
        if (e.kind != Kind::range) continue;
        ASSERT_TRUE(reported) << to_text(e);
    }
}

TEST(GroundTruth, DamageEndsAtTheNextSynchronisation) {
    unsigned recovered = 0, late = 0, none = 0, gaps = 0;
    for (const std::uint64_t seed : seeds(3001, 150)) {
        const Case c = make_case(seed, {.steps = 800, .most_sync_bytes = 300});
        if (c.bytes.empty()) continue;
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        for (unsigned i = 0; i < 8; ++i) {
            const Damage d = damage(c.bytes, random);
            SCOPED_TRACE("damage " + std::to_string(i) + " at " + std::to_string(d.first));
            const std::vector<Element> found =
                decode_both(c.config, c.program.memory, d.bytes, random_cuts(random, d.bytes.size()));
            expect_mapped(found, c.program.memory);
            expect_context_after_gaps(found);
            ASSERT_FALSE(HasFailure());
            gaps += static_cast<unsigned>(
                std::count_if(found.begin(), found.end(), [](const Element& e) { return e.kind == Kind::gap; }));
            // A damaged packet may swallow the next A-sync, but no other: from the first recognised A-sync on, all
            // elements are correct again.
            std::vector<std::uint64_t> asyncs;
            for (const auto& item : test::collect(d.bytes, c.config).items)
                if (item.text.starts_with("A-SYNC")) asyncs.push_back(item.first.value + item.bytes);
            bool first = true;
            bool done = false;
            for (const synthetic::SyncPoint& s : c.syncs) {
                if (!s.own_async || s.async < d.end || done) continue;
                // Damage before an A-sync may lengthen its run of zeros, so its end is compared.
                if (!std::binary_search(asyncs.begin(), asyncs.end(), s.async + 6 + d.added - d.dropped)) {
                    if (first) ++late;
                    first = false;
                    continue;
                }
                ASSERT_EQ(difference(flow_after(found, s.isync + d.added - d.dropped, 0, 0),
                                     flow_after(c.truth, s.isync, d.added, d.dropped)),
                          "");
                done = true;
            }
            ++(done ? recovered : none);
        }
    }
    std::printf("%u recovered, %u of them missed one A-sync, %u had none behind the damage; %u gaps\n", recovered, late,
                none, gaps);
    EXPECT_LT(late * 20, recovered);
}

TEST(GroundTruth, DecodingMayStartAnywhere) {
    for (const std::uint64_t seed : seeds(4001, 100)) {
        const Case c = make_case(seed, {.steps = 800});
        if (c.bytes.size() < 2) continue;  // everything is filtered out
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        const std::size_t from = 1 + random.below(static_cast<std::uint32_t>(c.bytes.size() - 1));
        const std::vector<Element> found = decode_both(c.config, c.program.memory, Bytes(c.bytes).subspan(from), {});
        ASSERT_FALSE(HasFailure());
        const auto s = std::find_if(c.syncs.begin(), c.syncs.end(),
                                    [&](const synthetic::SyncPoint& p) { return p.own_async && p.async >= from; });
        if (s == c.syncs.end()) continue;
        ASSERT_EQ(difference(flow_after(found, s->isync - from, 0, 0), flow_after(c.truth, s->isync, 0, from)), "");
    }
}

TEST(GroundTruth, AWrongImageIsSurvived) {
    for (const std::uint64_t seed : seeds(5001, 120)) {
        Case c = make_case(seed, {.steps = 800});
        SCOPED_TRACE(describe(c));
        synthetic::Random random(seed);
        synthetic::Memory other = c.program.memory;
        c.config.max_walk_bytes = random.half() ? 512 * 1024 : 16 + random.below(600);
        switch (random.below(3)) {
            case 0: other = synthetic::make_program({.seed = seed, .blocks = 200, .tee = true}).memory; break;
            case 1:
                for (auto& s : other.sections)
                    for (auto& byte : s.bytes)
                        if (random.chance(300)) byte = static_cast<std::uint8_t>(random());
                break;
            default:
                for (auto& s : other.sections)
                    for (auto& byte : s.bytes) byte = static_cast<std::uint8_t>(random());
                break;
        }
        expect_mapped(decode_both(c.config, other, c.bytes, random_cuts(random, c.bytes.size())), other);
        ASSERT_FALSE(HasFailure());
    }
}

/// Secure and Non-secure memory that have the same addresses and different contents.
class TwoWorlds final : public isa::CodeReader {
public:
    TwoWorlds(const synthetic::Memory& secure, const synthetic::Memory& non_secure) : worlds_{&secure, &non_secure} {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        isa::Code code = worlds_[space.ns ? 1 : 0]->at(address, space);
        code.section = code.section * 2 + (space.ns ? 1U : 0U);
        return code;
    }
    [[nodiscard]] isa::Space view(const isa::Space& space) const override {
        isa::Space reduced;
        reduced.ns = space.ns;
        return reduced;
    }

private:
    const synthetic::Memory* worlds_[2];
};

TEST(GroundTruth, TheSecurityStateSelectsTheMemory) {
    for (const std::uint64_t seed : seeds(7001, 60)) {
        const Case c = make_case(seed, {.steps = 800});
        SCOPED_TRACE(describe(c));
        const synthetic::Memory other = synthetic::make_program({.seed = seed, .blocks = 200, .tee = true}).memory;
        decode_both(c.config, TwoWorlds(other, c.program.memory), c.bytes);
        decode_both(c.config, TwoWorlds(c.program.memory, other), c.bytes);
        ASSERT_FALSE(HasFailure());
    }
}

/// Packets in an order that no macrocell would send; many have addresses of code.
TEST(GroundTruth, DecodersAgreeOnArbitraryPackets) {
    for (const std::uint64_t seed : seeds(6001, 150)) {
        synthetic::Random random(seed);
        wire::Random wild(seed);
        Config config = random_config(random);
        config.max_walk_bytes = random.half() ? 512 * 1024 : 16 + random.below(600);
        synthetic::Program program = synthetic::make_program({.seed = seed, .blocks = 200, .tee = true});
        program.memory.one_view = random.half();
        std::vector<std::uint8_t> bytes;
        const auto somewhere = [&] {
            return program.blocks[random.below(static_cast<std::uint32_t>(program.blocks.size()))].block;
        };
        encode(bytes, ASync{}, config);
        for (unsigned i = 0; i < 1500; ++i) {
            Packet packet = test::random_packet(wild, config);
            if (auto* isync = std::get_if<ISync>(&packet); isync != nullptr && !random.chance(1000)) {
                const flow::Block b = somewhere();
                isync->address_31_1 = static_cast<std::uint32_t>(b.start >> 1);
                isync->thumb = b.isa != Isa::a32;
                isync->alt_isa = b.isa == Isa::tee;
            }
            const auto aim = [&](Target& target) {
                if (random.chance(1000)) return;
                const flow::Block b = somewhere();
                const Isa isa = b.isa == Isa::a32 ? Isa::a32 : Isa::t32;
                target = {static_cast<std::uint32_t>((b.start + 4 * random.below(8)) >> address_shift(isa)), 5, isa,
                          target.information && target.bytes == 5};
            };
            if (auto* branch = std::get_if<BranchAddress>(&packet)) {
                aim(branch->target);
                if (!branch->target.information) branch->exception_3_0 = branch->exception_8_4 = 0;
            }
            if (auto* update = std::get_if<WaypointUpdate>(&packet)) aim(update->target);
            if (random.chance(50)) bytes.push_back(static_cast<std::uint8_t>(random()));
            encode(bytes, packet, config);
        }
        SCOPED_TRACE("seed " + std::to_string(seed));
        expect_mapped(decode_both(config, program.memory, bytes, random_cuts(random, bytes.size())), program.memory);
        ASSERT_FALSE(HasFailure());
    }
}

}  // namespace
}  // namespace waymark::pft
