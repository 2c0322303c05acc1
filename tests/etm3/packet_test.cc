// Bytes ↔ packets (docs/spec/etmv3.md, 2 to 6 and 10).
#include "waymark/etm3/packet.h"

#include <gtest/gtest.h>

#include <random>

#include "etm3/support.h"
#include "support/bytes.h"

namespace waymark::etm3 {
namespace {

using test::list, test::with_async;
using waymark::test::hex;

/// The listing of a stream behind an A-sync, cut in several ways.
std::string text(std::string_view bytes, const Config& config) {
    const auto stream = with_async(hex(bytes));
    const std::string whole = list(stream, config).text;
    for (const std::size_t chunk : {1U, 2U, 3U, 5U}) EXPECT_EQ(list(stream, config, chunk).text, whole);
    const std::string first = "A-SYNC zeros=5\n";
    EXPECT_TRUE(whole.starts_with(first)) << whole;
    return whole.substr(first.size());
}

TEST(Etm3Packets, PHeadersWithoutCycles) {
    const Config config;
    EXPECT_EQ(text("c8 8a 94 cc c4 d0 80", config),
              "P-HEADER atoms=EEN/1\nP-HEADER atoms=NE/2\nP-HEADER atoms=EEEEE/1\nP-HEADER atoms=EEEN/1\n"
              "P-HEADER atoms=EN/1\nP-HEADER atoms=EEEEN/1\nP-HEADER atoms=/1\n");
    // Headers of other forms are reserved.
    for (unsigned byte = 0x80; byte < 0x100; byte += 2) {
        const bool two = (byte & 2U) != 0;
        EXPECT_EQ(outcomes_of(static_cast<std::uint8_t>(byte), false).valid(), !two || byte < 0x90) << byte;
    }
}

TEST(Etm3Packets, PHeadersWithCycles) {
    const Config config{.cycle_accurate = true};
    EXPECT_EQ(text("84 88 9c c0 c4 82 86 8a 8e bc a0 ac e4 80 92 96", config),
              "P-HEADER atoms=WE/1\nP-HEADER atoms=WEWE/1\nP-HEADER atoms=WEWEWEWEWEWEWE/1\nP-HEADER atoms=WN/1\n"
              "P-HEADER atoms=WEWN/1\nP-HEADER atoms=WEE/2\nP-HEADER atoms=WEN/2\nP-HEADER atoms=WNE/2\n"
              "P-HEADER atoms=WNN/2\nP-HEADER atoms=WWWWWWWW/3\nP-HEADER atoms=W/3\nP-HEADER atoms=WWWW/3\n"
              "P-HEADER atoms=WWE/3\nP-HEADER atoms=W/0\nP-HEADER atoms=E/4\nP-HEADER atoms=N/4\n");
}

TEST(Etm3Packets, ISyncsAndOriginalBranches) {
    const Config config{.cycle_accurate = true, .timestamp_bytes = 9};
    EXPECT_EQ(text("70 8f 3c 21 99 f6 04 c0 81 6d 2b d7 ba 86 db 0d 76 0c 66 "
                   "42 bd 9a c3 ce af 90 80 80 00 42 df 1e 04 8f 3c",
                   config),
              "I-SYNC-CYCLES cycles=7695 LSiP=0 reason=1 J=0 NS=0 AltISA=0 HYP=0 address=0xc004f699: trace enabled: "
              "0xc004f698 T32, Secure\n"
              "BRANCH-ADDRESS target=0x1b40/2: to 0xc004f680 T32\nBRANCH-ADDRESS target=0x15/1: to 0xc004f6aa T32\n"
              "BRANCH-ADDRESS target=0xb6c33aac/5/A32: to 0xb6c33aac A32\nEXCEPTION-RETURN\nTRIGGER\nIGNORE\n"
              "TIMESTAMP R=0 value=0x82f9d0cd3d/9: 0x82f9d0cd3d\nTIMESTAMP R=0 value=0xf5f/2: 0x82f9d0cf5f\n"
              "CYCLE-COUNT cycles=7695\n");
}

TEST(Etm3Packets, AlternativeBranchesAndExceptionsOfTheMProfile) {
    const Config config{.alternative_branches = true, .m_profile = true};
    // IRQ8 takes two information bytes, a cancelled LDM a third; an SVC with Resume leaves out the second.
    EXPECT_EQ(text("08 21 07 03 00 08 b5 05 5f 81 42 90 01 81 42 b0 81 43 81 42 96 45", config),
              "I-SYNC LSiP=0 reason=1 J=0 NS=0 AltISA=0 HYP=0 address=0x8000307: trace enabled: 0x08000306 T32, "
              "Secure\n"
              "BRANCH-ADDRESS target=0x15a/2: to 0x080002b4 T32\nBRANCH-ADDRESS target=0x2f/1: to 0x080002de T32\n"
              "BRANCH-ADDRESS target=0x80/2+info C=1 AltISA=0 cancel=0 exception[3:0]=8 NS=0 C[1]=0 is resume=0 "
              "information[1]=1: exception 24 (external interrupt), to 0x08000100 T32, Secure\n"
              "BRANCH-ADDRESS target=0x80/2+info C=1 AltISA=0 cancel=1 exception[3:0]=8 NS=0 C[1]=1 is resume=0 "
              "information[1]=1 resume=3: last instruction cancelled, exception 24 (external interrupt), to 0x08000100 "
              "T32, Secure\n"
              "BRANCH-ADDRESS target=0x80/2+info C=1 AltISA=0 cancel=0 exception[3:0]=0xb NS=0 C[1]=0 is resume=1 "
              "information[1]=5: exception 11 (SVC), to 0x08000100 T32, Secure\n");
}

TEST(Etm3Packets, AreWrittenAndReadAgain) {
    std::mt19937_64 random(1);
    for (unsigned n = 0; n < 64; ++n) {
        Config config{.cycle_accurate = (n & 1U) != 0,
                      .data_value = (n & 2U) != 0,
                      .data_address = (n & 4U) != 0,
                      .data_only = (n & 0x18U) == 0x18,
                      .alternative_branches = (n & 0x20U) != 0};
        config.context_id_bytes = std::array<std::uint8_t, 4>{0, 1, 2, 4}[n % 4];
        config.timestamp_bytes = n % 3 == 0 ? 9 : 7;
        for (unsigned i = 0; i < 20; ++i)
            Packets::for_each([&]<class P>() {
                P packet{};
                wire::Generator generator(random);
                P::fields(generator, packet, config);
                if (!generator.possible()) return;
                std::vector<std::uint8_t> bytes = with_async({});
                encode(bytes, packet, config);
                const auto found = list(bytes, config);
                ASSERT_EQ(found.packets.size(), 2U) << to_text(packet, config) << "\n" << found.text;
                EXPECT_EQ(found.packets[1], Packet(packet)) << to_text(packet, config) << "\n" << found.text;
                const auto again = from_text(to_text(packet, config), config);
                ASSERT_TRUE(again.has_value()) << again.error().message;
                EXPECT_EQ(*again, Packet(packet)) << to_text(packet, config);
            });
    }
}

TEST(Etm3Packets, DataPackets) {
    const Config config{.data_value = true, .data_address = true};
    EXPECT_EQ(text("2e 80 80 80 80 02 78 56 34 12 0a ef be 54 30 01 62 6a 50 7e", config),
              "NORMAL-DATA A=1 SS=3 address=0x20000000/5 value=0x12345678: at 0x20000000, value 0x12345678\n"
              "NORMAL-DATA A=0 SS=2 value=0xbeef: at 0x20000004, value 0xbeef\n"
              "OUT-OF-ORDER-PLACEHOLDER A=0 tag=1: at 0x20000008\nGAP reserved header\n")
        << "0x30 is no header";
    EXPECT_EQ(text("54 24 01 62 6a 50 7e", config),
              "OUT-OF-ORDER-PLACEHOLDER A=0 tag=1\nOUT-OF-ORDER-DATA tag=1 SS=1 value=1\nDATA-SUPPRESSED\n"
              "VALUE-NOT-TRACED A=0\nSTORE-FAILED\nEXCEPTION-ENTRY\n");
    // Without data trace none of these packets is possible.
    EXPECT_EQ(text("62", {}), "GAP malformed packet\n");
}

}  // namespace
}  // namespace waymark::etm3
