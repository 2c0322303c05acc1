// Streams of a unit that speculates, in which paths repeat: so long that the inner loops do nearly all of the work. The
// loops' results are compared with the reference decoder, whose queue is as simple as possible.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/support.h"
#include "support/damage.h"
#include "support/measured_a64.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/etm4/state.h"

namespace waymark::etm4 {
namespace {

using synthetic::Element;
using synthetic::Kind;
using synthetic::MeasuredA64Part;
using synthetic::Random;

MeasuredA64Part speculating(std::uint64_t waypoints) {
    return synthetic::measured_a64_stream('s', waypoints).parts.front();
}
std::size_t count(const std::vector<Element>& elements, Kind kind) {
    return static_cast<std::size_t>(
        std::count_if(elements.begin(), elements.end(), [&](const Element& e) { return e.kind == kind; }));
}
std::vector<std::uint8_t> encoded(const std::vector<Packet>& packets, const Config& config) {
    std::vector<std::uint8_t> bytes;
    for (const Packet& packet : packets) std::visit([&](const auto& p) { encode(bytes, p, config); }, packet);
    return bytes;
}

TEST(Etm4Speculation, AllDecodersAgree) {
    const MeasuredA64Part part = speculating(sized(20000U, 4000U));
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(part.bytes, part.config, *part.code);
    EXPECT_EQ(count(elements, Kind::range), part.truth.ranges);
    test::expect_all_agree(elements, part.bytes, part.config, *part.code);
}

// Packets of speculation inserted, removed and changed, so that many are impossible at their places.
TEST(Etm4Speculation, AgreeOnCommitsAndCancelsThatCannotBe) {
    std::size_t gaps = 0, ranges = 0, never_committed = 0;
    for (std::uint64_t seed = 1; seed <= test::programs(sized(60U, 12U)); ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        MeasuredA64Part part = speculating(600 + random.below(600));
        const std::uint32_t one_in = 5U << random.below(8);
        // A depth other than the unit's changes the implied commits.
        const std::uint32_t depths[] = {1, 2, 7, 8, 8, 8, 9, 60};
        part.config.max_speculation = synthetic::pick(random, depths);
        const auto any = [&]() -> Packet {
            const auto few = static_cast<std::uint8_t>(random.below(4));
            switch (random.below(13)) {
                case 0: return Commit{random.below(10)};
                case 1: return Commit{random.below(300)};
                case 2: return CancelF1{random.below(6), random.half()};
                case 3: return CancelF1{random.below(300), random.half()};
                case 4: return CancelF2{few};
                case 5: return CancelF3{few, random.half()};
                case 6: return Mispredict{few};
                case 7: return TraceOn{};
                case 8: return CycleCountF1{random.below(random.half() ? 4 : 300), random.below(2000), random.half()};
                case 9: return CycleCountF2{few, few, random.half()};
                case 10: return CycleCountF3{few, few};
                case 11: return Timestamp{compress_timestamp(random.below(1000), 0), random.below(2000), random.half()};
                default: return Atom{atom_table[random.below(64)]};
            }
        };
        std::vector<Packet> packets;
        for (const Packet& packet : test::collect(part.bytes, part.config).packets) {
            const bool chosen = random.below(one_in) == 0 && packets.size() > 10;
            const std::uint32_t what = random.below(3);
            if (chosen && what != 0) packets.push_back(any());
            if (!chosen || what == 2) packets.push_back(packet);
        }
        part.bytes = encoded(packets, part.config);
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(part.bytes, part.config, *part.code);
        ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, part.bytes, part.config, *part.code));
        gaps += count(elements, Kind::gap);
        ranges += count(elements, Kind::range);
        for (const Element& e : elements)
            never_committed +=
                e.kind == Kind::mark && e.a == static_cast<std::uint64_t>(flow::Mark::Kind::uncommitted) ? 1 : 0;
    }
    EXPECT_GT(gaps, 10U);
    EXPECT_GT(ranges, 2000U);
    EXPECT_GT(never_committed, 10U);
}

void agree_on_damaged_bytes(const MeasuredA64Part& part) {
    for (std::uint64_t seed = 1; seed <= test::programs(sized(120U, 12U)); ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        std::vector<std::uint8_t> bytes = part.bytes;
        for (std::uint32_t n = random.below(6); n-- != 0;) bytes = synthetic::damage(bytes, random).bytes;
        bytes = synthetic::damage(bytes, random).bytes;
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(bytes, part.config, *part.code);
        ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, bytes, part.config, *part.code));
    }
}

TEST(Etm4Speculation, AgreeOnDamagedBytes) { agree_on_damaged_bytes(speculating(1500)); }
TEST(Etm4Cycles, AgreeOnDamagedBytes) {
    agree_on_damaged_bytes(synthetic::measured_a64_stream('e', 1500).parts.front());
}

// Cycle counts between an indirect branch and its address, in the chunks where the loop stops.
TEST(Etm4Cycles, AllDecodersAgree) {
    const MeasuredA64Part part = synthetic::measured_a64_stream('e', sized(20000U, 4000U)).parts.front();
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(part.bytes, part.config, *part.code);
    EXPECT_EQ(count(elements, Kind::range), part.truth.ranges);
    EXPECT_GT(count(elements, Kind::cycles), part.truth.ranges / 2);
    test::expect_all_agree(elements, part.bytes, part.config, *part.code);
}

/// The packets of a stream up to its first address, with this depth of speculation, and enough bytes after this address
/// that loops read the inserted packets.
struct Begun {
    explicit Begun(std::uint32_t depth) : part(speculating(100)) {
        part.config.max_speculation = depth;
        part.config.version = 0x43;  // has Ignore packets
        for (const Packet& packet : test::collect(part.bytes, part.config).packets) {
            packets.push_back(packet);
            if (std::holds_alternative<AddressWithContext>(packet)) break;
        }
    }
    std::vector<Element> elements() {
        packets.insert(packets.end(), 40, Packet{Ignore{}});
        part.bytes = encoded(packets, part.config);
        const std::vector<Element> found = test::decode<ReferenceDecoder>(part.bytes, part.config, *part.code);
        test::expect_all_agree(found, part.bytes, part.config, *part.code);
        return found;
    }
    MeasuredA64Part part;
    std::vector<Packet> packets;
};

// An atom that a Mispredict packet contains commits the oldest one if the unit can hold no more.
TEST(Etm4Speculation, AtomsOfMispredictFillTheUnit) {
    Begun stream(2);
    stream.packets.insert(stream.packets.end(), {Atom{{2, 3}}, Mispredict{1}, Discard{}});
    const std::vector<Element> elements = stream.elements();
    EXPECT_EQ(count(elements, Kind::range), 1U);
    const auto mark =
        std::find_if(elements.begin(), elements.end(), [](const Element& e) { return e.kind == Kind::mark; });
    ASSERT_NE(mark, elements.end());
    EXPECT_EQ(mark->b, 2U);
}

// Elements that a packet commits before it turns out to be impossible are delivered, and so are later elements that
// nothing could cancel.
TEST(Etm4Speculation, AnImpossiblePacketSettlesWhatWasCommitted) {
    Begun stream(1);
    Context context;
    context.has_payload = context.sf = context.ns = true;
    context.el = 2;
    stream.packets.insert(stream.packets.end(), {Atom{{1, 1}}, context, CancelF3{3, true}});
    const std::vector<Element> elements = stream.elements();
    EXPECT_EQ(count(elements, Kind::range), 1U);
    EXPECT_EQ(count(elements, Kind::context), 2U);
    EXPECT_EQ(count(elements, Kind::gap), 1U);
}

// docs/spec/etm4-registers.md, 2.16: Mispredict inverts the newest atom that was not cancelled, even if it was
// committed.
TEST(Etm4Speculation, ACommittedAtomMayBeMispredicted) {
    const auto outcomes = [](const std::vector<Packet>& packets) {
        Begun stream(8);
        stream.packets.insert(stream.packets.end(), packets.begin(), packets.end());
        std::string out;
        for (const Element& e : stream.elements()) {
            if (e.kind == Kind::range) out += e.taken ? 'E' : 'N';
            if (e.kind == Kind::gap && e.c == static_cast<std::uint64_t>(GapReason::malformed_packet)) out += '?';
        }
        return out;
    };
    // Up to a branch that may go either way.
    const std::vector<Packet> none{};
    ASSERT_EQ(outcomes(none), "");
    const Packet e = Atom{{1, 1}}, n = Atom{{1, 0}};
    const std::string as_it_is = outcomes({n, Commit{1}});
    ASSERT_EQ(as_it_is, "N");
    EXPECT_EQ(outcomes({e, Commit{1}, Mispredict{0}}), "N");
    EXPECT_EQ(outcomes({n, Commit{1}, Mispredict{0}, Mispredict{0}}), "N");
    // Cancelled elements do not count.
    EXPECT_EQ(outcomes({e, n, Commit{1}, CancelF2{0}}), "N");
    EXPECT_EQ(outcomes({e, Commit{1}, e, e, CancelF3{0, false}}), "N");
    EXPECT_EQ(outcomes({e, e, e, Commit{1}, CancelF1{2, true}}), "N");
    // Committed elements cannot be cancelled, and without an atom nothing is mispredicted.
    EXPECT_EQ(outcomes({n, Commit{1}, CancelF1{1, false}}), "N?");
    EXPECT_EQ(outcomes({Mispredict{0}}), "?");
    // The unit's depth commits, too.
    EXPECT_EQ(outcomes({n, Commit{1}, Timestamp{}, Mispredict{0}, Mispredict{0}, Commit{0}}), "N");
}

// The inner loop queues 256 rows at once, and a cycle count as the last of them may add two. How large the queue is
// then depends on how often that was so.
TEST(Etm4Speculation, ACountMayBeTheLastRowForWhichThereIsRoom) {
    constexpr std::uint32_t rows = 256, batches = 24;
    for (std::uint32_t seed = 0; seed < 48; ++seed) {
        SCOPED_TRACE(seed);
        Random random(seed);
        Begun stream(60000);
        stream.part.config.cycle_counting = stream.part.config.commit_mode_1 = true;
        for (std::uint32_t batch = 0; batch < batches; ++batch) {
            for (std::uint32_t i = 1; i < rows; ++i) stream.packets.push_back(Atom{{3, random.below(8)}});
            // Then the count stands between outcomes of one row.
            if (const std::uint32_t first = 4 + seed % 8; batch >= first && batch - first < seed % batches)
                stream.packets.push_back(Commit{1});
            stream.packets.push_back(CycleCountF3{0, 1});
        }
        stream.packets.insert(stream.packets.end(), 40, Packet{Ignore{}});
        const MeasuredA64Part& part = stream.part;
        const std::vector<Element> elements =
            test::decode<Decoder>(encoded(stream.packets, part.config), part.config, *part.code);
        EXPECT_EQ(count(elements, Kind::cycles), batches);
    }
}

// Cut after any packet, a stream gives the committed elements so far, and the number of uncommitted ones.
TEST(Etm4Speculation, NothingUncommittedIsDelivered) {
    const MeasuredA64Part part = speculating(300);
    const std::vector<Element> whole = test::decode<ReferenceDecoder>(part.bytes, part.config, *part.code);
    std::vector<Element> flow;
    for (const Element& e : whole)
        if (e.kind == Kind::range) flow.push_back(e);
    std::size_t waited = 0;
    for (std::size_t size = 0; size < part.bytes.size(); ++size) {
        SCOPED_TRACE(size);
        const auto found = test::decode<Decoder>(Bytes(part.bytes).first(size), part.config, *part.code);
        std::size_t at = 0;
        for (const Element& e : found) {
            if (e.kind == Kind::range) {
                ASSERT_LT(at, flow.size());
                ASSERT_EQ(to_text(e), to_text(flow[at++]));
            }
            if (e.kind == Kind::mark && e.a == static_cast<std::uint64_t>(flow::Mark::Kind::uncommitted)) {
                ASSERT_LE(e.b, part.config.max_speculation);
                waited += e.b;
            }
        }
    }
    EXPECT_GT(waited, part.bytes.size());
}

}  // namespace
}  // namespace waymark::etm4
