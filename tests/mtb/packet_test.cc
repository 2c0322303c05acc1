// Bytes ↔ packets (docs/spec/mtb.md, 1), by the vectors of section 7.
#include "waymark/mtb/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "waymark/mtb/encoder.h"
#include "waymark/mtb/parser.h"
#include "waymark/mtb/text.h"

namespace waymark::mtb {
namespace {

struct Listed {
    std::vector<JumpPacket> packets;
    std::string text;
    Explainer explain{Config{}};
    Offset end{};
    void operator()(const JumpPacket& packet, Extent at) {
        EXPECT_EQ(at.first, end);
        end = at.end();
        packets.push_back(packet);
        text += to_text(packet) + ": " + explain(packet) + "\n";
    }
    void operator()(const Gap& gap) {
        EXPECT_EQ(gap.first, end);
        end = gap.end;
        explain(gap);
        text += "GAP " + std::string(waymark::name(gap.reason)) + " " + std::to_string(gap.bytes()) + "\n";
    }
};
Listed list(const std::vector<std::uint8_t>& bytes, std::size_t chunk = 1000) {
    Listed out;
    Parser<Listed> parser({}, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        parser.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
    parser.finish();
    EXPECT_EQ(out.end, Offset{bytes.size()});
    return out;
}

TEST(MtbPackets, AreReadAsTheSpecificationHasThem) {
    const std::vector<std::uint8_t> bytes{
        0x46, 0x01, 0,    0,    0xd9, 0,    0,    0,     // 1: the first packet after the start
        0xf7, 0,    0,    0,    0x70, 0,    0,    0,     // 2: exception
        0x78, 0,    0,    0,    0xf8, 0xff, 0xff, 0xff,  // 3: a return begins
        0xf9, 0xff, 0xff, 0xff, 0xf6, 0,    0,    0,     // 4: it ends
        0xd0, 0,    0,    0,    0xc0, 0,    0,    0,     // 5: a branch
        0x7a, 0x9c, 0,    0,    0x7e, 0x9c, 0,    0,     // 13: an ISB
        0x0d, 0x01, 0,    0,    0xfe, 0xff, 0xff, 0xff,  // lockup
        0,    0,    0,    0,    0,    0,    0,    0,     //
        0x01, 0x02, 0x03,
    };
    const std::string expected =
        "JUMP source=0x146 destination=0xd8,S: tracing starts: 0x146 went to 0xd8\n"
        "JUMP source=0xf6,A destination=0x70: exception, or moved by a debugger, before 0xf6: at 0x70\n"
        "JUMP source=0x78 destination=0xfffffff8: a return with 0xfffffff9 begins\n"
        "JUMP source=0xfffffff8,A destination=0xf6: returned to 0xf6, or the next exception began\n"
        "JUMP source=0xd0 destination=0xc0: 0xd0 went to 0xc0\n"
        "JUMP source=0x9c7a destination=0x9c7e: 0x9c7a went to 0x9c7e\n"
        "JUMP source=0x10c,A destination=0xfffffffe: lockup\n"
        "GAP padding 8\n"
        "GAP incomplete packet 3\n";
    for (const std::size_t chunk : {1U, 3U, 8U, 13U, 1000U}) EXPECT_EQ(list(bytes, chunk).text, expected);
}

TEST(MtbPackets, AreWrittenAndReadAgain) {
    std::mt19937_64 random(1);
    for (unsigned i = 0; i < 2000; ++i) {
        JumpPacket packet;
        wire::Generator generator(random);
        JumpPacket::fields(generator, packet);
        if (packet == JumpPacket{}) continue;
        std::vector<std::uint8_t> bytes;
        encode(bytes, packet);
        EXPECT_EQ(list(bytes).packets, std::vector<JumpPacket>{packet});
        const auto again = from_text(to_text(packet));
        ASSERT_TRUE(again.has_value()) << to_text(packet);
        EXPECT_EQ(std::get<JumpPacket>(*again), packet);
    }
    EXPECT_FALSE(from_text("JUMP source=0x147 destination=0xd8").has_value());
    EXPECT_FALSE(from_text("JUMP source=0x146,S destination=0xd8").has_value());
}

}  // namespace
}  // namespace waymark::mtb
