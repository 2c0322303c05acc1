// Bytes ↔ packets of STPv2 (docs/spec/stm.md).
#include "waymark/stm/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/wanted.h"
#include "waymark/protocol/adapters.h"
#include "waymark/stm/encoder.h"
#include "waymark/stm/parser.h"
#include "waymark/stm/protocol.h"
#include "waymark/stm/text.h"

namespace waymark::stm {
namespace {

using test::hex;

const Config plain{};
constexpr const char* sync_text = "ff ff ff ff ff ff ff ff ff ff 0f ";

struct Collector {
    template <class P>
    void operator()(const P& packet, Extent at) {
        EXPECT_EQ(at.first, end);
        end = at.end();
        text += to_text(packet) + "\n";
        meanings += explain(packet) + "\n";
        packets.push_back(packet);
    }
    void operator()(const Gap& gap) {
        EXPECT_EQ(gap.first, end);
        end = gap.end;
        explain(gap);
        text += "GAP " + std::string(name(gap.reason)) + " " + std::to_string(gap.bytes()) + "\n";
    }
    Explainer explain{plain};
    std::string text, meanings;
    std::vector<Packet> packets;
    Offset end{};
};

Collector parse(Bytes bytes, std::size_t chunk = 1000) {
    Collector out;
    Parser<Collector> parser(plain, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        parser.feed(bytes.subspan(at, std::min(chunk, bytes.size() - at)));
    parser.finish();
    EXPECT_EQ(out.end, Offset{bytes.size()});
    return out;
}

/// The packets after a synchronisation packet, in chunks of every size.
std::string after_sync(const std::string& text) {
    const auto bytes = hex((sync_text + text).c_str());
    const std::string whole = parse(bytes).text;
    for (std::size_t chunk = 1; chunk < 9; ++chunk) EXPECT_EQ(parse(bytes, chunk).text, whole) << text;
    EXPECT_TRUE(whole.starts_with("ASYNC ones=21\n")) << whole;
    return whole.substr(14);
}

TEST(StmPackets, AreThoseOfTheSpecification) {
    EXPECT_EQ(after_sync("0f 30 0f 08 21 f4 08 10 04"), "VERSION version=3\nFREQ value=0x124f800\nM8 value=0x40\n");
    EXPECT_EQ(after_sync("3f 40 08"), "C16 value=0x480\n");
    EXPECT_EQ(after_sync("ee 00 00 00 30 ea 2b 48 9c e0 d2 06"),
              "FLAG_TS timestamp=0x3aeb284c9/16\nNULL\nFLAG_TS timestamp=0xd6/2\nNULL\n");
    EXPECT_EQ(after_sync("a1 0b 1f 34 12"), "M8 value=0xab\nNULL\nM16 value=0x4321\n");
    EXPECT_EQ(after_sync("10 ba a3 fb 63 44 36 bb 01 3b aa"),
              "NULL\nM8 value=0xab\nC8 value=0xab\nC16 value=0x6446\nC8 value=0xbb\nM8 value=0xb\nC8 value=0xaa\n");
    EXPECT_EQ(after_sync("4f ba 1d 21 32 43 54 65 76 07"), "D8TS value=0xab timestamp=0x11223344556677/14\nNULL\n");
    EXPECT_EQ(after_sync("5f ba dc 13 22"), "D16TS value=0xabcd timestamp=0x122/3\n");
    EXPECT_EQ(after_sync("a8 eb 11 22 33 44 55 66 77 88"), "D8MTS value=0xab timestamp=0x1122334455667788/16\n");
    EXPECT_EQ(after_sync("12 f2 12 02"), "MERR value=0x12\nGERR value=0x12\nNULL\n");
    EXPECT_EQ(after_sync("0f 19 21 32 43 24 12"), "FREQ_TS value=0x11223344 timestamp=0x21/2\n");
}

TEST(StmPackets, AreWrittenAndReadAgainFromBothHalvesOfAByte) {
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < 20; ++round)
        OpcodePackets::for_each([&]<class P>() {
            P packet{};
            wire::Generator generator(random);
            P::fields(generator, packet);
            for (const bool odd : {false, true}) {
                std::vector<std::uint8_t> bytes;
                NibbleWriter writer(bytes);
                encode(writer, Async{});
                if (odd) encode(writer, Null{});
                encode(writer, packet);
                // The reading of the half byte at the end.
                const std::string rest = writer.half() ? "NULL\n" : "";
                const std::string text = to_text(packet);
                EXPECT_EQ(parse(bytes).text, "ASYNC ones=21\n" + std::string(odd ? "NULL\n" : "") + text + "\n" + rest);
            }
            const auto again = from_text(to_text(packet));
            ASSERT_TRUE(again.has_value()) << to_text(packet);
            EXPECT_EQ(*again, Packet(packet));
        });
    EXPECT_FALSE(from_text("ASYNC ones=20").has_value());
    EXPECT_FALSE(from_text("VERSION version=5").has_value());
    EXPECT_FALSE(from_text("D8TS value=0x1ff timestamp=0/0").has_value());
    EXPECT_FALSE(from_text("D8TS value=0xff timestamp=0x10/1").has_value());
    EXPECT_FALSE(from_text("D8TS value=0xff timestamp=0x10/13").has_value());
}

TEST(StmPackets, AreFoundAtAnyHalfOfAByteAndInAnyChunks) {
    std::mt19937_64 random(2);
    for (unsigned round = 0; round < 12; ++round) {
        std::vector<std::uint8_t> bytes;
        NibbleWriter writer(bytes);
        std::vector<Packet> sent;
        for (unsigned head = static_cast<unsigned>(random() % 40); head != 0; --head) writer.put(random() % 15, 1);
        encode(writer, Async{});
        for (unsigned i = 0; i < 30; ++i)
            OpcodePackets::for_each([&]<class P>() {
                if (random() % 16 != 0) return;
                P packet{};
                wire::Generator generator(random);
                P::fields(generator, packet);
                encode(writer, packet);
                sent.emplace_back(packet);
            });
        const Packet last = Async{21 + random() % 30};
        encode(writer, last);
        sent.push_back(last);
        const Collector whole = parse(bytes);
        ASSERT_GT(whole.packets.size(), sent.size());
        EXPECT_EQ(whole.packets.front(), Packet(Async{}));
        for (std::size_t i = 0; i < sent.size(); ++i) ASSERT_EQ(whole.packets[i + 1], sent[i]) << i;
        for (const std::size_t chunk : {1, 2, 3, 19}) EXPECT_EQ(parse(bytes, chunk).text, whole.text);
    }
}

TEST(StmPackets, EndAtDamageUpToTheNextSync) {
    // Reserved opcodes, a timestamp of an impossible size, an unknown version.
    for (const char* bad : {"0f 02", "0f 0a", "0f 0c", "0f 2f", "e0 0f", "4f 00 0f", "0f 50"}) {
        const std::string text = after_sync(std::string(bad) + " 12 34 56 ff ff ff ff ff ff ff ff ff ff 0f 41 00");
        EXPECT_NE(text.find("GAP "), std::string::npos) << bad << "\n" << text;
        EXPECT_NE(text.find("ASYNC ones=21\nM8 value=0x40"), std::string::npos) << bad << "\n" << text;
    }
    EXPECT_EQ(after_sync("0f 02 33 44 ff ff ff ff ff ff ff ff ff ff 0f 00"),
              "GAP reserved header 4\nASYNC ones=21\nNULL\nNULL\n");
    EXPECT_EQ(after_sync("0f 50 33 44 ff ff ff ff ff ff ff ff ff ff 0f 00"),
              "GAP malformed packet 4\nASYNC ones=21\nNULL\nNULL\n");
    // Twenty F and 0: no synchronisation.
    EXPECT_EQ(after_sync("ff ff ff ff ff ff ff ff ff ff 00 11 22"), "GAP malformed packet 13\n");
    // It begins directly after the first nibble of the damage, which has no byte of its own.
    EXPECT_EQ(after_sync("e0 ff ff ff ff ff ff ff ff ff ff 0f 00"), "NULL\nASYNC ones=21\nNULL\nNULL\n");
}

TEST(StmPackets, GoOnAtASyncWhoseBeginABrokenPacketTook) {
    // The data of a D64 were lost: the packet takes 16 of the F.
    EXPECT_EQ(after_sync("70 ff ff ff ff ff ff ff ff ff ff 0f 10 04"),
              "NULL\nD64 value=0xffffffffffffffff\nGAP malformed packet 3\nNULL\nM8 value=0x40\n");
}

TEST(StmPackets, ThatAreCutAreGaps) {
    EXPECT_EQ(after_sync("a6 bb cc"), "GAP incomplete packet 3\n");
    EXPECT_EQ(after_sync("10 04 60"), "NULL\nM8 value=0x40\nNULL\nGAP incomplete packet 0\n");
    EXPECT_EQ(after_sync("ff ff ff"), "GAP incomplete packet 3\n");
    EXPECT_EQ(parse(hex("12 34 ff ff")).text, "GAP unsynchronised 4\n");
}

TEST(StmPackets, MeanTimesInBinaryAndInGrayCode) {
    const auto times = [](std::uint8_t version, const std::vector<Stamp>& stamps) {
        SourceState state{plain};
        if (version != 0) state.see(VersionPacket{version});
        std::vector<std::uint64_t> out;
        for (const Stamp& stamp : stamps) {
            state.see(FlagTimed{{stamp}});
            out.push_back(state.time().value_or(~std::uint64_t{0}));
        }
        return out;
    };
    using Times = std::vector<std::uint64_t>;
    EXPECT_EQ(times(3, {{0x11223344556677, 14}, {0x122, 3}, {0, 0}, {5, 1}}),
              (Times{0x11223344556677, 0x11223344556122, 0x11223344556122, 0x11223344556125}));
    // Gray code of 5 is 7, of 6 is 5, of 8 is 12, of 0x10 is 0x18.
    EXPECT_EQ(times(4, {{7, 16}, {5, 1}, {12, 1}, {0x18, 2}, {0x9, 1}}), (Times{5, 6, 8, 0x10, 0x11}));
    EXPECT_EQ(times(4, {{~std::uint64_t{0}, 16}}), (Times{0xaaaaaaaaaaaaaaaa}));
    EXPECT_EQ(times(0, {{7, 16}}), (Times{~std::uint64_t{0}}));
    EXPECT_EQ(times(2, {{7, 16}}), (Times{~std::uint64_t{0}}));
}

TEST(StmPackets, NameMasterAndChannel) {
    SourceState state{plain};
    EXPECT_FALSE(state.master());
    state.see(Channel8{{3}});
    EXPECT_FALSE(state.channel()) << "the upper bits are not known";
    state.see(Channel16{{0x480}});
    state.see(Channel8{{3}});
    EXPECT_EQ(state.channel(), 0x403U);
    state.see(Master16{{0x4321}});
    EXPECT_EQ(state.master(), 0x4321U);
    EXPECT_EQ(state.channel(), 0U);
    state.see(Channel8{{3}});
    state.see(MasterError{{1}});
    EXPECT_EQ(state.master(), 0x4321U);
    EXPECT_EQ(state.channel(), 0U);
    state.see(VersionPacket{3});
    EXPECT_EQ(state.master(), 0U);
    state.see(GlobalError{{1}});
    EXPECT_FALSE(state.master());
    state.see(Master8{{4}});
    state.see(Gap{{}, {}, GapReason::malformed_packet});
    EXPECT_FALSE(state.master());
    EXPECT_FALSE(state.exact());
    state.see(FlagTimed{{{5, 16}}});
    EXPECT_FALSE(state.exact() && !state.version());
}

// A second parser, nibble by nibble, written from the tables of sections 2 and 4: the nibbles of each packet.
std::string plain_parse(Bytes bytes) {
    std::string nibbles;
    for (const std::uint8_t byte : bytes) {
        nibbles += "0123456789abcdef"[byte & 15];
        nibbles += "0123456789abcdef"[byte >> 4];
    }
    struct Row {
        const char* opcode;
        std::size_t data;
        bool timed;
    };
    const std::vector<Row> rows{
        {"0", 0, false},   {"1", 2, false},     {"2", 2, false},    {"3", 2, false},   {"4", 2, false},
        {"5", 4, false},   {"6", 8, false},     {"7", 16, false},   {"8", 2, true},    {"9", 4, true},
        {"a", 8, true},    {"b", 16, true},     {"c", 1, false},    {"d", 1, true},    {"e", 0, true},
        {"f00", 1, false}, {"f01", 0, true},    {"f06", 2, false},  {"f07", 2, true},  {"f08", 8, false},
        {"f09", 8, true},  {"f0f0", 10, false}, {"f0f1", 10, true}, {"f1", 4, false},  {"f2", 2, false},
        {"f3", 4, false},  {"f4", 2, true},     {"f5", 4, true},    {"f6", 8, true},   {"f7", 16, true},
        {"f8", 2, false},  {"f9", 4, false},    {"fa", 8, false},   {"fb", 16, false}, {"fc", 1, true},
        {"fd", 1, false},  {"fe", 0, false}};
    std::string out;
    std::size_t at = 0;
    bool synced = false;
    while (at < nibbles.size()) {
        if (!synced) {
            // The first 0 after 21 F.
            std::size_t end = at;
            for (;; ++end) {
                end = nibbles.find('0', end);
                if (end == std::string::npos) return out;
                if (end >= 21 && nibbles.compare(end - 21, 21, std::string(21, 'f')) == 0) break;
            }
            if (end - 21 >= at) out += "ASYNC ";
            at = end + 1;
            synced = true;
            continue;
        }
        if (nibbles.compare(at, 2, "ff") == 0) {
            const std::size_t end = nibbles.find_first_not_of('f', at);
            if (end == std::string::npos) return out;
            if (nibbles[end] == '0' && end - at >= 21) {
                out += "ASYNC ";
                at = end + 1;
            } else {
                synced = false;
            }
            continue;
        }
        const auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
            return nibbles.compare(at, std::string(r.opcode).size(), r.opcode) == 0;
        });
        if (row == rows.end()) {
            if (std::string("f0f").starts_with(nibbles.substr(at))) return out;
            synced = false;
            continue;
        }
        std::size_t end = at + std::string(row->opcode).size() + row->data;
        const bool version = std::string(row->opcode) == "f00";
        if (version && end <= nibbles.size() && std::string("1234").find(nibbles[end - 1]) == std::string::npos) {
            synced = false;
            continue;
        }
        if (row->timed) {
            if (end >= nibbles.size()) return out;
            const char size = nibbles[end];
            if (size == 'f') {
                synced = false;
                continue;
            }
            end += 1 + (size == 'd' ? 14 : size == 'e' ? 16 : std::string("0123456789abc").find(size));
        }
        if (end > nibbles.size()) return out;
        out += nibbles.substr(at, end - at) + " ";
        at = end;
    }
    return out;
}

struct Digits {
    std::string out;
    void operator()(const Async&, Extent) { out += "ASYNC "; }
    template <class P>
    void operator()(const P& packet, Extent) {
        std::vector<std::uint8_t> bytes;
        NibbleWriter writer(bytes);
        encode(writer, packet);
        std::string digits;
        for (const std::uint8_t byte : bytes) {
            digits += "0123456789abcdef"[byte & 15];
            digits += "0123456789abcdef"[byte >> 4];
        }
        if (writer.half()) digits.pop_back();
        out += digits + " ";
    }
    void operator()(const Gap&) {}
};

TEST(StmPackets, OfRandomBytesAreThoseOfAPlainParser) {
    std::mt19937_64 random(3);
    for (unsigned round = 0; round < wanted(300); ++round) {
        std::vector<std::uint8_t> bytes;
        NibbleWriter writer(bytes);
        for (unsigned part = 0; part < 6; ++part) {
            if (random() % 2 == 0)
                for (std::size_t ones = 10 + random() % 16; ones != 0; --ones) writer.put(0xf, 1);
            if (random() % 2 == 0) writer.put(0, 1);
            for (std::size_t some = random() % 40; some != 0; --some)
                writer.put(random() % 4 == 0 ? 0xf : random() % 16, 1);
        }
        Digits found;
        Parser<Digits> parser(plain, found);
        const std::size_t chunk = 1 + random() % 9;
        for (std::size_t at = 0; at < bytes.size(); at += chunk)
            parser.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
        parser.finish();
        ASSERT_EQ(found.out, plain_parse(bytes)) << round;
        parse(bytes, chunk);
    }
}

TEST(StmRow, RecognisesAStreamAndNoErasedMemory) {
    std::vector<protocol::Stretch> stretches(1);
    stretches[0].bytes = hex("12 34 ff ff ff ff ff ff ff ff ff ff 0f 0f 30 14 f4 4a 11 11 11 11 01 00 00 00");
    protocol::Identity identity;
    ASSERT_TRUE(row().identify(stretches, identity));
    EXPECT_EQ(identity.first_sync, Offset{2});
    EXPECT_EQ(identity.facts.front().value, "binary");
    stretches[0].bytes.assign(100, 0xff);
    stretches[0].bytes.resize(200, 0);
    EXPECT_FALSE(row().identify(stretches, identity));
}

}  // namespace
}  // namespace waymark::stm
