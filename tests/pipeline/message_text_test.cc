// Messages in words, and lines of software from single writes.
#include "waymark/pipeline/message_text.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace waymark::pipeline {
namespace {

using protocol::Message;
using protocol::MessageKind;

Message written(std::string_view text, std::uint32_t port = 0) {
    Message out;
    out.kind = MessageKind::text;
    out.port = port;
    out.value = 0;
    for (std::size_t i = 0; i < text.size(); ++i)
        *out.value |= std::uint64_t{static_cast<unsigned char>(text[i])} << 8 * i;
    out.value_bytes = static_cast<std::uint8_t>(text.size());
    return out;
}

TEST(MessageText, IsWhatABytewiseWriterSends) {
    EXPECT_EQ(text_of(written("A~ \t")), "A~ \t");
    EXPECT_EQ(text_of(written("\r\n")), "\r\n");
    EXPECT_EQ(text_of(written("A\x1f")), "");
    EXPECT_EQ(text_of(written("\x7f")), "");
    // A byte of a character of UTF-8 comes alone; several such bytes at once are a number.
    EXPECT_EQ(text_of(written("\x80")), "\x80");
    EXPECT_EQ(text_of(written("\xc3\xa9")), "");
    Message event = written("A");
    event.master = 1;
    EXPECT_EQ(text_of(event), "A");
    event.name = "event";
    EXPECT_TRUE(is_hardware_event(event));
    EXPECT_EQ(text_of(event), "");
    event.master.reset();
    EXPECT_FALSE(is_hardware_event(event));
    event.kind = MessageKind::flag;
    EXPECT_EQ(text_of(event), "");
}

TEST(MessageText, NamesTheSender) {
    Message m = written("A", 7);
    EXPECT_EQ(sender_of(m), "port 7");
    m.port.reset();
    EXPECT_EQ(sender_of(m), "?:?");
    m.name = "event";
    EXPECT_EQ(sender_of(m), "port ?");
    m.channel = 3;
    EXPECT_EQ(sender_of(m), "?:3");
    m.master = 64;
    EXPECT_EQ(sender_of(m), "64:3");
    m.kind = MessageKind::overflow;
    EXPECT_EQ(sender_of(m), name(MessageKind::overflow));
}

TEST(MessageText, SaysWhatWasAccessed) {
    Message m;
    m.kind = MessageKind::access;
    m.comparator = 2;
    EXPECT_EQ(words_of(m), "comparator 2:");
    m.address = 0x1a;
    m.address_bits = 16;
    m.value = 5;
    m.value_bytes = 2;
    m.direction = Message::Direction::write;
    EXPECT_EQ(words_of(m), "comparator 2: address …001a write 0x0005");
    m.address_bits = 32;
    m.pc = 0x8000;
    EXPECT_EQ(words_of(m, "level"), "comparator 2 (level): address 0x0000001a write 0x0005 at PC 0x00008000");
}

TEST(MessageText, OfARecord) {
    protocol::Record record;
    record.text = "ready\r\n";
    Message m;
    m.kind = MessageKind::record;
    const auto words = [&] {
        m.record = std::make_shared<const protocol::Record>(record);
        return words_of(m);
    };
    EXPECT_EQ(words(), "ready");
    record.guid = "1234";
    EXPECT_EQ(words(), "1234: ready");
    record.severity = "INFO";
    record.client = "user";
    record.unit = 1;
    record.location = "main.c:7";
    record.problem = "it is cut";
    EXPECT_EQ(words(), "INFO user/1: ready at main.c:7 (it is cut)");
}

class MessageLinesTest : public testing::Test {
protected:
    MessageLines lines{
        [this](const MessageLines::Line& line) { seen.push_back(std::to_string(line.number) + " " + line.text); }};
    std::vector<std::string> seen;
};
using Seen = std::vector<std::string>;

TEST_F(MessageLinesTest, OfEachPortAreJoined) {
    EXPECT_TRUE(lines.take(written("ab", 1)));
    EXPECT_TRUE(lines.take(written("x", 2)));
    EXPECT_TRUE(lines.take(written("c\r\nd", 1)));
    EXPECT_EQ(seen, Seen{"1 abc"});
    // A value that is not text ends the line of its port alone, and is in none.
    EXPECT_FALSE(lines.take(written("\x01", 1)));
    EXPECT_EQ(seen, (Seen{"1 abc", "3 d"}));
    Message overflow;
    overflow.kind = MessageKind::overflow;
    EXPECT_FALSE(lines.take(overflow));
    EXPECT_EQ(seen, (Seen{"1 abc", "3 d", "2 x"}));
    lines.take(written("e", 1));
    lines.finish();
    EXPECT_EQ(seen.back(), "6 e");
    lines.finish();
    EXPECT_EQ(seen.size(), 4U);
}

TEST_F(MessageLinesTest, EndWithTheMessageOfAChannel) {
    Message m = written("ab");
    m.port.reset();
    EXPECT_FALSE(lines.take(m));
    m.master = 1;
    EXPECT_FALSE(lines.take(m));
    m.channel = 0;
    m.marked = true;
    EXPECT_TRUE(lines.take(m));
    EXPECT_EQ(seen, Seen{"3 ab"});
    m.marked = false;
    lines.take(m);
    m.kind = MessageKind::flag;
    EXPECT_FALSE(lines.take(m));
    EXPECT_EQ(seen.back(), "4 ab");
    // Text that is not wanted interrupts no line and begins none.
    EXPECT_TRUE(lines.take(written("q", 9), false));
    lines.finish();
    EXPECT_EQ(seen.size(), 2U);
}

TEST_F(MessageLinesTest, HaveAtMostFourThousandCharacters) {
    for (unsigned i = 0; i < 4097; ++i) lines.take(written("a"));
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_EQ(seen[0], "1 " + std::string(4096, 'a'));
    lines.finish();
    EXPECT_EQ(seen.back(), "4097 a");
}

TEST_F(MessageLinesTest, AreAtMostFourThousandAtOnce) {
    for (std::uint32_t port = 0; port < 4096; ++port) lines.take(written("a", port));
    EXPECT_TRUE(seen.empty());
    lines.take(written("b", 4096));
    EXPECT_EQ(seen, Seen{"1 a"});
}

}  // namespace
}  // namespace waymark::pipeline
