// The place of packets in a dump, and the oldest one (docs/spec/mtb.md, 2 and 4).
#include "waymark/mtb/arrangement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/mtb/encoder.h"

namespace waymark::mtb {
namespace {

using Pieces = std::vector<protocol::Arrangement::Piece>;

/// A loop of packets: each goes back to the place where the code to the next packet's branch begins; addresses increase
/// from packet to packet.
std::vector<std::uint8_t> loop(std::size_t packets, std::uint32_t first = 0x1000) {
    std::vector<std::uint8_t> out;
    for (std::uint32_t i = 0; i < packets; ++i)
        encode(out, {{first + 0x40 * i, false}, {first + 0x40 * i + 0x20, false}});
    return out;
}
std::vector<std::uint8_t> rotated(std::vector<std::uint8_t> bytes, std::size_t by) {
    std::rotate(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(by), bytes.end());
    return bytes;
}
std::string texts(const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& text : all) out += text + "\n";
    return out;
}

TEST(MtbArrangement, ThePointerOfAWrappedBufferIsAtTheOldestPacket) {
    // Vector 15.
    const auto found = arrange(loop(16), {.position = 0x3cc, .master = 0x3});
    EXPECT_EQ(found.pieces, (Pieces{{0x48, 0x38}, {0, 0x48}}));
    EXPECT_EQ(texts(found.problems), "");
    EXPECT_TRUE(found.wrapped);
}

TEST(MtbArrangement, PacketsBehindThePointerOfABufferThatDidNotWrapAreOld) {
    // Vector 16.
    auto bytes = loop(25);
    bytes.resize(1024);
    const Config config{.position = 0x4c8, .master = 0x6};
    auto found = arrange(bytes, config);
    EXPECT_EQ(found.pieces, (Pieces{{0, 200}}));
    EXPECT_EQ(texts(found.problems), "");
    EXPECT_FALSE(found.wrapped);
    EXPECT_EQ(found.ends, "");
    bytes[300] = 1;
    found = arrange(bytes, config);
    EXPECT_EQ(found.pieces, (Pieces{{0, 200}}));
    EXPECT_NE(texts(found.problems).find("1 packet behind the pointer (offset 0xc8) is no trace of this run"),
              std::string::npos)
        << texts(found.problems);
}

TEST(MtbArrangement, TheBufferIsABlockOfTheWholeMemory) {
    std::vector<std::uint8_t> memory(0x2000, 0x55);
    const auto at = [&](std::size_t offset) {
        const auto bytes = rotated(loop(128), 0xc8);
        std::copy(bytes.begin(), bytes.end(), memory.begin() + static_cast<std::ptrdiff_t>(offset));
        return memory;
    };
    const Config config{.position = 0x4cc, .master = 0x6, .base = 0x20000000};
    EXPECT_EQ(arrange(at(0x400), config).pieces, (Pieces{{0x4c8, 0x338}, {0x400, 0xc8}}));
    // The base is not a multiple of the size of the memory, and POINTER has the low bits of the address.
    memory.assign(0x2000, 0x55);
    const Config kinetis{.position = 0xcc | 0x1400, .master = 0x6, .base = 0x1ffff000};
    EXPECT_EQ(arrange(at(0x400), kinetis).pieces, (Pieces{{0x4c8, 0x338}, {0x400, 0xc8}}));
    // Nothing shows the place: the block whose packets fit each other.
    const auto found = arrange(at(0x400), {.master = 0x6});
    EXPECT_EQ(found.pieces, (Pieces{{0x4c8, 0x338}, {0x400, 0xc8}}));
    EXPECT_EQ(found.problems.size(), 2U);
}

TEST(MtbArrangement, WithoutThePointerTheSeamIsWhereAPacketCannotFollow) {
    auto found = arrange(rotated(loop(16), 24), {});
    EXPECT_EQ(found.pieces, (Pieces{{24, 104}, {0, 24}}));
    EXPECT_NE(texts(found.problems).find("MTB_POSITION is not given; the oldest packet is taken to be at offset 0x18"),
              std::string::npos);
    // All packets are equal: no seam.
    std::vector<std::uint8_t> same;
    for (unsigned i = 0; i < 16; ++i) encode(same, {{0xd0, false}, {0xc0, false}});
    found = arrange(same, {});
    EXPECT_EQ(found.pieces, (Pieces{{0, 128}}));
    EXPECT_NE(texts(found.problems).find("which is the oldest is not known"), std::string::npos);
    // Zeros after the packets: the buffer did not wrap.
    auto part = loop(5);
    part.resize(128);
    found = arrange(part, {});
    EXPECT_EQ(found.pieces, (Pieces{{0, 128}}));
    EXPECT_FALSE(found.wrapped);
}

TEST(MtbArrangement, ZerosBehindTheLastPacketShowWhereTheBufferEnds) {
    auto bytes = loop(25);
    EXPECT_EQ(written_packets(bytes), std::nullopt) << "it is full";
    bytes.resize(256);
    EXPECT_EQ(written_packets(bytes), 25u);
    std::fill_n(bytes.begin() + 80, 8, std::uint8_t{0});
    EXPECT_EQ(written_packets(bytes), std::nullopt);
    EXPECT_EQ(written_packets(bytes, true), 25u);
    EXPECT_EQ(written_packets(std::vector<std::uint8_t>(64)), std::nullopt);
}

TEST(MtbArrangement, SaysWhatDoesNotFit) {
    // A dump that was cut: the missing part lies between the two pieces.
    auto found = arrange(loop(12), {.position = 0x4c, .master = 0x3});
    EXPECT_EQ(found.pieces, (Pieces{{0x48, 0x18}, {0, 0x48, true}}));
    EXPECT_NE(texts(found.problems).find("the dump is cut"), std::string::npos);
    // A mask beyond the memory acts as the largest.
    found = arrange(loop(16), {.position = 0x4c, .master = 0x1f});
    EXPECT_EQ(found.pieces, (Pieces{{0x48, 0x38}, {0, 0x48}}));
    // Stopped at the watermark.
    found = arrange(loop(16), {.position = 0x40, .master = 0x3, .flow = 0x41});
    EXPECT_EQ(found.ends, "at the watermark (MTB_FLOW)");
    // Vector 18: tracing was on.
    found = arrange(loop(16), {.position = 0x44, .master = 0x80000003});
    EXPECT_NE(texts(found.problems).find("tracing was on while the memory was copied"), std::string::npos);
    found = arrange(Bytes(loop(2)).first(13), {});
    EXPECT_NE(texts(found.problems).find("ends inside a packet"), std::string::npos);
    EXPECT_TRUE(arrange({}, {}).pieces.empty());
}

}  // namespace
}  // namespace waymark::mtb
