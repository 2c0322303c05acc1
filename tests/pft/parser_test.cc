/// Properties of parser and encoder: round trips, chunking, damage.
#include "waymark/pft/parser.h"

#include <gtest/gtest.h>

#include <numeric>

#include "pft/support.h"
#include "support/sanitized.h"

namespace waymark::pft {
namespace {

using test::collect;
using test::hex;

/// A stream of random packets that starts with an A-sync; `starts`: the offsets of the packets.
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

TEST(RoundTrip, ParseOfEncodeIsTheSame) {
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < sized(40U, 12U); ++seed) {
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

/// Packets and gaps lie end to end and cover the stream.
void expect_accounted(const test::Collected& got, std::size_t bytes) {
    std::uint64_t at = 0;
    for (const auto& item : got.items) {
        ASSERT_EQ(item.first.value, at) << got.text();
        at += item.bytes;
    }
    ASSERT_EQ(at, bytes) << got.text();
}

TEST(Chunking, NeverChangesWhatIsReported) {
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
            SCOPED_TRACE("seed " + std::to_string(seed));
            wire::Random random(seed);
            auto bytes = random_stream(random, config, 60);
            for (unsigned damage = 0; damage < seed; ++damage)
                bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
            const auto whole = collect(bytes, config);
            expect_accounted(whole, bytes.size());
            std::vector<std::size_t> every(bytes.size());
            std::iota(every.begin(), every.end(), std::size_t{0});
            ASSERT_EQ(collect(bytes, config, every).items, whole.items);
            for (unsigned t = 0; t < 8; ++t) {
                std::vector<std::size_t> cuts;
                for (std::size_t at = random() % 24; at < bytes.size(); at += random() % 24) cuts.push_back(at);
                ASSERT_EQ(collect(bytes, config, cuts).items, whole.items);
            }
        }
}

TEST(Damage, TerminatesAndIsRightAgainAfterTheNextSync) {
    const std::vector<std::uint8_t> async = {0, 0, 0, 0, 0, 0x80};
    for (const Config& config : test::all_configs())
        for (std::uint64_t seed = 0; seed < 60; ++seed) {
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
            // A packet that the damage extends may reach into the following bytes: fillers that are longer than any
            // packet lie between.
            bytes.insert(bytes.end(), 2 * Packets::max_bytes, 0x66);
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

TEST(Sync, ABadPacketDoesNotEatTheNextSync) {
    // A timestamp that swallows the zeros of an A-sync and fails on its 0x80 … at 48 bits: 42 00 is a whole timestamp,
    // so use an I-sync, whose fixed bits fail.
    const auto bytes = test::with_async(hex("08 00 00 00 00 00 80 66"));
    const auto got = collect(bytes, {});
    ASSERT_EQ(got.items.size(), 4U) << got.text();
    EXPECT_EQ(got.items[1].text, "GAP malformed packet");
    EXPECT_EQ(got.items[1].bytes, 1U);
    EXPECT_EQ(got.items[2].text, "A-SYNC zeros=5");
    EXPECT_EQ(got.items[3].text, "IGNORE");
    for (std::size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_EQ(collect(bytes, {}, {cut}).items, got.items) << cut;
}

TEST(Sync, BytesBeforeTheFirstAreUnsynchronised) {
    auto bytes = hex("84 84 00 00 00 84");
    const auto sync = test::with_async(hex("84"));
    bytes.insert(bytes.end(), sync.begin(), sync.end());
    EXPECT_EQ(collect(bytes, {}).text(), "0+6 GAP unsynchronised\n6+6 A-SYNC zeros=5\n12+1 ATOM atoms=E\n");
}

TEST(End, IsReported) {
    EXPECT_EQ(collect(test::with_async(hex("84 08 00")), {}).text(),
              "0+6 A-SYNC zeros=5\n6+1 ATOM atoms=E\n7+2 GAP incomplete packet\n");
    EXPECT_EQ(collect(test::with_async(hex("84 00 00 00")), {}).text(),
              "0+6 A-SYNC zeros=5\n6+1 ATOM atoms=E\n7+3 GAP padding\n");
    EXPECT_EQ(collect(hex("84 85"), {}).text(), "0+2 GAP unsynchronised\n");
    EXPECT_EQ(collect({}, {}).text(), "");
}

TEST(Reset, ForgetsTheUnfinishedPacket) {
    const Config config;
    test::Collected got;
    test::Collector handler(config, got);
    Parser<test::Collector> parser(config, handler);
    parser.feed(test::with_async(hex("84 08 00")));
    parser.reset();
    parser.feed(hex("84"));
    parser.feed(test::with_async(hex("86")));
    parser.finish();
    EXPECT_EQ(got.text(),
              "0+6 A-SYNC zeros=5\n6+1 ATOM atoms=E\n7+2 GAP framing\n9+1 GAP unsynchronised\n"
              "10+6 A-SYNC zeros=5\n16+1 ATOM atoms=N\n");
}

TEST(Reset, AtAStopTheStreamEnds) {
    const Config config;
    test::Collected got;
    test::Collector handler(config, got);
    Parser<test::Collector> parser(config, handler);
    parser.feed(test::with_async(hex("84 00 00")));
    parser.reset(GapReason::stopped);
    parser.reset(GapReason::stopped);
    parser.feed(hex("84"));
    parser.reset(GapReason::missing);
    parser.feed(test::with_async(hex("86 08")));
    parser.reset(GapReason::missing);
    parser.finish();
    EXPECT_EQ(got.text(),
              "0+6 A-SYNC zeros=5\n6+1 ATOM atoms=E\n7+2 GAP padding\n9+0 GAP stopped\n9+0 GAP stopped\n"
              "9+1 GAP unsynchronised\n10+0 GAP missing trace\n"
              "10+6 A-SYNC zeros=5\n16+1 ATOM atoms=N\n17+1 GAP missing trace\n");
}

// docs/spec/pft.md, 5.7.2: no run of 47 zero bits followed by a one, bytes least significant bit first, outside A-sync.
TEST(Encoder, NothingImitatesAnASync) {
    for (const Config& config : test::all_configs()) {
        wire::Random random(7);
        std::vector<std::uint8_t> bytes;
        for (unsigned i = 0; i < 20000; ++i) {
            Packet packet = test::random_packet(random, config);
            if (std::holds_alternative<ASync>(packet)) continue;
            if (random() % 2 == 0) {  // rich in zeros
                ISync isync;
                isync.reason = static_cast<ISyncReason>(random() % 4);
                packet = isync;
            }
            encode(bytes, packet, config);
        }
        unsigned run = 0, longest = 0;
        for (const std::uint8_t byte : bytes)
            for (unsigned bit = 0; bit < 8; ++bit) {
                run = (byte >> bit & 1U) != 0 ? 0 : run + 1;
                longest = std::max(longest, run);
            }
        EXPECT_LE(longest, 46U);
    }
}

}  // namespace
}  // namespace waymark::pft
