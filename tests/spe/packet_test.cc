/// Byte vectors for every packet, from docs/spec/spe.md: independent evidence for the packet descriptions, which round
/// trips cannot give.
#include <gtest/gtest.h>

#include <set>

#include "spe/support.h"

namespace waymark::spe {
namespace {

using test::collect;
using test::hex;

struct Vector {
    const char* section;
    const char* bytes;
    const char* text;
    const char* meaning;
};

const Vector vectors[] = {
    {"4.8", "b0 5c 8b 8c 86 c2 c0 ff c0", "ADDRESS index=0 address=0xc0ffc0c2868c8b5c",
     "PC 0xffffc0c2868c8b5c EL2 non-secure"},
    {"4.8", "b1 e0 89 8c 86 c2 c0 ff c0", "ADDRESS index=1 address=0xc0ffc0c2868c89e0",
     "target 0xffffc0c2868c89e0 EL2 non-secure"},
    {"4.8", "b2 c0 26 c2 07 20 fc ff 00", "ADDRESS index=2 address=0xfffc2007c226c0",
     "data at 0xfffffc2007c226c0, tag 0x00"},
    {"4.8", "b3 e8 09 8a d8 0b 08 00 80", "ADDRESS index=3 address=0x8000080bd88a09e8",
     "data at physical 0x80bd88a09e8 non-secure, tag 0"},
    {"4.2", "b3 e8 09 8a d8 0b 08 00 d5", "ADDRESS index=3 address=0xd500080bd88a09e8",
     "data at physical 0x80bd88a09e8 realm, tag 5, checked"},
    {"4.2", "b4 00 10 00 00 00 00 00 20", "ADDRESS index=4 address=0x2000000000001000",
     "previous target 0x1000 EL1 secure"},
    {"4.2", "b7 01 00 00 00 00 00 00 00", "ADDRESS index=7 address=1", "no named address"},
    // The table of canonical addresses, by bit 55.
    {"4.2", "b0 34 12 08 80 00 00 00 a0", "ADDRESS index=0 address=0xa000000080081234", "PC 0x80081234 EL1 non-secure"},
    {"4.2", "b0 34 12 08 80 00 80 ff b0", "ADDRESS index=0 address=0xb0ff800080081234",
     "PC 0xffff800080081234 EL1 realm"},
    {"4.2", "b0 34 12 08 80 00 80 ff 20", "ADDRESS index=0 address=0x20ff800080081234",
     "PC 0xffff800080081234 EL1 secure"},
    {"4.2", "b0 91 11 00 00 00 7f 00 80", "ADDRESS index=0 address=0x80007f0000001191",
     "PC 0x7f0000001191 EL0 non-secure"},
    {"4.2", "b2 00 10 00 00 00 00 80 00", "ADDRESS index=2 address=0x80000000001000",
     "data at 0xff80000000001000, tag 0x00"},
    {"4.2", "b2 ef be ad de 7f 00 00 b4", "ADDRESS index=2 address=0xb400007fdeadbeef",
     "data at 0x7fdeadbeef, tag 0xb4"},

    {"4.8", "99 07 00", "COUNTER index=1 cycles=7", "issue latency 7"},
    {"4.8", "98 0b 00", "COUNTER index=0 cycles=0xb", "total latency 11"},
    {"4.8", "9a 01 00", "COUNTER index=2 cycles=1", "translation latency 1"},
    {"4.3", "9c ff 0f", "COUNTER index=4 cycles=0xfff", "issue latency 4095 of the alternate clock"},
    {"4.3", "9b 00 00", "COUNTER index=3 cycles=0", "no named counter"},

    {"4.8", "71 6c f8 a5 83 00 0c 00 00", "TIMESTAMP timestamp=0xc0083a5f86c", "ends the record"},

    {"4.8", "49 00", "OPERATION-TYPE class=1 type=0", "load general"},
    {"4.8", "49 01", "OPERATION-TYPE class=1 type=1", "store general"},
    {"4.8", "49 05", "OPERATION-TYPE class=1 type=5", "store simd-fp"},
    {"4.8", "49 16", "OPERATION-TYPE class=1 type=0x16", "load atomic acquire-release"},
    {"4.8", "4a 01", "OPERATION-TYPE class=2 type=1", "branch conditional"},
    {"4.8", "4a 02", "OPERATION-TYPE class=2 type=2", "branch indirect"},
    {"4.8", "4a 0a", "OPERATION-TYPE class=2 type=0xa", "branch indirect call"},
    {"4.8", "48 01", "OPERATION-TYPE class=0 type=1", "other conditional"},
    {"4.8", "48 2c", "OPERATION-TYPE class=0 type=0x2c", "sve predicated 128-bit"},
    {"4.8", "49 9d", "OPERATION-TYPE class=1 type=0x9d", "store sve gather-scatter predicated 64-bit"},
    {"4.8", "49 25", "OPERATION-TYPE class=1 type=0x25", "store set"},
    {"4.8", "49 21", "OPERATION-TYPE class=1 type=0x21", "store copy"},
    {"4.6", "48 06", "OPERATION-TYPE class=0 type=6", "other fp simd"},
    {"4.6", "48 8a", "OPERATION-TYPE class=0 type=0x8a", "sme fp 128-bit"},
    {"4.6", "48 dc", "OPERATION-TYPE class=0 type=0xdc", "sme 262144-bit"},
    {"4.6", "48 fc", "OPERATION-TYPE class=0 type=0xfc", "sme"},
    {"4.6", "48 09", "OPERATION-TYPE class=0 type=9", "reserved"},
    {"4.6", "49 10", "OPERATION-TYPE class=1 type=0x10", "load unspecified"},
    {"4.6", "49 15", "OPERATION-TYPE class=1 type=0x15", "store allocation-tag"},
    {"4.6", "49 30", "OPERATION-TYPE class=1 type=0x30", "load system-register"},
    {"4.6", "49 44", "OPERATION-TYPE class=1 type=0x44", "load gcs common"},
    {"4.6", "49 41", "OPERATION-TYPE class=1 type=0x41", "store gcs"},
    {"4.6", "49 0b", "OPERATION-TYPE class=1 type=0xb", "store exclusive"},
    {"4.6", "49 02", "OPERATION-TYPE class=1 type=2", "load extended"},
    {"4.6", "49 24", "OPERATION-TYPE class=1 type=0x24", "load reserved"},
    {"4.6", "4a 17", "OPERATION-TYPE class=2 type=0x17", "branch conditional indirect return gcs"},
    {"4.6", "4a 18", "OPERATION-TYPE class=2 type=0x18", "branch no-call-or-return"},
    {"4.6", "4b 00", "OPERATION-TYPE class=3 type=0", "reserved"},

    {"4.8", "52 16 00", "EVENTS events=0x16/2", "retired:l1d_access:tlb_access"},
    {"4.8", "52 1e 03", "EVENTS events=0x31e/2", "retired:l1d_access:l1d_miss:tlb_access:llc_access:llc_miss"},
    {"4.8", "62 00 00 80 00", "EVENTS events=0x800000/4", "snooped"},
    {"4.8", "42 82", "EVENTS events=0x82/1", "retired:mispredict"},
    {"4.5", "72 e1 08 7f 03 00 00 00 80", "EVENTS events=0x80000000037f08e1/8",
     "exception:tlb_walk:not_taken:mispredict:misaligned:transactional:partial_pred:empty_pred:l2d_access:l2d_miss:"
     "data_modified:recently_fetched:streaming:smcu:event63"},
    {"4.5", "52 00 f4", "EVENTS events=0xf400/2", "remote:event12:event13:event14:event15"},

    {"4.8", "43 0e", "DATA-SOURCE source=0xe/1", "DRAM"},
    {"4.8", "53 0e 00", "DATA-SOURCE source=0xe/2", "DRAM"},
    {"4.8", "65 80 5f 00 00", "CONTEXT index=1 context=0x5f80", "CONTEXTIDR_EL2"},
    {"4.4", "64 80 5f 00 00", "CONTEXT index=0 context=0x5f80", "CONTEXTIDR_EL1"},
    {"4.4", "67 00 00 00 00", "CONTEXT index=3 context=0", "no named context"},
    {"4.8", "22 98 05 00", "COUNTER index=16 cycles=5", "no named counter"},
    {"4.8", "20 b0 cd ab 90 78 56 34 12 00", "ADDRESS index=0/extended address=0x1234567890abcd",
     "PC 0x1234567890abcd EL0 secure"},
    {"4.8", "01", "END", "ends the record"},
    {"4.1", "23 b7 00 00 00 00 00 00 00 00", "ADDRESS index=31 address=0", "no named address"},
    {"4.1", "40 07", "UNKNOWN packet=0x40:7", ""},
    {"4.1", "63 01 02 03 04", "UNKNOWN packet=0x63:0x4030201", ""},
    {"4.1", "ff 01 02 03 04 05 06 07 08", "UNKNOWN packet=0xff:0x807060504030201", ""},
    {"4.1", "3f 98 05 00", "UNKNOWN packet=0x3f,0x98:5", ""},
    {"4.1", "20 71 01 00 00 00 00 00 00 00", "UNKNOWN packet=0x20,0x71:1", ""},
};

TEST(Vectors, BytesAreThePacketAndBack) {
    constexpr std::uint32_t neoverse_n1 = 0x410fd0c0;
    std::set<std::string_view> seen;
    for (const Vector& v : vectors) {
        const std::string text = v.text;
        SCOPED_TRACE(std::string(v.section) + ": " + v.bytes);
        const auto bytes = hex(v.bytes);
        const auto got = collect(bytes);
        ASSERT_EQ(got.items.size(), 1U) << got.text();
        EXPECT_EQ(got.items[0].text, text);
        EXPECT_EQ(explain(got.packets[0], neoverse_n1), v.meaning);
        std::vector<std::uint8_t> again;
        encode(again, got.packets[0]);
        EXPECT_EQ(again, bytes);
        const auto scanned = from_text(text);
        ASSERT_TRUE(scanned.has_value()) << scanned.error().message;
        EXPECT_EQ(*scanned, got.packets[0]);
        seen.insert(std::string_view(v.text).substr(0, std::string_view(v.text).find(' ')));
    }
    seen.insert({"PADDING", "ALIGNMENT"});  // separate tests: they depend on their place
    EXPECT_EQ(seen.size(), Packets::size) << "a packet has no vector";
}

TEST(Vectors, TheShortIndexIsWrittenWhereItSuffices) {
    std::vector<std::uint8_t> out;
    encode(out, AddressPacket{{0, false}, 1});
    encode(out, Counter{{9, false}, 2});  // `extended` follows from the index
    EXPECT_EQ(out, hex("b0 01 00 00 00 00 00 00 00 21 99 02 00"));
    // Eight is the first index that needs two bytes.
    out.clear();
    encode(out, Counter{{7, false}, 2});
    encode(out, Counter{{8, false}, 2});
    EXPECT_EQ(out, hex("9f 02 00 21 98 02 00"));
}

TEST(Padding, IsARun) {
    EXPECT_EQ(collect(hex("00 00 00 01 00 98 01 00 00 00")).text(),
              "0+3 PADDING bytes=3\n3+1 END\n4+1 PADDING bytes=1\n5+3 COUNTER index=0 cycles=1\n8+2 PADDING bytes=2\n");
}

// Section 4.1: to the next multiple in the stream; from an aligned place, a whole unit.
TEST(Alignment, SkipsToTheNextPlace) {
    EXPECT_EQ(collect(hex("01 01 01 22 00 aa bb cc 01")).text(),
              "0+1 END\n1+1 END\n2+1 END\n3+5 ALIGNMENT skip=8/5\n8+1 END\n");
    EXPECT_EQ(collect(hex("22 00 aa bb cc dd ee ff 01")).text(), "0+8 ALIGNMENT skip=8/8\n8+1 END\n");
    EXPECT_EQ(collect(hex("01 20 00 01")).text(), "0+1 END\n1+1 ALIGNMENT skip=2/1\n2+1 PADDING bytes=1\n3+1 END\n");
    EXPECT_EQ(collect(hex("20 00 01")).text(), "0+2 ALIGNMENT skip=2/2\n2+1 END\n");
    EXPECT_EQ(collect(hex("23 00 01 01")).text(), "0+4 GAP incomplete packet\n");
    const auto bytes = hex("01 06 23 00 11 22 33 44 55 66 77 88 99 aa bb cc 01");
    const auto whole = collect(bytes);
    EXPECT_EQ(whole.text(), "0+1 END\n1+1 GAP reserved header\n2+14 ALIGNMENT skip=16/14\n16+1 END\n");
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) EXPECT_EQ(collect(bytes, {cut}).items, whole.items) << cut;
}

// The header alone shows the size of the unit, and itself has two bytes.
TEST(Alignment, HeaderOfEachUnit) {
    EXPECT_EQ(Skip{}, (Skip{2, 2}));  // the smallest
    for (unsigned exponent = 0; exponent < 16; ++exponent) {
        const std::vector<std::uint8_t> header{static_cast<std::uint8_t>(0x20U | exponent), 0};
        std::vector<Skip> skips;
        const Parsed parsed = parse_one(header, [&](const auto& packet, std::size_t) {
            if constexpr (std::same_as<std::decay_t<decltype(packet)>, Alignment>) skips.push_back(packet.skip);
        });
        EXPECT_EQ(parsed.step, Step::ok);
        EXPECT_EQ(skips, (std::vector<Skip>{{2U << exponent, 2}}));
        std::vector<std::uint8_t> out;
        encode(out, Alignment{{2U << exponent, 2}});
        EXPECT_EQ(out, header);
    }
}

TEST(Bad, OneByteIsLostAtATime) {
    EXPECT_EQ(collect(hex("02 1f 01")).text(), "0+2 GAP reserved header\n2+1 END\n");
    EXPECT_EQ(collect(hex("20 01 01")).text(), "0+1 GAP malformed packet\n1+1 END\n2+1 END\n");
    EXPECT_EQ(collect(hex("30 00 01")).text(), "0+1 GAP malformed packet\n1+1 PADDING bytes=1\n2+1 END\n");
    EXPECT_EQ(collect(hex("20 20 20 98 01 00")).text(),
              "0+2 GAP malformed packet\n2+4 COUNTER index=0/extended cycles=1\n");
    EXPECT_EQ(collect(hex("02 3f 01")).text(), "0+1 GAP reserved header\n1+1 GAP malformed packet\n2+1 END\n");
    EXPECT_EQ(collect(hex("02 71 01")).text(), "0+1 GAP reserved header\n1+2 GAP incomplete packet\n");
    EXPECT_EQ(collect(hex("02 20")).text(), "0+1 GAP reserved header\n1+1 GAP incomplete packet\n");
}

TEST(Text, RefusesWhatIsNoPacket) {
    for (const char* wrong : {"",
                              "ADDRES",
                              "ADDRESS index=32 address=0",
                              "ADDRESS index=8/extended address=0",
                              "ADDRESS index=0",
                              "COUNTER index=0 cycles=65536",
                              "EVENTS events=0x100/1",
                              "EVENTS events=1/3",
                              "DATA-SOURCE source=1/4",
                              "CONTEXT index=4 context=0",
                              "OPERATION-TYPE class=0 type=256",
                              "END x=1",
                              "PADDING bytes=0",
                              "ALIGNMENT skip=3/2",
                              "ALIGNMENT skip=4/5",
                              "ALIGNMENT skip=8/0",
                              "ALIGNMENT skip=131072/2",
                              "ALIGNMENT skip=1/1",
                              "UNKNOWN packet=0x3f:1",
                              "UNKNOWN packet=0x40:256",
                              "UNKNOWN packet=0x40,0x40:1",
                              "UNKNOWN packet=0x40"})
        EXPECT_FALSE(from_text(wrong).has_value()) << wrong;
}

TEST(Address, GoesBothWays) {
    wire::Random random(1);
    for (unsigned i = 0; i < 1000; ++i) {
        const std::uint64_t payload = random() & 0xf0ff'ffff'ffff'ffffU;
        EXPECT_EQ(from_program_address(program_address(payload)), payload);
    }
}

// Section 4.7: the meaning of a code depends on the core; for an unknown core it has none.
TEST(DataSource, IsNamedByTheCore) {
    EXPECT_EQ(data_source_name(0x410fd0c1, 0), "L1D");
    EXPECT_EQ(data_source_name(0x413fd401, 8), "L2D");
    EXPECT_EQ(data_source_name(0x4e0f0100, 0xd), "remote");
    EXPECT_EQ(data_source_name(0xc00fac40, 8), "L1D");
    EXPECT_EQ(data_source_name(0xc00fac40, 0xe), "");
    EXPECT_EQ(data_source_name(0x480fd060, 18), "L1D");
    EXPECT_EQ(data_source_name(0x480fd010, 0), "");
    EXPECT_EQ(data_source_name(0, 0), "");
}

/// The names of the codes 0 to 31 that have names.
std::string data_source_names(std::uint32_t midr) {
    std::string out;
    for (std::uint32_t code = 0; code < 32; ++code)
        if (const auto name = data_source_name(midr, code); !name.empty())
            out += std::to_string(code) + "=" + std::string(name) + " ";
    return out;
}

// The tables of section 4.7, completely.
TEST(DataSource, EveryCodeOfEveryCore) {
    for (const unsigned part : {0xd0cU, 0xd49U, 0xd40U, 0xd4fU, 0xd84U, 0xd4bU, 0xd4dU, 0xd81U, 0xd89U, 0xd87U, 0xd44U,
                                0xd4cU, 0xd4eU, 0xd82U, 0xd85U})
        EXPECT_EQ(data_source_names(0x410f0000U | part << 4),
                  "0=L1D 8=L2D 9=peer_core 10=local_cluster 11=system_cache 12=peer_cluster 13=remote 14=DRAM ")
            << std::hex << part;
    EXPECT_EQ(data_source_names(0x4e0f0100), data_source_names(0x410fd0c0));
    EXPECT_EQ(data_source_names(0xc00fac40),
              "0=local_chip_cache_or_device 3=system_cache 5=remote 7=DRAM 8=L1D 9=L2D ");
    EXPECT_EQ(data_source_names(0x480fd060),
              "0=peer_cpu 1=peer_cpu_modified 2=L3 3=L3_modified 4=peer_cluster 5=peer_cluster_modified "
              "6=remote_socket 7=remote_socket_modified 8=local_memory 9=remote_memory 13=non_cacheable 16=L2D "
              "17=L2D_modified 18=L1D ");
    // The part number of one implementer has no meaning with another's number.
    for (const std::uint32_t midr : {0x4e0fd0c0U, 0x410f0100U, 0x410fac40U, 0xc00fac30U, 0x410fd060U, 0x480fd010U})
        EXPECT_EQ(data_source_names(midr), "") << std::hex << midr;
}

}  // namespace
}  // namespace waymark::spe
