/// Properties of parser and encoder: round trips, chunking, accounting.
#include "waymark/spe/parser.h"

#include <gtest/gtest.h>

#include <numeric>

#include "spe/support.h"

namespace waymark::spe {
namespace {

using test::collect;
using test::hex;

std::vector<std::uint8_t> random_stream(wire::Random& random, unsigned count, std::vector<Packet>* packets = nullptr) {
    std::vector<std::uint8_t> out;
    bool after_padding = false;
    for (unsigned i = 0; i < count; ++i) {
        Packet packet = test::random_packet(random);
        if (!test::append(out, packet, after_padding)) continue;
        after_padding = std::holds_alternative<Padding>(packet);
        if (packets != nullptr) packets->push_back(packet);
    }
    return out;
}

TEST(RoundTrip, ParseOfEncodeIsTheSame) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        wire::Random random(seed);
        std::vector<Packet> packets;
        const auto bytes = random_stream(random, 200, &packets);
        const auto got = collect(bytes);
        ASSERT_EQ(got.packets, packets);
        std::vector<std::uint8_t> again;
        for (const Packet& p : got.packets) encode(again, p);
        ASSERT_EQ(again, bytes);
        for (const Packet& p : packets) {
            const std::string text = std::visit([&](const auto& q) { return to_text(q); }, p);
            const auto scanned = from_text(text);
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
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        wire::Random random(seed);
        auto bytes = random_stream(random, 60);
        test::damage(random, bytes, static_cast<unsigned>(seed % 20));
        const auto whole = collect(bytes);
        expect_accounted(whole, bytes.size());
        std::vector<std::size_t> every(bytes.size());
        std::iota(every.begin(), every.end(), std::size_t{0});
        ASSERT_EQ(collect(bytes, every).items, whole.items);
        for (unsigned t = 0; t < 8; ++t) {
            std::vector<std::size_t> cuts;
            for (std::size_t at = random() % 24; at < bytes.size(); at += random() % 24) cuts.push_back(at);
            ASSERT_EQ(collect(bytes, cuts).items, whole.items);
        }
    }
}

TEST(Bytes, OfAnyKindAreAccountedFor) {
    wire::Random random(3);
    for (unsigned i = 0; i < 300; ++i) {
        std::vector<std::uint8_t> bytes(random() % 400);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 0x48 : random());
        expect_accounted(collect(bytes), bytes.size());
    }
}

TEST(Reset, ReportsWhatWasCut) {
    test::Collected got;
    test::Collector handler(got);
    Parser<test::Collector> parser(handler);
    parser.feed(hex("98 01"));
    parser.reset();
    parser.feed(hex("01 00 00"));
    parser.reset();
    parser.feed(hex("99 01 00"));
    parser.finish();
    EXPECT_EQ(got.text(),
              "0+2 GAP framing\n2+1 END\n3+2 PADDING bytes=2\n5+0 GAP framing\n5+3 COUNTER index=1 cycles=1\n");
}

struct StopAtEnd {
    bool ended = false;
    unsigned packets = 0;
    template <class P>
    void operator()(const P&, Extent) {
        ended = std::same_as<P, End> || std::same_as<P, Timestamp>;
        ++packets;
    }
    void operator()(const Gap&) {}
    [[nodiscard]] bool done() const { return ended; }
};

TEST(Done, StopsBehindThePacket) {
    StopAtEnd handler;
    Parser<StopAtEnd> parser(handler);
    const auto bytes = hex("98 01 00 71 00 00 00 00 00 00 00 00 99 01 00 01");
    EXPECT_EQ(parser.feed(Bytes(bytes).first(5)).size(), 0U);
    EXPECT_EQ(parser.feed(Bytes(bytes).subspan(5)).size(), 4U);
    EXPECT_EQ(parser.offset().value, 12U);
    EXPECT_EQ(handler.packets, 2U);
    handler.ended = false;
    EXPECT_EQ(parser.feed(Bytes(bytes).subspan(12)).size(), 0U);
    EXPECT_EQ(handler.packets, 4U);
}

}  // namespace
}  // namespace waymark::spe
