/// Byte vectors for every packet × configuration, from docs/spec/etm4.md: independent evidence for the packet
/// descriptions, which round trips cannot give.
#include <gtest/gtest.h>

#include <set>

#include "etm4/support.h"

namespace waymark::etm4 {
namespace {

using test::collect;
using test::hex;

/// The same configuration with other sizes.
Config with_sizes(Config c, std::uint8_t vmid_bytes, std::uint8_t context_id_bytes) {
    c.vmid_bytes = vmid_bytes;
    c.context_id_bytes = context_id_bytes;
    return c;
}
Config commit_mode_1(Config c) {
    c.commit_mode_1 = true;
    return c;
}

const Config of_v4 = test::etmv4();
const Config of_ete = test::ete();
const Config of_cond = test::conditional();
const Config of_m = test::m_profile();

struct Vector {
    const char* section;
    Config config;
    const char* bytes;
    const char* text;
    bool captured = false;  ///< seen in a capture, not only derived from the text
};

const Vector vectors[] = {
    {"3", of_v4, "00 00 00 00 00 00 00 00 00 00 00 80", "A-SYNC", true},
    {"3", of_v4, "00 03", "DISCARD", true},
    {"3", of_v4, "00 05", "OVERFLOW", true},
    {"3", of_m, "00 07", "BRANCH-FUTURE-FLUSH"},

    {"4", of_v4, "01 00", "TRACE-INFO PLCTL=0", true},
    {"4", of_v4, "01 01 00", "TRACE-INFO PLCTL=1 INFO=0", true},
    {"4", of_v4, "01 09 01 16", "TRACE-INFO PLCTL=9 INFO=1 CYCT=0x16", true},
    {"4", of_ete, "01 01 40", "TRACE-INFO PLCTL=1 INFO=0x40"},
    {"4", of_ete, "01 1f 31 81 01 05 80 02 07", "TRACE-INFO PLCTL=0x1f INFO=0x31 KEY=0x81 SPEC=5 CYCT=0x100 WNDW=7"},

    {"5", of_v4, "02 d7 df 01", "TIMESTAMP N=0 value=0x6fd7/3", true},
    {"5", of_v4, "02 c0 a1 c5 97 80 80 00", "TIMESTAMP N=0 value=0x2f150c0/7", true},
    {"5", of_ete, "02 92 cb 81 80 ff ff ff ff ff", "TIMESTAMP N=0 value=0xfffffffff0006592/9", true},
    {"5", of_v4, "03 05 85 01", "TIMESTAMP N=1 value=5/1 cycles=0x85"},
    {"5", of_v4, "03 ff ff ff ff ff ff ff ff 80 ff ff 7f", "TIMESTAMP N=1 value=0x80ffffffffffffff/9 cycles=0x1fffff"},
    {"5", of_ete, "88", "TIMESTAMP-MARKER", true},
    {"5", of_v4, "04", "TRACE-ON", true},
    {"5", of_m, "05", "FUNCTION-RETURN"},
    {"5", of_v4, "0e 01 21", "CYCLE-COUNT-F1 U=0 commit=1 count=0x21", true},
    {"5", of_v4, "0f 01", "CYCLE-COUNT-F1 U=1 commit=1", true},
    {"5", of_v4, "0e ff ff ff ff 0f ff ff 7f", "CYCLE-COUNT-F1 U=0 commit=0xffffffff count=0x1fffff"},
    {"5", commit_mode_1(of_v4), "0e a1 01", "CYCLE-COUNT-F1 U=0 count=0xa1"},
    {"5", commit_mode_1(of_v4), "0f", "CYCLE-COUNT-F1 U=1", true},
    {"5", of_v4, "0c 96", "CYCLE-COUNT-F2 F=0 AAAA=9 BBBB=6", true},
    {"5", commit_mode_1(of_v4), "0d f4", "CYCLE-COUNT-F2 F=1 AAAA=0xf BBBB=4", true},
    {"5", of_v4, "10", "CYCLE-COUNT-F3 AA=0 BB=0"},
    {"5", of_v4, "1b", "CYCLE-COUNT-F3 AA=2 BB=3"},
    {"5", of_v4, "71", "EVENT events=1"},
    {"5", of_ete, "7a", "EVENT events=0xa"},
    {"5", of_v4, "70", "IGNORE", true},

    {"6", of_v4, "80", "CONTEXT payload=0"},
    {"6", with_sizes(of_v4, 4, 4), "81 f2 00 00 00 00 00 00 00 00",
     "CONTEXT payload=1 P=1 V=1 NS=1 SF=1 NSE=0 EL=2 VMID=0 context_id=0", true},
    {"6", with_sizes(of_v4, 2, 4), "81 f1 34 12 78 56 34 12",
     "CONTEXT payload=1 P=1 V=1 NS=1 SF=1 NSE=0 EL=1 VMID=0x1234 context_id=0x12345678"},
    {"6", with_sizes(of_v4, 1, 4), "81 f1 05 78 56 34 12",
     "CONTEXT payload=1 P=1 V=1 NS=1 SF=1 NSE=0 EL=1 VMID=5 context_id=0x12345678"},
    {"6", with_sizes(of_v4, 0, 0), "81 f1", "CONTEXT payload=1 P=1 V=1 NS=1 SF=1 NSE=0 EL=1"},
    {"6", of_ete, "81 93 00 00 00 00", "CONTEXT payload=1 P=1 V=0 NS=0 SF=1 NSE=0 EL=3 context_id=0", true},
    {"6", of_ete, "81 1b", "CONTEXT payload=1 P=0 V=0 NS=0 SF=1 NSE=1 EL=3", true},
    {"6", of_ete, "81 39", "CONTEXT payload=1 P=0 V=0 NS=1 SF=1 NSE=1 EL=1", true},
    {"6", of_v4, "82 22 1a 0c 00 31", "ADDRESS-CONTEXT address=0xc3488/4/IS0 P=0 V=0 NS=1 SF=1 NSE=0 EL=1", true},
    {"6", of_v4, "83 01 9a 4f 00 00", "ADDRESS-CONTEXT address=0x4f9a02/4/IS1 P=0 V=0 NS=0 SF=0 NSE=0 EL=0", true},
    {"6", of_v4, "85 00 1e 08 00 c0 ff ff ff 31",
     "ADDRESS-CONTEXT address=0xffffffc000083c00/8/IS0 P=0 V=0 NS=1 SF=1 NSE=0 EL=1", true},
    {"6", with_sizes(of_v4, 1, 4), "85 00 35 09 00 c0 ff ff ff f1 00 00 00 00 00",
     "ADDRESS-CONTEXT address=0xffffffc000096a00/8/IS0 P=1 V=1 NS=1 SF=1 NSE=0 EL=1 VMID=0 context_id=0", true},
    {"6", of_v4, "86 7f ff 00 00 00 00 00 80 20",
     "ADDRESS-CONTEXT address=0x800000000000fffe/8/IS1 P=0 V=0 NS=1 SF=0 NSE=0 EL=0"},
    {"6", of_v4, "90", "ADDRESS-EXACT-MATCH entry=0", true},
    {"6", of_v4, "92", "ADDRESS-EXACT-MATCH entry=2", true},
    {"6", of_v4, "95 2d", "ADDRESS-SHORT address=0xb4/1/IS0", true},
    {"6", of_v4, "95 ab 49", "ADDRESS-SHORT address=0x92ac/2/IS0", true},
    {"6", of_v4, "95 ff ff", "ADDRESS-SHORT address=0x1fffc/2/IS0"},
    {"6", of_v4, "96 81 9a", "ADDRESS-SHORT address=0x9a02/2/IS1", true},
    {"6", of_v4, "96 7f", "ADDRESS-SHORT address=0xfe/1/IS1"},
    {"6", of_v4, "9a 2b 44 07 00", "ADDRESS-LONG address=0x788ac/4/IS0", true},
    {"6", of_v4, "9b 01 9a 4f 00", "ADDRESS-LONG address=0x4f9a02/4/IS1"},
    {"6", of_v4, "9d 12 5a fe ff 00 00 00 00", "ADDRESS-LONG address=0xfffeb448/8/IS0", true},
    {"6", of_v4, "9e 01 9a 4f 00 01 00 00 00", "ADDRESS-LONG address=0x1004f9a02/8/IS1"},

    // The oldest atom is written first.
    {"7", of_v4, "f6", "ATOM atoms=N", true},
    {"7", of_v4, "f7", "ATOM atoms=E", true},
    {"7", of_v4, "d9", "ATOM atoms=EN", true},
    {"7", of_v4, "da", "ATOM atoms=NE", true},
    {"7", of_v4, "f9", "ATOM atoms=ENN", true},
    {"7", of_v4, "fc", "ATOM atoms=NNE", true},
    {"7", of_v4, "dc", "ATOM atoms=NEEE", true},
    {"7", of_v4, "dd", "ATOM atoms=NNNN", true},
    {"7", of_v4, "de", "ATOM atoms=NENE", true},
    {"7", of_v4, "df", "ATOM atoms=ENEN", true},
    {"7", of_v4, "f5", "ATOM atoms=NEEEE", true},
    {"7", of_v4, "d5", "ATOM atoms=NNNNN", true},
    {"7", of_v4, "d6", "ATOM atoms=NENEN", true},
    {"7", of_v4, "d7", "ATOM atoms=ENENE", true},
    {"7", of_v4, "c0", "ATOM atoms=EEEE", true},
    {"7", of_v4, "d4", "ATOM atoms=EEEEEEEEEEEEEEEEEEEEEEEE", true},
    {"7", of_v4, "e0", "ATOM atoms=EEEN", true},
    {"7", of_v4, "f4", "ATOM atoms=EEEEEEEEEEEEEEEEEEEEEEEN", true},

    {"8", of_ete, "2d 05", "COMMIT count=5", true},
    {"8", of_ete, "2e 04", "CANCEL-F1 M=0 count=4", true},
    {"8", of_ete, "2f 81 01", "CANCEL-F1 M=1 count=0x81"},
    {"8", of_ete, "30", "MISPREDICT AA=0", true},
    {"8", of_ete, "33", "MISPREDICT AA=3"},
    {"8", of_ete, "34", "CANCEL-F2 AA=0", true},
    {"8", of_ete, "36", "CANCEL-F2 AA=2", true},
    {"8", of_ete, "3d", "CANCEL-F3 CC=2 A=1"},

    {"9", of_v4, "06 05", "EXCEPTION C=0 E1=0 type[4:0]=2 E0=1", true},
    {"9", of_v4, "06 1d", "EXCEPTION C=0 E1=0 type[4:0]=0xe E0=1", true},
    {"9", of_v4, "06 58", "EXCEPTION C=0 E1=1 type[4:0]=0xc E0=0", true},
    {"9", of_m, "06 91 30", "EXCEPTION C=1 E1=0 type[4:0]=8 E0=1 P=1 type[9:5]=0x10"},
    {"9", of_v4, "06 01", "EXCEPTION C=0 E1=0 type[4:0]=0 E0=1"},
    {"9", of_ete, "06 01 70", "EXCEPTION C=0 E1=0 type[4:0]=0 E0=1"},
    {"9", of_ete, "06 31 70", "EXCEPTION C=0 E1=0 type[4:0]=0x18 E0=1", true},
    {"9", of_v4, "07", "EXCEPTION-RETURN", true},

    {"10", of_ete, "a1 03", "Q type=1 count=3"},
    {"10", of_ete, "a5 86 1c 03", "Q type=5 address=0x3818/2/IS0 count=3", true},
    {"10", of_ete, "a6 03 04", "Q type=6 address=6/1/IS1 count=4"},
    {"10", of_ete, "aa 34 3f 06 00 03", "Q type=0xa address=0x67ed0/4/IS0 count=3", true},
    {"10", of_ete, "ab 34 3f 06 00 83 01", "Q type=0xb address=0x63f68/4/IS1 count=0x83"},
    {"10", of_ete, "ac 07", "Q type=0xc count=7"},
    {"10", of_ete, "af", "Q type=0xf"},

    {"11", of_ete, "b1", "SOURCE-ADDRESS-EXACT-MATCH entry=1"},
    {"11", of_ete, "b4 44", "SOURCE-ADDRESS-SHORT address=0x110/1/IS0", true},
    {"11", of_ete, "b5 84 01", "SOURCE-ADDRESS-SHORT address=0x108/2/IS1"},
    {"11", of_ete, "b6 1f 03 01 00", "SOURCE-ADDRESS-LONG address=0x1067c/4/IS0", true},
    {"11", of_ete, "b7 1f 03 01 00", "SOURCE-ADDRESS-LONG address=0x1033e/4/IS1"},
    {"11", of_ete, "b8 1f 03 01 00 00 00 00 01", "SOURCE-ADDRESS-LONG address=0x10000000001067c/8/IS0"},
    {"11", of_ete, "b9 1f 03 01 00 00 00 00 01", "SOURCE-ADDRESS-LONG address=0x10000000001033e/8/IS1"},
    {"11", of_ete, "0a", "TRANSACTION-START", true},
    {"11", of_ete, "0b", "TRANSACTION-COMMIT", true},
    {"11", of_ete, "09 01 ff ff 00 00 00 00 00 00", "INSTRUMENTATION EL=1 value=0xffff", true},

    {"12", of_cond, "6c 85 01", "CONDITIONAL-INSTRUCTION-F1 key=0x85"},
    {"12", of_cond, "42", "CONDITIONAL-INSTRUCTION-F2 TT=2"},
    {"12", of_cond, "6d 0b", "CONDITIONAL-INSTRUCTION-F3 count=5 F=1"},
    {"12", of_cond, "43", "CONDITIONAL-FLUSH"},
    {"12", of_cond, "6f 25", "CONDITIONAL-RESULT-F1 CI0=1 result=5@2"},
    {"12", of_cond, "6e f5 81 01", "CONDITIONAL-RESULT-F1 CI0=0 result=5@0x40f"},
    {"12", of_cond, "6a 25 13", "CONDITIONAL-RESULTS-F1 CI1=1 CI0=0 first=5@2 second=3@1"},
    {"12", of_cond, "4e", "CONDITIONAL-RESULT-F2 KTT=6"},
    {"12", of_cond, "5a 5a", "CONDITIONAL-RESULT-F3 tokens[11:8]=0xa tokens[7:0]=0x5a"},
    {"12", of_cond, "45", "CONDITIONAL-RESULT-F4 TT=1"},
    {"13", of_cond, "25", "NUMBERED-DATA-SYNC-MARKER number=5"},
    {"13", of_cond, "2c", "UNNUMBERED-DATA-SYNC-MARKER value=4"},
};

TEST(Etm4PacketVectors, ReadAndWritten) {
    for (const Vector& v : vectors) {
        SCOPED_TRACE(std::string(v.section) + ": " + v.bytes);
        const auto bytes = hex(v.bytes);
        const bool async = bytes.size() == 12 && bytes[1] == 0;
        const auto stream = async ? bytes : test::with_async(bytes);
        const test::Collected got = collect(stream, v.config);
        ASSERT_EQ(got.items.size(), async ? 1U : 2U) << got.text();
        EXPECT_EQ(got.items.back().text, v.text);
        EXPECT_EQ(got.items.back().bytes, bytes.size());
        // Packets that begin with 0 are distinguished by their second byte (3).
        const std::uint8_t header = bytes[bytes[0] == 0 && !async ? 1 : 0];
        std::visit([&]<class P>(const P&) { EXPECT_TRUE(is_header<P>(header)); }, got.packets.back());
        std::vector<std::uint8_t> again;
        ASSERT_FALSE(got.packets.empty());
        encode(again, got.packets.back(), v.config);
        EXPECT_EQ(again, bytes);
        const auto scanned = from_text(v.text, v.config);
        ASSERT_TRUE(scanned.has_value()) << scanned.error().message;
        EXPECT_EQ(*scanned, got.packets.back());
    }
}

TEST(Etm4PacketVectors, EveryPacketHasSome) {
    std::set<std::string_view> with;
    for (const Vector& v : vectors) with.insert(std::string_view(v.text).substr(0, std::string_view(v.text).find(' ')));
    Packets::for_each(
        [&]<class P>() { EXPECT_TRUE(with.contains(P::info.name)) << P::info.name << " has no byte vector"; });
}

// Each configuration value that changes a packet's form must be met by a vector of that packet.
TEST(Etm4PacketVectors, EveryPacketAndConfigurationHasSome) {
    const auto has = [](std::string_view packet, auto&& condition) {
        for (const Vector& v : vectors)
            if (std::string_view(v.text).starts_with(packet) && condition(v.config)) return true;
        return false;
    };
    for (const int bytes : {0, 1, 2, 4})
        EXPECT_TRUE(has("CONTEXT", [&](const Config& c) { return c.vmid_bytes == bytes; })) << bytes;
    for (const int bytes : {0, 4})
        EXPECT_TRUE(has("CONTEXT", [&](const Config& c) { return c.context_id_bytes == bytes; })) << bytes;
    for (const bool mode_1 : {false, true})
        EXPECT_TRUE(has("CYCLE-COUNT-F1", [&](const Config& c) { return c.commit_mode_1 == mode_1; })) << mode_1;
    for (const bool is_ete : {false, true})
        EXPECT_TRUE(has("EXCEPTION C=0 E1=0 type[4:0]=0 ", [&](const Config& c) { return c.ete() == is_ete; }));
}

TEST(Etm4Headers, EveryByteIsClassified) {
    std::string reserved;
    for (unsigned byte = 1; byte < 256; ++byte)
        if (header_table[byte] == wire::reserved_header) wire::append_number(reserved += ' ', byte);
    // Section 2.
    EXPECT_EQ(
        reserved,
        " 8 0x47 0x4b 0x4f 0x60 0x61 0x62 0x63 0x64 0x65 0x66 0x67 0x84 0x87 0x89 0x8a 0x8b 0x8c 0x8d 0x8e 0x8f 0x93"
        " 0x94 0x97 0x98 0x99 0x9c 0x9f 0xa3 0xa4 0xa7 0xa8 0xa9 0xad 0xae 0xb3 0xba 0xbb 0xbc 0xbd 0xbe 0xbf");
    for (unsigned byte = 0xc0; byte < 256; ++byte) EXPECT_EQ(HeaderPackets::infos[header_table[byte]].name, "ATOM");
}

/// value and mask of PacketInfo stay true where a packet's headers are listed.
TEST(Etm4Headers, MasksContainTheListedHeaders) {
    HeaderPackets::for_each([]<class P>() {
        unsigned count = 0;
        for (unsigned byte = 0; byte < 256; ++byte)
            if (is_header<P>(static_cast<std::uint8_t>(byte))) {
                ++count;
                EXPECT_EQ(byte & P::info.mask, P::info.value) << P::info.name << ' ' << byte;
            }
        EXPECT_GT(count, 0U) << P::info.name;
    });
}

// Section 7, by its rules and not by its table: C + 3 times E and one more atom.
TEST(Etm4Atoms, EveryHeaderHasItsOwn) {
    std::set<std::pair<unsigned, unsigned>> seen;
    for (unsigned byte = 0xc0; byte < 256; ++byte) {
        const Atoms atoms = atoms_of(static_cast<std::uint8_t>(byte));
        EXPECT_TRUE(seen.insert({atoms.count, atoms.e}).second) << byte;
        EXPECT_EQ(atom_header(atoms), byte);
        if (atom_format(static_cast<std::uint8_t>(byte)) != 6) continue;
        const unsigned c = byte & 0x1fU;
        ASSERT_LE(c, 20U);
        ASSERT_EQ(atoms.count, c + 4);
        for (unsigned i = 0; i < c + 3; ++i) ASSERT_TRUE(atoms.is_e(i));
        ASSERT_EQ(atoms.is_e(c + 3), (byte & 0x20U) == 0);
    }
    EXPECT_EQ(seen.size(), 64U);
}

struct Refused {
    const char* section;
    Config config;
    const char* bytes;
    GapReason reason;
};
TEST(Etm4Headers, WhatCannotBeIsRefused) {
    const GapReason reserved = GapReason::reserved_header, malformed = GapReason::malformed_packet;
    Config old;
    old.version = 0x42;
    const Refused refused[] = {
        {"2", of_v4, "08", reserved},                                    // in every version
        {"2", of_v4, "a3", reserved},                                    //
        {"2", of_v4, "88", reserved},                                    // before 4.6
        {"2", of_v4, "a5 86 1c 03", reserved},                           // no Q elements
        {"2", of_v4, "b4 44", reserved},                                 // no ETE
        {"2", of_v4, "0a", reserved},                                    // no ETE
        {"2", of_v4, "42", reserved},                                    // no conditional trace
        {"2", of_v4, "25", reserved},                                    // no data trace
        {"2", of_v4, "05", reserved},                                    // no M profile
        {"2", of_ete, "07", reserved},                                   // an ETE has no Exception Return
        {"2", test::ete(2), "09 01 ff ff 00 00 00 00 00 00", reserved},  // before ETE 1.3
        {"2", old, "70", reserved},                                      // before 4.3
        {"3", of_v4, "00 01", malformed},                                // no such extension
        {"3", of_v4, "00 07", malformed},                                // not possible for this core
        {"3", of_v4, "00 00 00 00 00 00 00 00 00 00 80", malformed},     // ten zeros
        {"3", of_v4, "00 00 00 00 00 00 00 00 00 00 00 81", malformed},  // not ended by 0x80
        {"3", of_v4, "00 00 03", malformed},                             //
        {"4", of_v4, "01 20", malformed},                                // a section that does not exist
        {"4", of_v4, "01 80 80 80 80", malformed},                       // control bytes without end
        {"4", of_v4, "01 01 80 80 80 80 80", malformed},                 // a field of six bytes
        {"5", of_v4, "03 00 80 80 80", malformed},                       // a cycle count of four bytes
        {"8", of_ete, "2d ff ff ff ff 1f", malformed},                   // a count of 33 bits
        {"9", of_ete, "06 01 71", malformed},                            // PE Reset with an address
        {"12", of_cond, "6e 80 80 80 80 80 80", malformed},              // a key without end
    };
    for (const Refused& r : refused) {
        SCOPED_TRACE(std::string(r.section) + ": " + r.bytes);
        auto bytes = test::with_async(hex(r.bytes));
        bytes.push_back(0xf7);  // keeps zeros at the end of the bad packet from joining the zeros of the A-sync
        const std::size_t bad = bytes.size();
        const auto again = test::with_async(hex("f7"));
        bytes.insert(bytes.end(), again.begin(), again.end());
        const test::Collected got = collect(bytes, r.config);
        ASSERT_EQ(got.items.size(), 4U) << got.text();
        EXPECT_EQ(got.items[1].text, "GAP " + std::string(name(r.reason)));
        EXPECT_EQ(got.items[1].first.value, 12U);
        EXPECT_EQ(got.items[1].bytes, bad - 12);
        EXPECT_EQ(got.items[3].text, "ATOM atoms=E");
    }
}

// Bits that should be 0, and bytes without meaning: they are accepted with any value, and written with the value that
// they should have.
TEST(Etm4Headers, WhatShouldBeOtherwiseIsTolerated) {
    const std::pair<const char*, const char*> tolerated[] = {
        {"01 81 ff 7f 00", "01 01 00"},        // further control bytes of Trace Info
        {"9a ab c4 07 00", "9a 2b 44 07 00"},  // bit 7 of the first two bytes
        {"9b 81 9a 4f 00", "9b 01 9a 4f 00"},  // bit 7 of the first byte
        {"81 35", "81 31"},                    // bit 2 of the context
        {"2d 85 00", "2d 05"},                 // a count with a byte too many
        {"09 fd ff ff 00 00 00 00 00 00", "09 01 ff ff 00 00 00 00 00 00"},
        {"06 91 d0", "06 91 10"},
    };
    for (const auto& [bytes, as_it_should_be] : tolerated) {
        const auto got = collect(test::with_async(hex(bytes)), of_ete);
        ASSERT_EQ(got.items.size(), 2U) << got.text();
        EXPECT_EQ(got.items[1].bytes, hex(bytes).size());
        std::vector<std::uint8_t> again;
        encode(again, got.packets[1], of_ete);
        EXPECT_EQ(again, hex(as_it_should_be)) << bytes;
    }
}

TEST(Etm4Text, RefusesWhatIsNoPacket) {
    const std::pair<const char*, const char*> wrong[] = {
        {"", "no packet is called ''"},
        {"ADDRESS", "no packet is called 'ADDRESS'"},
        {"ATOM atoms=EEX", "ATOM: cannot read 'atoms' in 'ATOM atoms=EEX'"},
        {"ATOM atoms=ENNE", "ATOM: cannot read 'atoms' in 'ATOM atoms=ENNE'"},  // no format has it
        {"ATOM", "ATOM: cannot read 'atoms' in 'ATOM'"},
        {"ATOM atoms=", "ATOM: cannot read 'atoms' in 'ATOM atoms='"},
        {"ATOM atoms=EEEEEEEEEEEEEEEEEEEEEEEEE",  // 25
         "ATOM: cannot read 'atoms' in 'ATOM atoms=EEEEEEEEEEEEEEEEEEEEEEEEE'"},
        {"COMMIT count=1 x=2", "COMMIT: cannot read 'x=2' in 'COMMIT count=1 x=2'"},
        {"ADDRESS-SHORT address=2/1/IS0", "ADDRESS-SHORT: cannot read 'address' in 'ADDRESS-SHORT address=2/1/IS0'"},
        {"ADDRESS-SHORT address=0x200/1/IS0",
         "ADDRESS-SHORT: cannot read 'address' in 'ADDRESS-SHORT address=0x200/1/IS0'"},
        {"ADDRESS-SHORT address=4/4/IS0", "ADDRESS-SHORT: cannot read 'address' in 'ADDRESS-SHORT address=4/4/IS0'"},
        {"ADDRESS-LONG address=4/3/IS0", "ADDRESS-LONG: cannot read 'address' in 'ADDRESS-LONG address=4/3/IS0'"},
        {"ADDRESS-LONG address=4/8/IS2", "ADDRESS-LONG: cannot read 'address' in 'ADDRESS-LONG address=4/8/IS2'"},
        {"ADDRESS-EXACT-MATCH entry=3", "ADDRESS-EXACT-MATCH: cannot read 'entry' in 'ADDRESS-EXACT-MATCH entry=3'"},
        {"TIMESTAMP N=0 value=0x80/1", "TIMESTAMP: cannot read 'value' in 'TIMESTAMP N=0 value=0x80/1'"},
        {"TIMESTAMP N=0 value=1/10", "TIMESTAMP: cannot read 'value' in 'TIMESTAMP N=0 value=1/10'"},
        {"EVENT events=0", "EVENT: cannot read 'events' in 'EVENT events=0'"},
        {"TRACE-INFO PLCTL=0x20", "TRACE-INFO: cannot read 'PLCTL' in 'TRACE-INFO PLCTL=0x20'"},
        {"CYCLE-COUNT-F1 U=0 commit=1 count=0x200000",
         "CYCLE-COUNT-F1: cannot read 'count' in 'CYCLE-COUNT-F1 U=0 commit=1 count=0x200000'"},
        {"TRANSACTION-START", "TRANSACTION-START: the configuration has no such packet; it needs an ETE"},
        {"Q type=0xf",
         "Q: the configuration has no such packet; it needs a trace unit with Q elements (TRCIDR0.QSUPP)"},
    };
    for (const auto& [text, message] : wrong) {
        const auto got = from_text(text, of_v4);
        ASSERT_FALSE(got.has_value()) << text;
        EXPECT_EQ(got.error().message, message);
    }
    EXPECT_FALSE(from_text("Q type=3 count=1", of_ete).has_value());
    EXPECT_FALSE(from_text("Q type=5 address=6/1/IS1 count=4", of_ete).has_value());
    EXPECT_FALSE(from_text("CONDITIONAL-RESULT-F1 CI0=0 result=16@0", of_cond).has_value());
    EXPECT_FALSE(from_text("CONDITIONAL-RESULT-F2 KTT=3", of_cond).has_value());
}

}  // namespace
}  // namespace waymark::etm4
