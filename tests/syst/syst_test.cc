// MIPI SyS-T and the layouts of Linux (docs/spec/sys-t.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "waymark/syst/describe.h"
#include "waymark/syst/printf.h"
#include "waymark/syst/records.h"

namespace waymark::syst {
namespace {

using protocol::Message;
using protocol::MessageKind;
using protocol::Record;
using test::hex;

std::vector<std::uint8_t> bytes_of(const std::string& head, const std::string& text, const std::string& tail = "") {
    auto out = hex(head);
    out.insert(out.end(), text.begin(), text.end());
    const auto rest = hex(tail);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
}
Record described(const std::vector<std::uint8_t>& bytes, const Collateral* collateral = nullptr,
                 const Client* client = nullptr, Layout layout = Layout::sys_t) {
    return Describer(layout, collateral, client)(bytes, 1, 2);
}
/// Type, severity, text and problem.
std::string words(const Record& r) {
    return r.type + " " + r.severity + " [" + r.text + "]" + (r.problem.empty() ? "" : " ! " + r.problem);
}

constexpr const char* guid = "49 4e 54 43 a2 ae 4c 70 ab b5 d1 a7 9e 9c ea 35";
const std::string hello = "Hello world!";

TEST(SystMessages, AreThoseOfTheVectors) {
    const Record first = described(bytes_of(std::string("42 10 80 01 ") + guid, hello));
    EXPECT_EQ(words(first), "STRING:GENERIC INFO [Hello world!]");
    EXPECT_EQ(first.guid, "{494e5443-a2ae-4c70-abb5-d1a79e9cea35}");
    EXPECT_EQ(first.unit, 1U);
    EXPECT_EQ(first.origin, "");
    const Record second = described(bytes_of("32 24 01 01", hello, "90 ff 19 ff"));
    EXPECT_EQ(words(second), "STRING:GENERIC WARNING [Hello world!]");
    EXPECT_EQ(second.checksum, true);
    EXPECT_EQ(second.origin, "1");
    EXPECT_EQ(second.unit, 2U);
    EXPECT_EQ(described(bytes_of("32 26 01 01 0c 00", hello, "d3 06 b8 ea")).checksum, true);
    EXPECT_EQ(described(bytes_of("32 23 01 01 00 cd ab 78 56 0c 00", hello)).location, "43981:22136");
    EXPECT_EQ(described(bytes_of("32 23 01 01 02 78 56 34 12 0c 00", hello)).location, "0x12345678");
    EXPECT_EQ(described(bytes_of("32 23 01 01 03 88 77 66 55 44 33 22 11 0c 00", hello)).location,
              "0x1122334455667788");
    EXPECT_EQ(described(bytes_of("32 23 01 01 01 cd ab 00 00 78 56 00 00 0c 00", hello)).location, "43981:22136");
    EXPECT_EQ(words(described(bytes_of("32 22 01 05 07 00", "(null)", "00"))), "STRING:INVALIDPARAM WARNING [(null)]");
    EXPECT_EQ(words(described(bytes_of("42 22 01 0b 08 00", "%+d", "00 44 33 22 11"))),
              "STRING:PRINTF32 INFO [+287454020]");
    EXPECT_EQ(words(described(bytes_of("42 22 01 0b 0c 00", "%*d", "00 ab 00 00 00 44 33 22 11"))),
              "STRING:PRINTF32 INFO [" + std::string(171 - 9, ' ') + "287454020]");
    EXPECT_EQ(words(described(bytes_of("42 22 01 0b 0b 00", "%f", "00 ea 2e 44 54 fb 21 09 40"))),
              "STRING:PRINTF32 INFO [3.141593]");
    EXPECT_EQ(words(described(bytes_of("42 22 01 0b 03 00", "%%", "00"))), "STRING:PRINTF32 INFO [%]");
    EXPECT_EQ(words(described(hex("46 22 01 3f 02 00 cd ab"))), "RAW:63 INFO [cdab]");
    EXPECT_EQ(words(described(hex("08 22 01 01 10 00 dd cc bb aa 78 56 34 12 40 42 0f 00 00 00 00 00"))),
              "CLOCK:TRANSPORT_SYNC MAX [1311768467732155613 at 1000000 Hz]");
    EXPECT_EQ(words(described(hex("00 22 01 02 08 00 88 77 66 55 44 33 22 11"))),
              "BUILD:LONG MAX [0x1122334455667788]");
    EXPECT_EQ(words(described(hex("71 56 34 12"))), "SHORT32 MAX [0x1234567]");
    EXPECT_EQ(words(described(hex("87 77 66 55 44 33 22 11"))), "SHORT64 MAX [0x112233445566778]");
    EXPECT_EQ(words(described(hex("f0 ff ff c0"))), "BUILD:COMPACT32 MAX [0x3fffff]");
    EXPECT_EQ(words(described(hex("f0 ff ff c1 ff ff ff ff"))), "BUILD:COMPACT64 MAX [0x3fffffffffffff]");
    EXPECT_EQ(words(described(hex("39 22 01 00 06 00 dd cc bb aa 01 02"))), "SBD:ID32 WARNING [0xaabbccdd 0102]");
}

TEST(SystMessages, OfSixtyFourBitClientsHaveWideArguments) {
    EXPECT_EQ(words(described(bytes_of("42 20 01 0c", "%ld %d %p %s",
                                       "00 fe ff ff ff ff ff ff ff 05 00 00 00 "
                                       "10 00 00 00 01 00 00 00 41 00"))),
              "STRING:PRINTF64 INFO [-2 5 0x100000010 A]");
    Collateral c;
    ASSERT_FALSE(
        c.add("<Collateral xmlns='http://www.mipi.org/1.1/sys-t'><Client Name='wide'><Guids>"
              "<Guid ID='{494E5443-A2AE-4C70-ABB5-D1A79E9CEA35}'/></Guids><Catalog32><Format ID='16'>%lu|%zd"
              "</Format></Catalog32><Catalog64><Format ID='0x1122334455667788'>%lx</Format></Catalog64></Client>"
              "</Collateral>",
              "c.xml"));
    EXPECT_EQ(
        words(described(bytes_of("43 10 80 05", "",
                                 std::string(guid) + " 10 00 00 00 01 00 00 00 01 00 00 00 ff ff ff ff ff ff ff ff"),
                        &c)),
        "CATALOG:ID32P64 INFO [4294967297|-1]");
    EXPECT_EQ(
        words(described(
            bytes_of("43 10 80 06", "", std::string(guid) + " 88 77 66 55 44 33 22 11 ef cd ab 89 67 45 23 01"), &c)),
        "CATALOG:ID64P64 INFO [123456789abcdef]");
}

TEST(SystMessages, ThatDoNotFitSayWhy) {
    EXPECT_EQ(described(hex("42 22")).problem, "2 bytes; a header has 4");
    EXPECT_EQ(described(hex("42 22 01 01 05 00 41")).problem, "its payload has 1 byte, its length says 5");
    EXPECT_EQ(described(hex("42 22 01 01 01 00 41 42")).problem, "its payload has 2 bytes, its length says 1");
    EXPECT_EQ(described(hex("42 10 80 01 49 4e")).problem, "it ends after 6 bytes, in its GUID");
    EXPECT_EQ(described(hex("71 56 34 12 00")).problem, "5 bytes; a message of this type has 4");
    EXPECT_EQ(described(hex("44 22 01 01 00 00")).problem, "its type is reserved");
    EXPECT_EQ(described(hex("c2 20 01 01")).problem, "reserved bits of the header are set");
    EXPECT_EQ(described(hex("42 22 01 0b 02 00 25 64")).problem, "its format has no end");
    EXPECT_EQ(described(hex("42 22 01 0b 03 00 25 64 00")).problem, "the arguments end after 0 bytes");
    const Record wrong = described(bytes_of("32 24 01 01", hello, "90 ff 19 fe"));
    EXPECT_EQ(wrong.checksum, false);
    EXPECT_EQ(wrong.problem, "its checksum is wrong");
    EXPECT_EQ(described(hex("43 22 01 01 04 00 01 00 00 00")).problem, "no catalogue of its client");
    // A text without its zero, and an empty text, are no faults.
    EXPECT_EQ(words(described(hex("42 22 01 01 00 00"))), "STRING:GENERIC INFO []");
}

TEST(SystPrintf, FormatsPackedArguments) {
    const auto text = [](const char* format, const char* bytes, unsigned word = 4) {
        const Formatted out = format_packed(format, hex(bytes), word);
        return out.text + (out.problem.empty() ? "" : " ! " + out.problem);
    };
    EXPECT_EQ(text("%hhd %hd %d %u", "ff 01 00 00 ff ff 01 00 ff ff ff ff ff ff ff ff"), "-1 -1 -1 4294967295");
    EXPECT_EQ(text("%ld %x", "fe ff ff ff 10 00 00 00"), "-2 10");
    EXPECT_EQ(text("%ld %x", "fe ff ff ff ff ff ff ff 10 00 00 00", 8), "-2 10");
    EXPECT_EQ(text("%zu %tx %jd", "01 00 00 00 02 00 00 00 ff ff ff ff ff ff ff ff"), "1 2 -1");
    EXPECT_EQ(text("%zu %td", "01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00", 8), "1 2");
    EXPECT_EQ(text("%s|%5s|%-5s|%.2s|", "41 00 42 00 43 00 44 45 46 00"), "A|    B|C    |DE|");
    EXPECT_EQ(text("%p %p", "10 00 00 00 20 00 00 00"), "0x10 0x20");
    EXPECT_EQ(text("%p", "10 00 00 00 01 00 00 00", 8), "0x100000010");
    EXPECT_EQ(text("%c%c|%3c", "41 00 00 00 42 00 00 00 43 00 00 00"), "AB|  C");
    EXPECT_EQ(text("a%nb", "00 00 00 00"), "ab");
    EXPECT_EQ(text("%*.*f", "08 00 00 00 02 00 00 00 00 00 00 00 00 00 f8 3f"), "    1.50");
    EXPECT_EQ(text("%-*d|", "fb ff ff ff 07 00 00 00"), "7    |");
    EXPECT_EQ(text("%#lo %+i", "08 00 00 00 05 00 00 00"), "010 +5");
    EXPECT_EQ(text("%q", "00 00 00 00"), "%q ! no conversion %q");
    EXPECT_EQ(text("%d %s", "01 00 00 00 41 42"), "1 %s ! a string has no end");
    EXPECT_EQ(text("%99999d", "01 00 00 00"), "%99999d ! a width or precision of 10240");
    EXPECT_EQ(text("%*d", "00 00 00 40 01 00 00 00"), "%*d ! a width or precision of 1073741824");
    EXPECT_EQ(text("%", ""), "% ! the format ends inside a conversion");
    EXPECT_EQ(text("x", "01"), "x ! of 1 byte of arguments 1 is in no conversion");
    // The longest double.
    EXPECT_EQ(text("%.1024f", "ff ff ff ff ff ff ef 7f").size(), 309U + 1 + 1024);
}

constexpr const char* xml = R"(<?xml version="1.0"?>
<s:Collateral xmlns:s="http://www.mipi.org/1.0/sys-t"><s:Client Name="one">
<s:Guids><s:Guid ID="{494E5443-A2AE-4C70-ABB5-D1A79E9CEA35}">user</s:Guid>
<s:Guid ID="{00000000-0001-0000-0000-000000000000}" Mask="{00000000-FFFF-0000-8000-000000000000}">kernel</s:Guid></s:Guids>
<s:Builds><s:Build ID="0x10000" Mask="0xFFFF0000">1.x</s:Build></s:Builds>
<s:Modules><s:Module ID="1">net</s:Module></s:Modules>
<s:SourceFiles><s:File ID="43981">main.c</s:File></s:SourceFiles>
<s:Catalog32><s:Format ID="0x10" File="a.c" Line="7"><![CDATA[x=%d < 3]]></s:Format></s:Catalog32>
<s:Catalog64><s:Format ID="0x1122334455667788">&lt;%s&gt;</s:Format></s:Catalog64>
<s:Short32><s:Format ID="0x0F000000" Mask="0x0F000000">warning with code %d</s:Format></s:Short32>
<s:Write><s:Protocol ID="1" Mask="0">P%d</s:Protocol></s:Write>
</s:Client></s:Collateral>)";

TEST(SystCollateral, GivesTextsNamesAndPlaces) {
    Collateral c;
    const auto added = c.add(xml, "c.xml");
    ASSERT_FALSE(added.has_value()) << added->message;
    const Record message = described(bytes_of("43 20 80 01", "", std::string(guid) + " 10 00 00 00 05 00 00 00"), &c);
    EXPECT_EQ(words(message), "CATALOG:ID32P32 INFO [x=5 < 3]");
    EXPECT_EQ(message.location, "a.c:7");
    EXPECT_EQ(message.client, "one");
    // Without a GUID: identified by master 1.
    const Record kernel = described(hex("43 22 01 02 0a 00 88 77 66 55 44 33 22 11 41 00"), &c);
    EXPECT_EQ(words(kernel), "CATALOG:ID64P32 INFO [<A>]");
    EXPECT_EQ(kernel.origin, "net");
    EXPECT_EQ(described(bytes_of("32 23 01 01 00 cd ab 78 56 0c 00", hello), &c).location, "main.c:22136");
    EXPECT_EQ(words(described(hex("21 00 00 f0"), &c)), "SHORT32 MAX [warning with code 2]");
    EXPECT_EQ(words(described(hex("46 22 01 05 01 00 07"), &c)), "RAW:P5 INFO [07]");
    EXPECT_EQ(described(hex("43 22 01 01 04 00 99 00 00 00"), &c).problem, "the catalogue does not have its number");
    // Another master; the option names the client nevertheless.
    EXPECT_EQ(words(Describer(Layout::sys_t, &c, nullptr)(hex("21 00 00 f0"), 9, 0)), "SHORT32 MAX [0xf000002]");
    EXPECT_EQ(words(Describer(Layout::sys_t, &c, c.named("one"))(hex("21 00 00 f0"), 9, 0)),
              "SHORT32 MAX [warning with code 2]");
    // A build number that the client does not have.
    Describer describe(Layout::sys_t, &c, nullptr);
    const auto build = [&](const char* number) {
        return bytes_of("00 20 80 02", "", std::string(guid) + " " + number);
    };
    const auto text = bytes_of("42 20 80 01", "hi", "");
    auto with_guid = bytes_of("42 20 80 01", "", guid);
    with_guid.push_back('!');
    (void)describe(build("00 00 01 00 00 00 00 00"), 1, 2);
    EXPECT_EQ(describe(with_guid, 1, 2).client, "one");
    (void)describe(build("00 00 02 00 00 00 00 00"), 1, 2);
    EXPECT_EQ(describe(with_guid, 1, 2).client, "");
}

TEST(SystCollateral, KeepsItemsWithElementsInside) {
    Collateral c;
    ASSERT_FALSE(
        c.add("<Collateral xmlns='http://www.mipi.org/1.0/sys-t'><Client Name='x'><Short32>"
              "<Format ID='0xf'>one<b>two</b>three</Format></Short32></Client></Collateral>",
              "c.xml"));
    ASSERT_FALSE(c.clients().empty());
    const Item* const item = c.clients().front().short32.find(0xf);
    ASSERT_NE(item, nullptr);
    EXPECT_EQ(item->text, "onethree");
}

TEST(SystCollateral, RefusesWhatLiesOrExplodes) {
    const auto error = [](const std::string& text) {
        Collateral c;
        const auto added = c.add(text, "c.xml");
        return added.has_value() ? added->message : std::string("none");
    };
    EXPECT_EQ(error("<a"), "c.xml: line 1: unclosed token");
    EXPECT_EQ(error("<a/>"), "c.xml: line 1: no element Collateral of http://www.mipi.org/1.0/sys-t");
    EXPECT_EQ(error("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"), "c.xml: line 1: a DOCTYPE, which is not read");
    const std::string begin = "<Collateral xmlns='http://www.mipi.org/1.0/sys-t'><Client Name='x'>";
    EXPECT_EQ(error(begin + "\n<Short32><Format ID='abc'/></Short32></Client></Collateral>"),
              "c.xml: line 2: 'abc' is not a number");
    EXPECT_EQ(error(begin + "<Guids><Guid ID='{1}'/></Guids></Client></Collateral>"),
              "c.xml: line 1: '{1}' is no GUID");
    EXPECT_EQ(error(begin + "<Short32><Format/></Short32></Client></Collateral>"),
              "c.xml: line 1: an element Format without ID");
    std::string deep = begin;
    for (unsigned i = 0; i < 20; ++i) deep += "<d>";
    EXPECT_EQ(error(deep), "c.xml: line 1: elements are nested too deeply");
    EXPECT_EQ(error(begin + "<Short32><Format ID='1'>" + std::string(70000, 'x') +
                    "</Format></Short32></Client></Collateral>"),
              "c.xml: line 1: a text of more than 65,536 bytes");
    EXPECT_EQ(error(begin + "</Client></Collateral>"), "none");
    std::string clients = "<Collateral xmlns='http://www.mipi.org/1.0/sys-t'>";
    for (unsigned i = 0; i < 65537; ++i) clients += "<Client/>";
    EXPECT_EQ(error(clients), "c.xml: line 1: more than 65,536 clients");
}

class Kept final : public protocol::MessageListener {
public:
    void message(const Message& m) override {
        if (m.kind == MessageKind::record)
            out += std::to_string(*m.master) + ":" + std::to_string(*m.channel) + " " + m.record->text +
                   (m.record->problem.empty() ? "" : " ! " + m.record->problem) + "\n";
        else
            out += std::string(name(m.kind)) + "\n";
    }
    std::string out;
};

struct Writes {
    explicit Writes(Layout layout) : records(layout, nullptr, nullptr, kept) {}
    void write(std::uint32_t channel, const std::string& text, bool timed, bool marked = false) {
        Message m = of(MessageKind::text, channel);
        m.value = 0;
        for (std::size_t i = text.size(); i != 0; --i)
            m.value = *m.value << 8 | static_cast<unsigned char>(text[i - 1]);
        m.value_bytes = static_cast<std::uint8_t>(text.size());
        if (timed) m.timestamp = at.value;
        m.marked = marked;
        records.message(m);
    }
    void flag(std::uint32_t channel) { records.message(of(MessageKind::flag, channel)); }
    Message of(MessageKind kind, std::uint32_t channel) {
        Message m;
        m.kind = kind;
        m.master = 1;
        m.channel = channel;
        m.at = {at, 4};
        at = at + 4;
        return m;
    }
    Kept kept;
    Records records;
    Offset at{};
};

TEST(SystRecords, JoinTheWritesOfAChannel) {
    Writes w(Layout::basic);
    w.write(1, "He", true);
    w.write(2, "one", true);
    w.write(1, "llo", false);
    EXPECT_EQ(w.records.first_open(), Offset{0});
    w.flag(1);
    EXPECT_EQ(w.records.first_open(), Offset{4});
    w.write(2, "!", false, true);
    w.write(3, "all", true, true);
    w.flag(3);
    EXPECT_FALSE(w.records.first_open());
    EXPECT_EQ(w.kept.out, "1:1 Hello\n1:2 one!\n1:3 all\n");
}

TEST(SystRecords, SayWhatIsMissing) {
    Writes w(Layout::basic);
    w.write(1, "a", true);
    w.write(1, "b", true);
    w.flag(1);
    w.write(1, "c", false);
    w.flag(1);
    w.write(1, "d", true);
    w.write(2, "e", true);
    w.records.message(w.of(MessageKind::damage, 0));
    w.write(1, "f", true);
    w.records.finish();
    EXPECT_EQ(w.kept.out,
              "1:1 a ! its end is missing\n1:1 b\n1:1 c ! its begin is missing\n"
              "1:1 d ! bytes of the trace are damaged or missing before its end\n"
              "1:2 e ! bytes of the trace are damaged or missing before its end\n"
              "damage\n1:1 f ! the trace ends before its end\n");
}

TEST(SystRecords, AreBounded) {
    Writes w(Layout::basic);
    for (std::uint32_t i = 0; i < Records::most_open + 1; ++i) w.write(i, "x", true);
    EXPECT_EQ(w.kept.out, "1:0 x ! its end came too late\n");
    Writes longer(Layout::basic);
    for (std::size_t i = 0; i < Records::most_bytes / 8 + 2; ++i) longer.write(1, "12345678", i == 0);
    longer.flag(1);
    EXPECT_TRUE(longer.kept.out.ends_with(" ! it is longer than a message can be\n"));
    EXPECT_LT(longer.kept.out.size(), Records::most_bytes + 100);
}

TEST(SystRecords, AreReadByTheLayoutsOfLinux) {
    // p_ost of the console, and of ftrace with a function; the header of early revisions.
    const std::string rest = "03 00 53 59 02 00 00 00 e8 03 00 00 00 00 00 00 07 00 00 00 00 00 00 00";
    const Record console = described(bytes_of("10 10 02 00 " + rest, "hello\n"), nullptr, nullptr, Layout::ost);
    EXPECT_EQ(words(console), "console  [hello\n]");
    EXPECT_EQ(console.unit, 2U);
    EXPECT_EQ(console.time, 1000U);
    const std::string function = " 01 00 00 00 2a 00 00 00 10 00 00 00 00 00 00 00 20 00 00 00 00 00 00 00";
    EXPECT_EQ(words(described(hex("10 10 01 00 " + rest + function), nullptr, nullptr, Layout::ost)),
              "ftrace:function  [pid 42: 0x10 called by 0x20]");
    EXPECT_EQ(words(described(hex("11 00 00 10 " + rest + function), nullptr, nullptr, Layout::ost)),
              "ftrace:function  [pid 42: 0x10 called by 0x20]");
    EXPECT_EQ(words(described(hex(function), nullptr, nullptr, Layout::ftrace)),
              "ftrace:function  [pid 42: 0x10 called by 0x20]");
    EXPECT_EQ(words(described(hex("05 00 00 00 2a 00 00 00 ab cd"), nullptr, nullptr, Layout::ftrace)),
              "ftrace:5  [pid 42: abcd]");
    EXPECT_FALSE(described(hex("05 00"), nullptr, nullptr, Layout::ftrace).problem.empty());
    EXPECT_FALSE(described(hex("10 10 02"), nullptr, nullptr, Layout::ost).problem.empty());
    EXPECT_EQ(words(described(hex("00 01"), nullptr, nullptr, Layout::basic)), "bytes  [0001]");
    Writes w(Layout::ost);
    const auto head = hex("10 10 02 00");
    w.write(1, std::string(head.begin(), head.end()), false, true);
    for (const auto& part : {rest.substr(0, 23), rest.substr(24, 23), rest.substr(48)}) {
        const auto some = hex(part);
        w.write(1, std::string(some.begin(), some.end()), false);
    }
    w.write(1, "ok", false);
    w.flag(1);
    EXPECT_EQ(w.kept.out, "1:1 ok\n");
}

}  // namespace
}  // namespace waymark::syst
