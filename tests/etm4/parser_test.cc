/// Properties of parser and encoder: round trips, chunking, damage.
#include "waymark/etm4/parser.h"

#include <gtest/gtest.h>

#include <numeric>

#include "etm4/support.h"
#include "support/sanitized.h"
#include "waymark/etm4/data_stream.h"

namespace waymark::etm4 {
namespace {

using test::collect;
using test::hex;

/// A stream of random packets that starts with an A-sync.
std::vector<std::uint8_t> random_stream(wire::Random& random, const Config& config, std::size_t count,
                                        std::vector<Packet>* packets = nullptr) {
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i < count; ++i) {
        const Packet packet = i == 0 ? Packet{ASync{}} : test::random_packet(random, config);
        encode(out, packet, config);
        if (packets != nullptr) packets->push_back(packet);
    }
    return out;
}

TEST(Etm4RoundTrip, ParseOfEncodeIsTheSame) {
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < sized(12U, 3U); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            wire::Random random(seed);
            std::vector<Packet> packets;
            const auto bytes = random_stream(random, config, 200, &packets);
            const auto got = collect(bytes, config);
            ASSERT_EQ(got.packets, packets);
            std::vector<std::uint8_t> again;
            for (const Packet& p : got.packets) encode(again, p, config);
            ASSERT_EQ(again, bytes);
            for (const Packet& p : packets) {
                const std::string text = std::visit([&](const auto& q) { return to_text(q, config); }, p);
                const auto scanned = from_text(text, config);
                ASSERT_TRUE(scanned.has_value()) << scanned.error().message;
                ASSERT_EQ(*scanned, p) << text;
            }
        }
}

// The generator draws every packet of every configuration, so the test above has seen them.
TEST(Etm4RoundTrip, EveryPacketIsDrawn) {
    std::vector<bool> seen(std::variant_size_v<Packet>);
    wire::Random random(1);
    for (const Config& config : test::all_configs())
        for (unsigned i = 0; i < 400; ++i) seen[test::random_packet(random, config).index()] = true;
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(seen[i]) << Packets::infos[i].name;
}

/// Packets and gaps lie end to end and cover the stream.
void expect_accounted(const test::Collected& got, std::size_t bytes) {
    std::uint64_t at = 0;
    for (const auto& item : got.items) {
        ASSERT_EQ(item.first.value, at) << got.text();
        ASSERT_GT(item.bytes, 0U) << got.text();
        at += item.bytes;
    }
    ASSERT_EQ(at, bytes) << got.text();
}

TEST(Etm4Chunking, NeverChangesWhatIsReported) {
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < sized(12U, 3U); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            wire::Random random(seed);
            auto bytes = random_stream(random, config, 60);
            for (unsigned damage = 0; damage < seed; ++damage)
                bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random() % 3 == 0 ? 0 : random());
            const auto whole = collect(bytes, config);
            expect_accounted(whole, bytes.size());
            std::vector<std::size_t> every(bytes.size());
            std::iota(every.begin(), every.end(), std::size_t{0});
            ASSERT_EQ(collect(bytes, config, every).items, whole.items);
            for (unsigned t = 0; t < 4; ++t) {
                std::vector<std::size_t> cuts;
                for (std::size_t at = random() % 24; at < bytes.size(); at += random() % 24) cuts.push_back(at);
                ASSERT_EQ(collect(bytes, config, cuts).items, whole.items);
            }
        }
}

TEST(Etm4Chunking, AtEveryByte) {
    for (const Config& config : {test::etmv4(), test::ete(), test::conditional(), test::m_profile()}) {
        wire::Random random(5);
        const auto bytes = random_stream(random, config, 100);
        const auto whole = collect(bytes, config);
        for (std::size_t cut = 0; cut <= bytes.size(); ++cut)
            ASSERT_EQ(collect(bytes, config, {cut}).items, whole.items) << cut;
    }
}

TEST(Etm4Damage, TerminatesAndIsRightAgainAfterTheNextSync) {
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < sized(30U, 5U); ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            wire::Random random(seed);
            auto bytes = random_stream(random, config, 30);
            for (unsigned n = 0; n <= random() % 4; ++n) {
                const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
                switch (random() % 3) {
                    case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8); break;
                    case 1: bytes.erase(at); break;
                    default: bytes.insert(at, static_cast<std::uint8_t>(random() % 3 == 0 ? random() : 0)); break;
                }
            }
            // A packet that the damage extends may reach into the following bytes: atoms that are longer than any
            // packet lie between.
            bytes.insert(bytes.end(), 2 * Packets::max_bytes, 0xf7);
            const std::size_t good = bytes.size();
            std::vector<Packet> packets;
            const auto tail = random_stream(random, config, 30, &packets);
            bytes.insert(bytes.end(), tail.begin(), tail.end());
            const auto got = collect(bytes, config);
            expect_accounted(got, bytes.size());
            std::vector<Packet> after;
            std::size_t p = 0;
            for (const auto& item : got.items) {
                if (item.text.starts_with("GAP")) continue;
                if (item.first.value >= good) after.push_back(got.packets[p]);
                ++p;
            }
            ASSERT_EQ(after, packets) << got.text();
        }
}

TEST(Etm4Damage, AnyBytesAreAccountedFor) {
    wire::Random random(11);
    for (const Config& config : test::all_configs())
        for (unsigned i = 0; i < sized(40U, 10U); ++i) {
            auto bytes = test::with_async({});
            for (unsigned n = 0; n < 200; ++n)
                bytes.push_back(static_cast<std::uint8_t>(random() % 4 == 0 ? 0 : random()));
            expect_accounted(collect(bytes, config), bytes.size());
        }
}

TEST(Etm4Sync, ABadPacketDoesNotEatTheNextSync) {
    // The address of the bad packet would be the zeros of the A-sync: the packet's header is reserved, so it has no
    // address.
    auto bytes = test::with_async(hex("f7 01 01"));
    const auto sync = test::with_async(hex("f6"));
    bytes.insert(bytes.end(), sync.begin(), sync.end());
    // Trace Info takes the first zero as INFO, so ten are left: no A-sync.
    EXPECT_EQ(collect(bytes, test::etmv4()).text(),
              "0+12 A-SYNC\n12+1 ATOM atoms=E\n13+3 TRACE-INFO PLCTL=1 INFO=0\n16+12 GAP malformed packet\n");
    // A packet that fails inside the A-sync does not consume the bytes of the A-sync.
    auto reset = test::with_async(hex("06 01"));
    reset.insert(reset.end(), sync.begin(), sync.end());
    const auto got = collect(reset, test::ete());
    EXPECT_EQ(got.text(), "0+12 A-SYNC\n12+2 GAP malformed packet\n14+12 A-SYNC\n26+1 ATOM atoms=N\n");
    for (std::size_t cut = 0; cut < reset.size(); ++cut)
        EXPECT_EQ(collect(reset, test::ete(), {cut}).items, got.items) << cut;
}

TEST(Etm4Sync, BytesBeforeTheFirstAreUnsynchronised) {
    auto bytes = hex("f7 00 05 f7 00 00 00 f7");  // an Overflow is not known without a packet boundary
    const auto sync = test::with_async(hex("f7"));
    bytes.insert(bytes.end(), sync.begin(), sync.end());
    EXPECT_EQ(collect(bytes, test::etmv4()).text(), "0+8 GAP unsynchronised\n8+12 A-SYNC\n20+1 ATOM atoms=E\n");
}

TEST(Etm4Sync, MoreZerosThanAnASyncHasArePadding) {
    auto bytes = test::with_async(hex("f7 00 00 00"));
    const auto sync = test::with_async(hex("f6"));
    bytes.insert(bytes.end(), sync.begin(), sync.end());
    const auto got = collect(bytes, test::etmv4());
    EXPECT_EQ(got.text(), "0+12 A-SYNC\n12+1 ATOM atoms=E\n13+3 GAP padding\n16+12 A-SYNC\n28+1 ATOM atoms=N\n");
    for (std::size_t cut = 0; cut < bytes.size(); ++cut)
        EXPECT_EQ(collect(bytes, test::etmv4(), {cut}).items, got.items) << cut;
    // Before the first A-sync these bytes are unsynchronised like all others.
    const auto head = collect(Bytes(bytes).subspan(13), test::etmv4());
    EXPECT_EQ(head.text(), "0+3 GAP unsynchronised\n3+12 A-SYNC\n15+1 ATOM atoms=N\n");
}

TEST(Etm4End, IsReported) {
    EXPECT_EQ(collect(test::with_async(hex("f7 9a 00")), test::etmv4()).text(),
              "0+12 A-SYNC\n12+1 ATOM atoms=E\n13+2 GAP incomplete packet\n");
    EXPECT_EQ(collect(test::with_async(hex("f7 00 00 00")), test::etmv4()).text(),
              "0+12 A-SYNC\n12+1 ATOM atoms=E\n13+3 GAP padding\n");
    EXPECT_EQ(collect(hex("f7 f6"), test::etmv4()).text(), "0+2 GAP unsynchronised\n");
    EXPECT_EQ(collect({}, test::etmv4()).text(), "");
}

TEST(Etm4Reset, ForgetsTheUnfinishedPacket) {
    const Config config = test::etmv4();
    test::Collected got;
    test::Collector handler(config, got);
    Parser<test::Collector> parser(config, handler);
    parser.feed(test::with_async(hex("f7 9a 00")));
    EXPECT_TRUE(parser.progress().amid_packet());
    EXPECT_EQ(parser.pending(), Offset{13});
    parser.reset();
    parser.feed(hex("f7"));
    parser.feed(test::with_async(hex("f6")));
    EXPECT_TRUE(parser.progress().at_packet(Offset{29}));
    parser.finish();
    EXPECT_EQ(got.text(),
              "0+12 A-SYNC\n12+1 ATOM atoms=E\n13+2 GAP framing\n15+1 GAP unsynchronised\n"
              "16+12 A-SYNC\n28+1 ATOM atoms=N\n");
}

TEST(Etm4Resume, GoesOnWhereAnotherParserIs) {
    const Config config = test::ete();
    wire::Random random(9);
    const auto bytes = random_stream(random, config, 80);
    const auto whole = collect(bytes, config);
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
        test::Collected got;
        test::Collector handler(config, got);
        Parser<test::Collector> first(config, handler), second(config, handler);
        first.feed(Bytes(bytes).first(cut));
        second.resume(first.progress());
        second.feed(Bytes(bytes).subspan(cut));
        second.finish();
        ASSERT_EQ(got.items, whole.items) << cut;
    }
}

// Section 3: eleven zeros in a row are in an A-sync and nowhere else, so that a reader can find it in any bytes.
TEST(Etm4Encoder, NothingImitatesAnASync) {
    for (const Config& config : test::all_configs()) {
        wire::Random random(7);
        std::vector<std::uint8_t> bytes;
        for (unsigned i = 0; i < 5000; ++i) {
            Packet packet = test::random_packet(random, config);
            if (std::holds_alternative<ASync>(packet)) continue;
            // Many zeros: packets that end in zeros, before packets that begin with one.
            switch (random() % 6) {
                case 0: packet = Overflow{}; break;
                case 1: packet = LongAddress{}; break;
                case 2: packet = AddressWithContext{}; break;
                case 3:
                    if (is_allowed<Instrumentation>(config)) packet = Instrumentation{};
                    break;
                default: break;
            }
            encode(bytes, packet, config);
        }
        unsigned run = 0, longest = 0;
        for (const std::uint8_t byte : bytes) {
            run = byte == 0 ? run + 1 : 0;
            longest = std::max(longest, run);
        }
        EXPECT_LT(longest, 11U);
        EXPECT_GE(longest, 9U);  // it was tried
    }
}

TEST(Etm4DataStream, IsCounted) {
    auto bytes = test::with_async(hex("71 02 03"));
    const auto again = test::with_async(hex("00 00"));
    bytes.insert(bytes.end(), again.begin(), again.end());
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        DataStreamCounter counter;
        counter.feed(Bytes(bytes).first(cut));
        counter.feed(Bytes(bytes).subspan(cut));
        EXPECT_EQ(counter.bytes(), bytes.size());
        EXPECT_EQ(counter.syncs(), 2U);
    }
    DataStreamCounter counter;
    counter.feed(Bytes(bytes).first(8));
    counter.reset();
    counter.feed(Bytes(bytes).subspan(8));
    EXPECT_EQ(counter.syncs(), 1U);
}

}  // namespace
}  // namespace waymark::etm4
