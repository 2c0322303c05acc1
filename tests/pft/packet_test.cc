/// Byte vectors for every packet × configuration, from docs/spec/pft.md: independent evidence for the packet
/// descriptions, which round trips cannot give.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

#include "pft/support.h"

namespace waymark::pft {
namespace {

using test::collect;
using test::hex;

Config cycle_accurate() {
    Config c;
    c.cycle_accurate = true;
    return c;
}
Config context(std::uint8_t bytes, bool ca = false) {
    Config c;
    c.context_id_bytes = bytes;
    c.cycle_accurate = ca;
    return c;
}
Config timestamp(std::uint8_t bytes, bool ca = false) {
    Config c;
    c.timestamp_bytes = bytes;
    c.cycle_accurate = ca;
    return c;
}
const Config plain{};
const Config ca = cycle_accurate();

struct Vector {
    const char* section;
    Config config;
    const char* bytes;
    const char* text;
    bool captured = false;  ///< seen in a capture of real hardware, not only derived from the text
};

const Vector vectors[] = {
    {"2.2", plain, "00 00 00 00 00 80", "A-SYNC zeros=5", true},
    {"2.2", plain, "00 00 00 00 00 00 00 80", "A-SYNC zeros=7"},
    {"2.2", ca, "00 00 00 00 00 80", "A-SYNC zeros=5", true},

    // Atoms: the oldest is the most significant atom bit.
    {"2.4", plain, "84", "ATOM atoms=E", true},
    {"2.4", plain, "86", "ATOM atoms=N", true},
    {"2.4", plain, "88", "ATOM atoms=EE", true},
    {"2.4", plain, "9c", "ATOM atoms=NNE", true},
    {"2.4", plain, "a2", "ATOM atoms=EEEN"},
    {"2.4", plain, "bc", "ATOM atoms=NNNE"},
    {"2.4", plain, "e2", "ATOM atoms=NEEEN", true},
    {"2.4", plain, "d2", "ATOM atoms=ENEEN", true},
    {"2.4", plain, "fe", "ATOM atoms=NNNNN"},
    {"2.4", plain, "c0", "ATOM atoms=EEEEE"},
    {"2.4", ca, "80", "ATOM atom=E+0"},
    {"2.4", ca, "82", "ATOM atom=N+0"},
    {"2.4", ca, "90", "ATOM atom=E+4"},
    {"2.3", ca, "e8 20", "ATOM atom=E+522", true},
    {"2.3", ca, "fe ff ff ff 7f", "ATOM atom=N+4294967295"},

    // Branch addresses.
    {"2.5", plain, "2f", "BRANCH-ADDRESS target=0x17/1", true},
    {"2.5", plain, "ad 05", "BRANCH-ADDRESS target=0x156/2", true},
    {"2.5", plain, "fd 9e 80 80 18", "BRANCH-ADDRESS target=0x80000f7c/5/T32", true},
    {"2.5", plain, "81 80 80 80 48 02", "BRANCH-ADDRESS target=0/5/A32+info C=0 AltISA=0 exception[3:0]=1 NS=0", true},
    {"2.5", ca, "8d 80 fe ff 4f 1d 3c",
     "BRANCH-ADDRESS target=0xffff0018/5/A32+info C=0 AltISA=0 exception[3:0]=0xe NS=1 cycles=15", true},
    {"2.5", ca, "2f 68 17", "BRANCH-ADDRESS target=0x17/1 cycles=378"},
    {"2.5", plain, "81 80 01", "BRANCH-ADDRESS target=0x2000/3"},
    {"2.5", plain, "81 80 80 01", "BRANCH-ADDRESS target=0x100000/4"},
    {"2.5", plain, "83 80 80 80 20", "BRANCH-ADDRESS target=1/5/Jazelle"},
    {"2.5", plain, "ff ff ff ff 3f", "BRANCH-ADDRESS target=0xffffffff/5/Jazelle"},
    {"2.5", plain, "81 40 41", "BRANCH-ADDRESS target=0/2+info C=0 AltISA=1 exception[3:0]=0 NS=1"},
    {"2.5", plain, "81 80 80 80 58 81 25",
     "BRANCH-ADDRESS target=0x80000000/5/T32+info C=1 AltISA=0 exception[3:0]=0 NS=1 HYP=1 exception[8:4]=5"},

    // I-sync: the cycle count precedes the Context ID, bit 7 of its first byte is set, and periodic I-syncs have no
    // count.
    {"2.6", plain, "08 54 05 00 80 61", "I-SYNC address[31:1]=0x400002aa T=0 reason=3 NS=0 AltISA=0 HYP=0", true},
    {"2.6", plain, "08 7d 0f 00 80 01", "I-SYNC address[31:1]=0x400007be T=1 reason=0 NS=0 AltISA=0 HYP=0", true},
    {"2.6", ca, "08 3d 92 03 c0 21 d4 e7 01",
     "I-SYNC address[31:1]=0x6001c91e T=1 reason=1 NS=0 AltISA=0 HYP=0 cycles=3701", true},
    {"2.6", ca, "08 3d 92 03 c0 01", "I-SYNC address[31:1]=0x6001c91e T=1 reason=0 NS=0 AltISA=0 HYP=0"},
    {"2.6", context(1), "08 00 80 00 00 29 5a",
     "I-SYNC address[31:1]=0x4000 T=0 reason=1 NS=1 AltISA=0 HYP=0 context_id=0x5a"},
    {"2.6", context(2), "08 00 80 00 00 29 5a a5",
     "I-SYNC address[31:1]=0x4000 T=0 reason=1 NS=1 AltISA=0 HYP=0 context_id=0xa55a"},
    {"2.6", context(4), "08 00 80 00 00 29 78 56 34 12",
     "I-SYNC address[31:1]=0x4000 T=0 reason=1 NS=1 AltISA=0 HYP=0 context_id=0x12345678"},
    {"2.6", context(4, true), "08 01 80 00 00 4f 90 78 56 34 12",
     "I-SYNC address[31:1]=0x4000 T=1 reason=2 NS=1 AltISA=1 HYP=1 cycles=4 context_id=0x12345678"},

    {"2.7", plain, "72 79", "WAYPOINT-UPDATE target=0x3c/1", true},
    {"2.7", plain, "72 81 05", "WAYPOINT-UPDATE target=0x140/2"},
    {"2.7", plain, "72 81 80 80 80 50 40", "WAYPOINT-UPDATE target=0/5/T32+info AltISA=1"},
    {"2.7", ca, "72 79", "WAYPOINT-UPDATE target=0x3c/1", true},

    {"2.8", context(1), "6e 7f", "CONTEXT-ID context_id=0x7f"},
    {"2.8", context(2), "6e 34 12", "CONTEXT-ID context_id=0x1234"},
    {"2.8", context(4), "6e 78 56 34 12", "CONTEXT-ID context_id=0x12345678"},
    {"2.8", plain, "3c 21", "VMID VMID=0x21"},
    {"2.8", plain, "0c", "TRIGGER"},
    {"2.8", plain, "66", "IGNORE"},
    {"2.8", plain, "76", "EXCEPTION-RETURN", true},

    {"2.9", timestamp(9, true), "42 51 00", "TIMESTAMP R=0 value=0x51/1 cycles=0", true},
    {"2.9", timestamp(9, true), "42 cc 97 c6 ce af 90 80 80 00 00", "TIMESTAMP R=0 value=0x82f9d18bcc/9 cycles=0",
     true},
    {"2.9", timestamp(7, true), "42 e7 f0 ae c8 8e 8b 00 0c", "TIMESTAMP R=0 value=0x58e90bb867/7 cycles=3", true},
    {"2.9", timestamp(7), "46 80 01", "TIMESTAMP R=1 value=0x80/2"},
    {"2.9", timestamp(7), "42 ff ff ff ff ff ff 3f", "TIMESTAMP R=0 value=0xffffffffffff/7"},
    {"2.9", timestamp(9), "42 ff ff ff ff ff ff ff ff ff", "TIMESTAMP R=0 value=0xffffffffffffffff/9"},
};

TEST(PacketVectors, ReadAndWritten) {
    for (const Vector& v : vectors) {
        SCOPED_TRACE(std::string(v.section) + ": " + v.bytes);
        const auto bytes = hex(v.bytes);
        const bool async = bytes[0] == 0;
        const auto stream = async ? bytes : test::with_async(bytes);
        const test::Collected got = collect(stream, v.config);
        ASSERT_EQ(got.items.size(), async ? 1U : 2U) << got.text();
        EXPECT_EQ(got.items.back().text, v.text);
        EXPECT_EQ(got.items.back().bytes, bytes.size());
        std::vector<std::uint8_t> again;
        encode(again, got.packets.back(), v.config);
        EXPECT_EQ(again, bytes);
        const auto scanned = from_text(v.text, v.config);
        ASSERT_TRUE(scanned.has_value()) << scanned.error().message;
        EXPECT_EQ(*scanned, got.packets.back());
    }
}

TEST(PacketVectors, EveryPacketHasSome) {
    std::set<std::string_view> with;
    for (const Vector& v : vectors) with.insert(std::string_view(v.text).substr(0, std::string_view(v.text).find(' ')));
    Packets::for_each(
        [&]<class P>() { EXPECT_TRUE(with.contains(P::info.name)) << P::info.name << " has no byte vector"; });
}

// Each configuration flag that changes a packet's form must be met by a vector of that packet on both sides.
TEST(PacketVectors, EveryPacketAndConfigurationHasSome) {
    const auto has = [](std::string_view packet, auto&& condition) {
        for (const Vector& v : vectors)
            if (std::string_view(v.text).starts_with(packet) && condition(v.config)) return true;
        return false;
    };
    for (const bool accurate : {false, true})
        for (const std::string_view packet : {"ATOM", "BRANCH-ADDRESS", "I-SYNC", "TIMESTAMP"})
            EXPECT_TRUE(has(packet, [&](const Config& c) { return c.cycle_accurate == accurate; }))
                << packet << accurate;
    for (const int bytes : {0, 1, 2, 4})
        EXPECT_TRUE(has("I-SYNC", [&](const Config& c) { return c.context_id_bytes == bytes; })) << bytes;
    for (const int bytes : {1, 2, 4})
        EXPECT_TRUE(has("CONTEXT-ID", [&](const Config& c) { return c.context_id_bytes == bytes; })) << bytes;
    for (const int bytes : {7, 9})
        for (const bool accurate : {false, true})
            EXPECT_TRUE(has("TIMESTAMP", [&](const Config& c) {
                return c.timestamp_bytes == bytes && c.cycle_accurate == accurate;
            }));
}

TEST(Headers, EveryByteIsClassified) {
    constexpr auto table = wire::header_table<Packets>();
    unsigned reserved = 0;
    for (unsigned byte = 0; byte < 256; ++byte) reserved += table[byte] == wire::reserved_header;
    EXPECT_EQ(reserved, 54U);
    for (unsigned byte = 1; byte < 256; byte += 2) EXPECT_EQ(Packets::infos[table[byte]].name, "BRANCH-ADDRESS");
    for (unsigned byte = 0x80; byte < 256; byte += 2) EXPECT_EQ(Packets::infos[table[byte]].name, "ATOM");
}

struct Refused {
    const char* section;
    Config config;
    const char* bytes;
    GapReason reason;
};
TEST(Headers, WhatCannotBeIsRefused) {
    const Refused refused[] = {
        {"2.4", plain, "80", GapReason::malformed_packet},                    // no marker
        {"2.4", plain, "82", GapReason::malformed_packet},                    //
        {"2.5", plain, "81 80 80 80 00", GapReason::malformed_packet},        // no instruction set in byte 5
        {"2.5", plain, "81 80 80 80 88", GapReason::malformed_packet},        // bit 7 of byte 5
        {"2.5", plain, "81 80 80 80 58 81 c0", GapReason::malformed_packet},  // information byte 1, bits 7:6
        {"2.6", plain, "08 00 00 00 00 00", GapReason::malformed_packet},     // bit 0 of the information byte
        {"2.6", plain, "08 00 00 00 00 91", GapReason::malformed_packet},     // bits 7 and 4
        {"2.3", ca, "c0 80 80 80 80", GapReason::malformed_packet},           // a sixth cycle count byte
        {"2.7", plain, "72 80 80 80 80 08", GapReason::malformed_packet},     // bit 0 of address byte 1
        {"2.7", plain, "72 81 80 80 80 20", GapReason::malformed_packet},     // Jazelle
        {"2.8", plain, "6e 00", GapReason::malformed_packet},                 // Context ID is not traced
        {"2.9", timestamp(7), "42 80 80 80 80 80 80 40", GapReason::malformed_packet},
        {"2.1", plain, "02", GapReason::reserved_header},
        {"2.1", plain, "7e", GapReason::reserved_header},
        {"2.2", plain, "00 00 00 00 80", GapReason::malformed_packet},     // four zeros
        {"2.2", plain, "00 00 00 00 00 81", GapReason::malformed_packet},  // not ended by 0x80
    };
    for (const Refused& r : refused) {
        SCOPED_TRACE(std::string(r.section) + ": " + r.bytes);
        auto bytes = test::with_async(hex(r.bytes));
        bytes.push_back(0x66);  // keeps zeros at the end of the bad packet from joining the zeros of the A-sync
        const std::size_t bad = bytes.size();
        bytes.insert(bytes.end(), {0, 0, 0, 0, 0, 0x80, 0x66});
        const test::Collected got = collect(bytes, r.config);
        ASSERT_EQ(got.items.size(), 4U) << got.text();
        EXPECT_EQ(got.items[1].text, "GAP " + std::string(name(r.reason)));
        EXPECT_EQ(got.items[1].first.value, 6U);
        EXPECT_EQ(got.items[1].bytes, bad - 6);
        EXPECT_EQ(got.items[3].text, "IGNORE");
    }
}

TEST(Text, RefusesWhatIsNoPacket) {
    for (const char* wrong : {"", "BRANCH", "ATOM atoms=EEX", "ATOM atoms=EEEEEE", "ATOM", "VMID VMID=256",
                              "VMID VMID=1 x=2", "BRANCH-ADDRESS target=0x40/1", "BRANCH-ADDRESS target=2/5/A32",
                              "TIMESTAMP R=2 value=1/1", "CONTEXT-ID context_id=1", "A-SYNC zeros=4",
                              "BRANCH-ADDRESS target=1/1+info C=0 AltISA=0 exception[3:0]=0 NS=0",
                              "WAYPOINT-UPDATE target=1/4+info AltISA=0", "WAYPOINT-UPDATE target=0x8000/5/Jazelle"})
        EXPECT_FALSE(from_text(wrong, plain).has_value()) << wrong;
}

/// A field that the decoder reads without a branch for each byte, compared with reading it byte by byte.
TEST(Codec, ReadsAtOnceWhatItReadsByteByByte) {
    std::mt19937_64 random(1);
    unsigned counts = 0;
    for (unsigned i = 0; i < 300000; ++i) {
        std::array<std::uint8_t, 8> bytes{};
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        Cursor cursor(bytes);
        std::uint32_t cycles = 0, cycles_at_once = 0;
        CycleCount::read(cursor, cycles);
        const unsigned read = CycleCount::read_at_once(bytes.data(), cycles_at_once);
        ASSERT_EQ(read != 0, cursor.step() == Step::ok);
        if (read == 0) continue;
        ASSERT_EQ(read, cursor.consumed());
        ASSERT_EQ(cycles_at_once, cycles);
        ++counts;
        std::uint32_t cycles_likely = 0;
        ASSERT_EQ(CycleCount::read_likely(bytes.data(), cycles_likely), read);
        ASSERT_EQ(cycles_likely, cycles);
    }
    EXPECT_GT(counts, 100000U);
}

TEST(Codec, ReadsShortAtomsAsWhatTheyAre) {
    std::mt19937_64 random(2);
    std::array<unsigned, 3> found{};  // number of packets by length; [0]: not short
    for (unsigned i = 0; i < 100000; ++i) {
        std::array<std::uint8_t, 8> bytes{};
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        bytes[0] = static_cast<std::uint8_t>((bytes[0] | 0x80U) & 0xfeU);  // an atom's header
        Cursor cursor(bytes);
        CycleAtom atom;
        CycleAtomField::read(cursor, atom);
        std::uint32_t e = 0, cycles = 0;
        const unsigned read = CycleAtomField::read_short(bytes.data(), e, cycles);
        ASSERT_LE(read, 2U);
        ++found[read];
        ASSERT_EQ(read, cursor.step() == Step::ok && cursor.consumed() <= 2 ? cursor.consumed() : 0);
        if (read == 0) continue;
        ASSERT_EQ(e != 0, atom.atoms.e(0));
        ASSERT_EQ(cycles, atom.cycles);
    }
    for (const unsigned times : found) EXPECT_GT(times, 10000U);
}

TEST(Codec, ReadsTimestampsAtOnceOfEveryLength) {
    std::mt19937_64 random(3);
    for (const std::uint8_t most : {std::uint8_t{7}, std::uint8_t{9}}) {
        std::array<unsigned, 10> found{};  // number of packets by length; [0]: bad
        const TimestampField field{most};
        for (unsigned i = 0; i < 200000; ++i) {
            std::array<std::uint8_t, 10> bytes{};
            const auto go_on = random() % 10;  // at least this many bytes
            for (std::size_t n = 0; n < bytes.size(); ++n)
                bytes[n] = static_cast<std::uint8_t>(random() | (n < go_on ? 0x80U : 0U));
            if (random() % 2 == 0) bytes[6] &= 0x3fU;
            Cursor cursor(bytes);
            TimestampValue slow, fast;
            field.read(cursor, slow);
            const unsigned read = field.read_at_once(bytes.data(), fast);
            ASSERT_EQ(read, cursor.step() == Step::ok ? cursor.consumed() : 0);
            ++found[read];
            ASSERT_TRUE(read == 0 || fast == slow);
        }
        for (unsigned n = 1; n <= most; ++n) EXPECT_GT(found[n], 500U) << n;
        EXPECT_EQ(found[0] != 0, most == 7);
    }
}

}  // namespace
}  // namespace waymark::pft
