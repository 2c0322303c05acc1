// Bytes ↔ packets of ITM and DWT (docs/spec/itm.md).
#include "waymark/itm/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/wanted.h"
#include "waymark/itm/encoder.h"
#include "waymark/itm/parser.h"
#include "waymark/itm/protocol.h"
#include "waymark/itm/text.h"
#include "waymark/protocol/adapters.h"

namespace waymark::itm {
namespace {

using test::hex;

const Config plain{};

struct Collector {
    explicit Collector(const Config& config) : explain(config) {}
    template <class P>
    void operator()(const P& packet, Extent at) {
        EXPECT_EQ(at.first, end);
        end = at.end();
        text += to_text(packet) + "\n";
        meanings += explain(packet) + "\n";
        encode(again, packet);
    }
    void operator()(const Gap& gap) {
        EXPECT_EQ(gap.first, end);
        end = gap.end;
        explain(gap);
        text += "GAP " + std::string(name(gap.reason)) + " " + std::to_string(gap.bytes()) + "\n";
    }
    Explainer explain;
    std::string text, meanings;
    std::vector<std::uint8_t> again;
    Offset end{};
};

Collector parse(Bytes bytes, const Config& config, std::size_t chunk = 1000) {
    Collector out(config);
    Parser<Collector> parser(config, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        parser.feed(bytes.subspan(at, std::min(chunk, bytes.size() - at)));
    parser.finish();
    EXPECT_EQ(out.end, Offset{bytes.size()});
    return out;
}

struct Vector {
    const char* bytes;
    const char* text;
    const char* meaning;
};
// Section 5 of docs/spec/itm.md; vectors after the blank line are derived from 1 and 2.
const Vector vectors[] = {
    {"19 bb", "STIMULUS port=3 size=1 data=0xbb", "port 3"},
    {"0a 45 23", "STIMULUS port=1 size=2 data=0x2345", "port 1"},
    {"0b 23 01 89 67", "STIMULUS port=1 size=3 data=0x67890123", "port 1"},
    {"20", "SHORT-TIMESTAMP delta=2", "at 2 cycles"},
    {"d0 0d", "LOCAL-TIMESTAMP relation=1 delta=0xd/1", "at 13 cycles, sent late"},
    {"c0 82 c8 04", "LOCAL-TIMESTAMP relation=0 delta=0x12402/3", "at 74754 cycles"},
    {"f0 de fe d0 3a", "LOCAL-TIMESTAMP relation=3 delta=0x7543f5e/4", "at 122961758 cycles, both sent late"},
    {"05 15", "HARDWARE-SOURCE discriminator=0 size=1 data=0x15", "wrapped: CPI, SLEEP, FOLD"},
    {"0e 04 10", "HARDWARE-SOURCE discriminator=1 size=2 data=0x1004", "exception 4 entered"},
    {"0e 23 21", "HARDWARE-SOURCE discriminator=1 size=2 data=0x2123", "exception 291 (IRQ 275) left"},
    {"0e 03 30", "HARDWARE-SOURCE discriminator=1 size=2 data=0x3003", "exception 3 returned to"},
    {"0e 00 30", "HARDWARE-SOURCE discriminator=1 size=2 data=0x3000", "thread returned to"},
    {"17 00 10 00 00", "HARDWARE-SOURCE discriminator=2 size=3 data=0x1000", "PC 0x00001000"},
    {"15 00", "HARDWARE-SOURCE discriminator=2 size=1 data=0", "sleeping"},
    {"1d 04", "HARDWARE-SOURCE discriminator=3 size=1 data=4", "PMU counters overflowed: 0x04"},
    {"95 44", "HARDWARE-SOURCE discriminator=0x12 size=1 data=0x44", "comparator 1: read 0x44"},
    {"86 66 55", "HARDWARE-SOURCE discriminator=0x10 size=2 data=0x5566", "comparator 0: read 0x5566"},
    {"8d 11", "HARDWARE-SOURCE discriminator=0x11 size=1 data=0x11", "comparator 0: wrote 0x11"},
    {"af 77 66 55 44", "HARDWARE-SOURCE discriminator=0x15 size=3 data=0x44556677", "comparator 2: wrote 0x44556677"},
    {"4e 14 10", "HARDWARE-SOURCE discriminator=9 size=2 data=0x1014", "comparator 0: address …1014"},
    {"57 8c 02 00 08", "HARDWARE-SOURCE discriminator=0xa size=3 data=0x800028c", "comparator 1: PC 0x0800028c"},
    {"37 00 20 00 00", "HARDWARE-SOURCE discriminator=6 size=3 data=0x2000", "reserved"},
    {"28 52 45 23", "EXTENSION more=0 low=2 hardware=0\nSTIMULUS port=0xa size=2 data=0x2345", "page 2\nport 74"},
    {"94 d6 e8 c8 07 b4 93 98 a0 a0 80 00", "GLOBAL-TIMESTAMP-1 bits=0xf23456/4\nGLOBAL-TIMESTAMP-2 high=0x4080c13/6",
     "global time not known yet\nglobal time 4538991448831062"},
    {"b4 96 9a 92 00", "GLOBAL-TIMESTAMP-2 high=0x48d16/4", "global time 20016023994368"},
    {"70", "OVERFLOW", "packets were lost before it"},
    {"00 00 00 00 00 00 80", "SYNC zeros=6", ""},

    {"88 81 82 83 04", "EXTENSION more=1 low=0 hardware=0 high=0x80c101/4", "reserved"},
    {"45 01", "HARDWARE-SOURCE discriminator=8 size=1 data=1", "comparator 0: match"},
    {"15 ff", "HARDWARE-SOURCE discriminator=2 size=1 data=0xff", "sampling is not permitted"},
};

TEST(ItmPackets, AreReadAsTheSpecificationHasThem) {
    for (const Vector& v : vectors) {
        const std::vector<std::uint8_t> bytes = hex(v.bytes);
        for (const std::size_t chunk : {1U, 2U, 3U, 100U}) {
            const Collector found = parse(bytes, plain, chunk);
            EXPECT_EQ(found.text, std::string(v.text) + "\n") << v.bytes;
            EXPECT_EQ(found.again, bytes) << v.bytes;
            EXPECT_EQ(found.meanings, std::string(v.meaning) + "\n") << v.bytes;
        }
    }
}

TEST(ItmPackets, AreReadBeforeTheFirstSyncToo) {
    const auto bytes = hex("01 41 00 00 00 00 00 80 01 42 04 01 43 01 44 00 00 00 00 00 80 01 45 03 01");
    EXPECT_EQ(parse(bytes, plain).text,
              "STIMULUS port=0 size=1 data=0x41\nSYNC zeros=5\nSTIMULUS port=0 size=1 data=0x42\n"
              "GAP reserved header 1\nSTIMULUS port=0 size=1 data=0x43\nSTIMULUS port=0 size=1 data=0x44\n"
              "SYNC zeros=5\nSTIMULUS port=0 size=1 data=0x45\nGAP incomplete packet 2\n");
}

TEST(ItmPackets, AfterAnOverflowGiveLowerBoundsOfTheTime) {
    EXPECT_EQ(parse(hex("20 70 30"), plain).meanings, "at 2 cycles\npackets were lost before it\nat least 5 cycles\n");
    EXPECT_EQ(parse(hex("20 04 30"), plain).meanings, "at 2 cycles\nat least 5 cycles\n");
}

TEST(ItmPackets, AreConfirmedBetweenASyncAndDamage) {
    SourceState state{plain};
    EXPECT_FALSE(state.confirmed());
    state.see(Sync{});
    EXPECT_TRUE(state.confirmed());
    state.see(Gap{{}, {}, GapReason::padding});
    EXPECT_TRUE(state.confirmed());
    state.see(Gap{{}, {}, GapReason::reserved_header});
    EXPECT_FALSE(state.confirmed());
}

TEST(ItmPackets, OfAStreamWithoutSyncsGoOnAtTheNextByte) {
    const auto bytes = hex("01 41 04 14 01 42 01 46 00 00 01 43 c0 ff ff ff ff 01 00 00");
    EXPECT_EQ(parse(bytes, plain).text,
              "STIMULUS port=0 size=1 data=0x41\nGAP unsynchronised 2\nSTIMULUS port=0 size=1 data=0x42\n"
              "STIMULUS port=0 size=1 data=0x46\n"
              "GAP malformed packet 2\nSTIMULUS port=0 size=1 data=0x43\nGAP malformed packet 1\n"
              "HARDWARE-SOURCE discriminator=0x1f size=3 data=0x1ffffff\nGAP padding 2\n");
}

// A second parser, one byte at a time, written from section 1 alone.
std::string plain_parse(Bytes bytes) {
    std::string out;
    std::size_t at = 0, lost = 0;
    while (at < bytes.size()) {
        std::size_t zeros = 0;
        while (at + zeros < bytes.size() && bytes[at + zeros] == 0) ++zeros;
        std::size_t length = 0;
        if (zeros != 0) {
            if (at + zeros == bytes.size()) break;
            if (zeros >= 5 && bytes[at + zeros] == 0x80)
                length = zeros + 1;
            else
                lost += zeros, at += zeros;
        } else {
            const unsigned h = bytes[at];
            const std::size_t left = bytes.size() - at;
            const auto sevens = [&](std::size_t least, std::size_t most, bool even) {
                for (std::size_t n = 1; n <= most; ++n) {
                    if (n >= left) return std::size_t{0};
                    if ((bytes[at + n] & 0x80U) == 0)
                        return n < least || (even && n % 2 != 0) ? std::size_t{99} : n + 1;
                }
                return std::size_t{99};
            };
            std::size_t n = 99;
            if ((h & 3U) != 0)
                n = 1 + ((h & 3U) == 3 ? 4 : h & 3U);
            else if (h == 0x70 || (h & 0x8fU) == 0)
                n = 1;
            else if ((h & 0xcfU) == 0xc0 || h == 0x94)
                n = sevens(1, 4, false);
            else if (h == 0xb4)
                n = sevens(4, 6, true);
            else if ((h & 0x0bU) == 8)
                n = (h & 0x80U) == 0 ? 1 : sevens(1, 4, false);
            if (n == 0 || (n != 99 && n > left)) break;
            if (n == 99)
                ++lost, ++at;
            else
                length = n;
        }
        if (length == 0) continue;
        out += std::to_string(lost) + "+" + std::to_string(length) + " ";
        lost = 0;
        at += length;
    }
    return out;
}

struct Lengths {
    std::string out;
    std::uint64_t lost = 0;
    void operator()(const auto&, Extent at) {
        out += std::to_string(lost) + "+" + std::to_string(at.bytes) + " ";
        lost = 0;
    }
    void operator()(const Gap& gap) { lost += gap.bytes(); }
};

TEST(ItmPackets, OfRandomBytesAreThoseOfAPlainParser) {
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < wanted(2000); ++round) {
        std::vector<std::uint8_t> bytes(1 + random() % 60);
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? random() % 2 * 0x80 : random());
        Lengths found;
        Parser<Lengths> parser(plain, found);
        const std::size_t chunk = 1 + random() % 9;
        for (std::size_t at = 0; at < bytes.size(); at += chunk)
            parser.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
        EXPECT_EQ(found.out, plain_parse(bytes));
    }
}

TEST(ItmPackets, AreWrittenAndReadAgain) {
    std::mt19937_64 random(1);
    for (unsigned i = 0; i < 500; ++i)
        Packets::for_each([&]<class P>() {
            P packet{};
            wire::Generator generator(random);
            P::fields(generator, packet);
            if (!generator.possible()) return;
            std::vector<std::uint8_t> bytes;
            encode(bytes, packet);
            const std::string text = to_text(packet);
            EXPECT_EQ(parse(bytes, plain).text, text + "\n");
            const auto again = from_text(text);
            ASSERT_TRUE(again.has_value()) << text;
            EXPECT_EQ(*again, Packet(packet));
        });
}

TEST(ItmRow, RecognisesAStreamWithoutSyncsAndNoOther) {
    std::vector<protocol::Stretch> stretches(1);
    for (unsigned i = 0; i < 8; ++i)
        for (const std::uint8_t byte : hex("17 18 02 00 08 0e 2c 10 0e 2c 20 0e 00 30 01 4f"))
            stretches[0].bytes.push_back(byte);
    protocol::Identity identity;
    ASSERT_TRUE(row().identify(stretches, identity));
    ASSERT_FALSE(identity.facts.empty());
    EXPECT_EQ(identity.facts.front().value, "no");
    for (std::uint8_t& byte : stretches[0].bytes) byte = static_cast<std::uint8_t>(byte * 7 + 3);
    EXPECT_FALSE(row().identify(stretches, identity));
}

}  // namespace
}  // namespace waymark::itm
