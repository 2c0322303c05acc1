// Paths that decoders remember, where the same bytes at the same position lead elsewhere: an address packet's bits are
// completed from the address before it. docs/spec/pft.md, section 2.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/elements.h"
#include "support/paths.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

constexpr std::uint64_t hub = 0x0200'0000, lowest = 0x0100'0000;

/// Eight places, each of which branches to `hub`, an indirect branch that all of them share.
struct SharedBranch {
    std::array<Place, 8> places;
    synthetic::Memory memory;

    explicit SharedBranch(const std::array<Place, 8>& all) : places(all) {
        std::array<Place, 8> ascending = all;
        std::sort(ascending.begin(), ascending.end(),
                  [](const Place& a, const Place& b) { return a.address.value < b.address.value; });
        for (const Place& place : ascending) add_branch(place);
        memory.sections.push_back({hub, {0x10, 0xff, 0x2f, 0xe1}});  // BX R0
    }
    [[nodiscard]] flow::Block block(const Place& at) const {
        flow::Block b;
        b.start = at.address.value;
        b.bytes = b.last_bytes = 4;
        b.instructions = 1;
        b.section = memory.section_of(b.start);
        b.isa = at.isa;
        b.end = flow::End::indirect;
        if (b.start == hub) return b;
        b.end = flow::End::direct;
        b.target = hub;
        if (at.isa == Isa::t32) b.flags = flow::Block::link;
        return b;
    }

private:
    /// B; BLX in T32.
    void add_branch(const Place& place) {
        const std::uint64_t at = place.address.value;
        std::uint32_t opcode = 0;
        if (place.isa == Isa::t32) {
            const auto offset = static_cast<std::uint32_t>(hub - ((at + 4) & ~std::uint64_t{3}));
            const std::uint32_t s = offset >> 24 & 1U, j1 = ~(offset >> 23 ^ s) & 1U, j2 = ~(offset >> 22 ^ s) & 1U;
            const std::uint32_t first_half = 0xf000 | s << 10 | (offset >> 12 & 0x3ffU);
            const std::uint32_t second_half = 0xc000 | j1 << 13 | j2 << 11 | (offset >> 1 & 0x7feU);
            opcode = first_half | second_half << 16;
        } else {
            opcode = 0xea000000 | (static_cast<std::uint32_t>(hub - (at + 8)) >> 2 & 0xffffffU);
        }
        synthetic::Memory::Section section{at, {}};
        for (unsigned n = 0; n < 4; ++n) section.bytes.push_back(static_cast<std::uint8_t>(opcode >> 8 * n));
        memory.sections.push_back(std::move(section));
    }
};

/// Pairs of places, whose addresses differ in two bits. If `mixed`, those with the first of these bits are T32.
SharedBranch twins(unsigned one_bit, unsigned other_bit, bool mixed) {
    std::array<Place, 8> places{};
    for (unsigned i = 0; i < 8; ++i)
        places[i] = {{lowest | std::uint64_t{i & 1U} << 6 | std::uint64_t{i >> 1 & 1U} << one_bit |
                      std::uint64_t{i >> 2} << other_bit},
                     mixed && (i & 2U) != 0 ? Isa::t32 : Isa::a32};
    return SharedBranch(places);
}
/// Pairs of places, four in A32 and four in T32 at half the distance: their packets are the same bytes.
SharedBranch doubles() {
    std::array<Place, 8> places{};
    for (unsigned i = 0; i < 8; ++i) {
        const bool a32 = (i & 4U) != 0;
        const std::uint64_t distance = 0x1000U | (i & 1U) << 6 | (i & 2U) << 8;
        places[i] = {{lowest | (a32 ? 2 * distance : distance)}, a32 ? Isa::a32 : Isa::t32};
    }
    return SharedBranch(places);
}

/// From one place of a pair to the other, or from any place to any.
void walk(const SharedBranch& program, synthetic::TraceWriter& out, synthetic::Random& random, unsigned steps) {
    unsigned newest = 0;
    Place at = program.places[newest];
    for (unsigned i = 0; i < steps; ++i) {
        synthetic::Executed ran;
        ran.block = program.block(at);
        if (ran.block.end == flow::End::indirect) {
            newest = random.chance(7000) ? newest ^ (1U + random.below(3)) : random.below(8);
            at = program.places[newest];
        } else {
            at = {{hub}, Isa::a32};
        }
        ran.to = at;
        ran.cycle = i;
        out.waypoint(ran);
    }
    out.finish();
}

template <class D>
std::vector<synthetic::Element> decode(const SharedBranch& program, const Config& config, Bytes bytes,
                                       const follow::PathOptions& paths) {
    follow::usual_paths = paths;
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    D decoder(config, program.memory, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

void check(const SharedBranch& program, std::uint64_t seed) {
    synthetic::Random random(seed);
    const Config config;
    synthetic::TraceWriter out(config, {.seed = random()});
    walk(program, out, random, sized(3000U, 800U));
    ASSERT_EQ(difference(decode<ReferenceDecoder>(program, config, out.bytes(), {}), out.truth(), "reference", "truth"),
              "");
    for (const follow::PathOptions& paths :
         {follow::PathOptions{}, {.eager = true}, {.log2_size = 4, .eager = true}, {.alternate = true}})
        ASSERT_EQ(difference(decode<Decoder>(program, config, out.bytes(), paths), out.truth(), "fast", "truth"), "");
    ASSERT_EQ(synthetic::ways_with<Decoder>({.eager = true}, out.bytes(), config, program.memory),
              synthetic::ways_with<Decoder>({.none = true}, out.bytes(), config, program.memory));
    follow::usual_paths = {};
}

TEST(Paths, OfTheSameBytesAfterAnotherAddressAreNotTaken) {
    for (unsigned one = 8; one < 24; ++one)
        for (unsigned other = one + 1; other < 24; other += 1 + one % 4)
            for (const bool mixed : {false, true}) {
                SCOPED_TRACE("bits " + std::to_string(one) + " and " + std::to_string(other) +
                             (mixed ? ", A32 and T32" : ""));
                ASSERT_NO_FATAL_FAILURE(check(twins(one, other, mixed), one * 100 + other));
            }
}
TEST(Paths, OfTheSameBytesAfterAnotherInstructionSetAreNotTaken) {
    for (std::uint64_t seed = 0; seed < 20; ++seed) ASSERT_NO_FATAL_FAILURE(check(doubles(), seed));
}

/// Remembers the range of each number.
class RepeatSink final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        std::uint32_t end = 0;
        for (const flow::Repeat& repeat : batch.repeats) {
            ASSERT_GE(repeat.first, end);
            ASSERT_GT(repeat.count, 0U);
            end = repeat.first + repeat.count;
            ASSERT_LE(end, batch.ranges.size());
            std::vector<std::uint32_t> edges;
            for (const flow::Range& range : batch.ranges.subspan(repeat.first, repeat.count)) {
                edges.push_back(range.edge);
                ASSERT_EQ(range.times, 1U);
                ASSERT_EQ(range.cycles, flow::no_cycles);
            }
            for (const flow::Event& event : batch.events)
                ASSERT_FALSE(event.before > repeat.first && event.before < end);
            ++repeats;
            ASSERT_EQ(all.try_emplace(repeat.number, edges).first->second, edges);
        }
    }
    std::map<std::uint64_t, std::vector<std::uint32_t>> all;
    std::uint64_t repeats = 0;
};

TEST(Paths, AreDeliveredWithNumbersThatNoOthersHave) {
    const SharedBranch program = twins(9, 14, true);
    for (const follow::PathOptions& paths : {follow::PathOptions{},
                                             {.eager = true},
                                             {.log2_size = 4, .eager = true},
                                             {.log2_size = 1, .eager = true},
                                             {.alternate = true}}) {
        synthetic::Random random(paths.log2_size);
        const Config config;
        RepeatSink sink;
        flow::BlockTable table;
        follow::usual_paths = paths;
        // Two decoders of one sink remember the same paths, each with its own numbers.
        for (int i = 0; i < 2; ++i) {
            synthetic::TraceWriter out(config, {.seed = random()});
            walk(program, out, random, 3000);
            flow::BatchWriter writer(table, sink);
            Decoder decoder(config, program.memory, writer);
            decoder.feed(out.bytes());
            decoder.finish();
            ASSERT_FALSE(HasFatalFailure());
        }
        EXPECT_GT(sink.repeats, 20U);
        EXPECT_GT(sink.all.size(), 4U);
    }
    follow::usual_paths = {};
}

}  // namespace
}  // namespace waymark::pft
