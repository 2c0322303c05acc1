// Lists of jumps as debuggers and scripts print them (docs/spec/mtb.md, 7).
#include "waymark/mtb/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace waymark::mtb {
namespace {

using Jumps = std::vector<JumpPacket>;

JumpPacket jump(std::uint32_t source, std::uint32_t destination, bool a = false, bool s = false) {
    return {{source, a}, {destination, s}};
}
/// An SVC, its handler and return, a loop, an interrupt.
const Jumps& packets() {
    static const Jumps all{jump(0x146, 0xd8, false, true),
                           jump(0xf6, 0x70, true),
                           jump(0x78, 0xfffffff8),
                           jump(0xfffffff8, 0xf6, true),
                           jump(0xf8, 0xb4),
                           jump(0xd0, 0xc0),
                           jump(0xd0, 0xc0),
                           jump(0xd2, 0xfc),
                           jump(0x108, 0x40, true)};
    return all;
}
/// The list in one line or several, as `form` prints each jump.
std::string text(auto&& form, bool newest_first = false) {
    Jumps all = packets();
    if (newest_first) std::reverse(all.begin(), all.end());
    std::string out;
    for (const JumpPacket& p : all) out += form(p);
    return out;
}
void expect_all(const std::string& list, bool newest_first = false) {
    const auto found = read_listing(list);
    ASSERT_TRUE(found) << list;
    EXPECT_EQ(found->packets, packets()) << list;
    EXPECT_EQ(found->newest_first, newest_first);
    EXPECT_TRUE(found->marks_known);
    EXPECT_EQ(found->unreadable, 0u);
    EXPECT_EQ(found->jumps, packets().size());
}

TEST(MtbListing, ReadsTheWordToAsAnArrow) {
    expect_all(text([](const JumpPacket& p) {
        return fmt::format("from {:#010x} to {:#010x}{}{}\n", p.source.address, p.destination.address,
                           p.atomic() ? " A" : "", p.starts() ? " S" : "");
    }));
}
TEST(MtbListing, ReadsSourcesAndDestinationsByTheirNames) {
    const auto raw = [](const FlaggedAddress& a) { return a.address | (a.flag ? 1U : 0U); };
    expect_all(text([&](const JumpPacket& p) {
        return fmt::format("src={:#010x} dst={:#010x}\n", raw(p.source), raw(p.destination));
    }));
    int n = 0;
    expect_all(text([&](const JumpPacket& p) {
        return fmt::format("[{:3}] src=0x{:08x} dst=0x{:08x} A={:d} S={:d}\r\n", n++, p.source.address,
                           p.destination.address, p.atomic(), p.starts());
    }));
    expect_all(text([&](const JumpPacket& p) {
        return fmt::format("Source: {:08X}{}, Destination: {:08X}{}\n", p.source.address, p.atomic() ? " A" : "",
                           p.destination.address, p.starts() ? " S" : "");
    }));
    expect_all(
        text([&](const JumpPacket& p) { return fmt::format("{:#x} -> {:#x}\n", raw(p.source), raw(p.destination)); }));
}

TEST(MtbListing, ReadsWhatToolsPrint) {
    expect_all(text([](const JumpPacket& p) {
        return fmt::format("{} 0x{:08x} {} 0x{:08x}\n", p.atomic() ? 'A' : '-', p.source.address,
                           p.starts() ? 'S' : '-', p.destination.address);
    }));
    // A script for gdb, with functions and lines of the program.
    expect_all(text([](const JumpPacket& p) {
        const bool back = p.source.address >= first_return_value;
        return fmt::format("{}>S: {:#x} - {}\n D: {:#x} - exception @ ./a/source/start.c:1146\n",
                           p.starts() ? "Begin Trace Session\n" : "", p.source.address,
                           back         ? "Exception Return"
                           : p.atomic() ? "Exception (or debug) Entry from main @ ./main.c:101"
                                        : "a @ ./source/main.c:1568",
                           p.destination.address);
    }));
    // A script for gdb that prints a packet in a line.
    expect_all(text([](const JumpPacket& p) {
        return fmt::format("{}>S: {:#x} D: {:#x}\n", p.starts() ? "Begin Trace Session\n" : "",
                           p.source.address | (p.atomic() ? 1U : 0U), p.destination.address);
    }));
    expect_all(text([](const JumpPacket& p) {
        return fmt::format("S: {:#x} D: {:#x}\n", p.source.address | (p.atomic() ? 1U : 0U),
                           p.destination.address | (p.starts() ? 1U : 0U));
    }));
    // Tables, as windows of debuggers export them.
    unsigned row = 0;
    const auto cells = [&](const JumpPacket& p) {
        return fmt::format("{:4}  0x{:08X}  0x{:08X}  {:d} {:d}\n", row++, p.source.address, p.destination.address,
                           p.atomic(), p.starts());
    };
    expect_all("MTB trace buffer\nIndex  Source      Destination  A S\n" + text(cells));
    expect_all("To,From,A-bit,S\n" + text([](const JumpPacket& p) {
                   return fmt::format("{:#x},{:#x},{:d},{:d}\n", p.destination.address, p.source.address, p.atomic(),
                                      p.starts());
               }));
    expect_all("Source Address;Destination Address;A;S\n" + text([](const JumpPacket& p) {
                   return fmt::format("{:08x};{:08x};{:d};{:d}\n", p.source.address, p.destination.address, p.atomic(),
                                      p.starts());
               }));
    // A script of a vendor: registers first, then the newest packet, with disassembly.
    std::string list =
        "__MTB_START__\nMTB_BASE        hex: 0x2007e000  bin: 00100000000001111110000000000000\n"
        "MTB_MASTER      hex: 0x80000009  bin: 10000000000000000000000000001001\n"
        "MTB_POSITION    hex: 0x00001e2c  bin: 00000000000000000001111000101100\n";
    list += text(
        [](const JumpPacket& p) {
            return fmt::format(
                "***********************************0x2007fe20***********************************\n"
                "SOURCE ADDRESS = 0x{:08x} A_BIT = {:#x}\n\t/home/source/task.c:1294\n\t\t0x9c7e "
                "<wait+142>:\tpop\t{{r3, pc}}\n"
                "DEST ADDRESS   = 0x{:08x} S_BIT = {:#x}\n\t../main.c:150\n\t\t0xa81a <task+18>:\tldr\tr3, [pc, "
                "#40]\t; "
                "(0xa844 <task+60>)\n\n",
                p.source.address, p.atomic() ? 1 : 0, p.destination.address, p.starts() ? 1 : 0);
        },
        true);
    expect_all(list + "__MTB_END__\n", true);
}

TEST(MtbListing, RowsOfUnwrittenMemoryAreNoJumps) {
    const std::string head = "Source Destination\n", rows = "00000146 000000d9\n000000f7 00000070\n00000078 fffffff8\n";
    const auto found = read_listing(head + rows + "00000000 00000000\n00000000 00000000\n");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->jumps, 3U);
    EXPECT_EQ(found->packets.size(), 3U);
}

TEST(MtbListing, AReturnIsNoJumpEvenWithoutMarks) {
    const auto found = read_listing(text([](const JumpPacket& p) {
        return fmt::format("src={:#010x} dst={:#010x}\n", p.source.address, p.destination.address);
    }));
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->marks_known);
    Jumps expected = packets();
    for (JumpPacket& p : expected) {
        p.source.flag = p.source.address >= first_return_value;
        p.destination.flag = false;
    }
    EXPECT_EQ(found->packets, expected);
}

TEST(MtbListing, KeepsThePlacesOfPacketsThatAreLeftOut) {
    const auto found = read_listing(
        "...\n>S: 0x200 - f @ a.c:1\n D: 0x100 - f @ a.c:1\n...\n...\n>S: 0x8020 - g @ a.c:1\n D: 0x8000 - g @ a.c:1\n"
        ">S: 0x8010 - g @ a.c:1\n D: 0x9000 - g @ a.c:1\n...\n");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->packets, (Jumps{jump(0x200, 0x100), {}, jump(0x8020, 0x8000), jump(0x8010, 0x9000)}));
    EXPECT_EQ(found->jumps, 3u);
}

TEST(MtbListing, CountsWhatLacksAPart) {
    std::string list = text([](const JumpPacket& p) {
        return fmt::format("source={:#x}\ndestination={:#x}\n", p.source.address, p.destination.address);
    });
    const auto found = read_listing("destination=0x40\n" + list + "source=0x88\n");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->unreadable, 2u);
    EXPECT_EQ(found->jumps, packets().size());
}

TEST(MtbListing, RowsOfATableMayHaveMoreFieldsThanItsHead) {
    expect_all("From To A S\n" + text([](const JumpPacket& p) {
                   return fmt::format("{:#x} {:#x} {:d} {:d} main+0x10 in main.c\n", p.source.address,
                                      p.destination.address, p.atomic(), p.starts());
               }));
    expect_all("#,From,To,A,S,Function\n" + text([](const JumpPacket& p) {
                   return fmt::format("1,{:#x},{:#x},{:d},{:d},main + 0x10,,0x{:x}\n", p.source.address,
                                      p.destination.address, p.atomic(), p.starts(), p.source.address);
               }));
}
TEST(MtbListing, ARowWithoutAnAddressIsAPacketThatIsLeftOut) {
    const auto found = read_listing("From,To\n0x200,0x100\n0x108,\n0x8020,0x8000\n0x8010,0x9000\n0x9010,0x9000\n");
    ASSERT_TRUE(found);
    EXPECT_EQ(found->packets,
              (Jumps{jump(0x200, 0x100), {}, jump(0x8020, 0x8000), jump(0x8010, 0x9000), jump(0x9010, 0x9000)}));
    EXPECT_EQ(found->unreadable, 1u);
}

TEST(MtbListing, OtherTextsAreNone) {
    EXPECT_FALSE(read_listing(""));
    EXPECT_FALSE(read_listing("src=0x146 dst=0xd8\n"));
    // A log of a network, and transfers of memory to any addresses.
    EXPECT_FALSE(read_listing("IN=eth0 SRC=10.0.0.1 DST=10.0.0.7\nIN=eth0 SRC=10.0.0.2 DST=10.0.0.7\n"));
    EXPECT_FALSE(
        read_listing("src=0x80000000 dst=0x90000000 len=64\nsrc=0x70000000 dst=0xa0000000 len=64\n"
                     "src=0x80000000 dst=0x30000000 len=64\n"));
    EXPECT_FALSE(read_listing("0x20000000:\t0x00000146\t0x000000d9\n0x20000008:\t0x000000f7\t0x00000070\n"));
    EXPECT_FALSE(read_listing("a source 0x1\na destination 0x2\nsource of text\n"));
}

}  // namespace
}  // namespace waymark::mtb
