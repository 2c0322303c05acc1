// Packets of ITM and DWT → messages: the decoder, the reference decoder and the model (docs/spec/itm.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "support/fast_readers.h"
#include "support/wanted.h"
#include "waymark/itm/message_decoder.h"
#include "waymark/itm/model.h"
#include "waymark/itm/protocol.h"
#include "waymark/itm/reference_decoder.h"

namespace waymark::itm {
namespace {

using protocol::Message;
using protocol::MessageKind;
using test::hex;

class Kept final : public protocol::MessageListener {
public:
    void message(const Message& m) override { all.push_back(m); }
    std::vector<Message> all;
};

std::vector<Message> decode(Bytes bytes, const Config& config, std::size_t chunk = 1U << 20) {
    Kept kept;
    MessageDecoder decoder(config, kept);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        decoder.feed(bytes.subspan(at, std::min(chunk, bytes.size() - at)));
    decoder.finish();
    return kept.all;
}

/// `access 3+7 @5? #0 pc=0x1000 …=0x14/16 write 0x100/4`: the whole message. `?`: nothing confirms its place.
std::string text(const Message& m) {
    std::string out(name(m.kind));
    const auto number = [](std::uint64_t n) {
        std::string digits;
        wire::append_number(digits, n);
        return digits;
    };
    out += ' ' + std::to_string(m.at.first.value) + '+' + std::to_string(m.at.bytes);
    if (m.cycles) out += std::string(" @") + (m.at_least ? ">=" : "") + std::to_string(*m.cycles);
    if (m.timestamp_late) out += " late-timestamp";
    if (m.message_late) out += " late-message";
    if (!m.confirmed) out += " ?";
    if (m.port) out += " port=" + std::to_string(*m.port);
    if (m.comparator) out += " #" + std::to_string(*m.comparator);
    if (m.number) out += " number=" + std::to_string(*m.number);
    if (m.pc) out += " pc=" + number(*m.pc);
    if (m.address) out += " address=" + number(*m.address) + "/" + std::to_string(m.address_bits);
    if (m.change != Message::Change::none) out += ' ' + std::string(name(m.change));
    if (m.direction != Message::Direction::unknown) out += ' ' + std::string(name(m.direction));
    if (m.value) out += ' ' + number(*m.value) + "/" + std::to_string(m.value_bytes);
    return out + (m.name.empty() ? "" : " " + m.name);
}
std::string text(const std::vector<Message>& all) {
    std::string out;
    for (const Message& m : all) out += text(m) + "\n";
    return out;
}

struct Situation {
    const char* what;
    const char* bytes;
    const char* messages;
};
const Situation situations[] = {
    {"text with and without a time", "01 41 0a 45 23 30 19 bb",
     "text 0+2 @3 ? port=0 0x41/1\ntext 2+3 @3 ? port=1 0x2345/2\ntext 6+2 ? port=3 0xbb/1\n"},
    {"address and value are one access", "4e 14 10 8f 00 01 00 00 20",
     "access 0+8 @2 ? #0 address=0x1014/16 write 0x100/4\n"},
    {"PC and value are one access", "57 8c 02 00 08 9d 05", "access 0+7 ? #1 pc=0x800028c write 5/1\n"},
    {"a value, and the next PC", "85 01 47 00 10 00 00", "access 0+2 ? #0 read 1/1\naccess 2+5 ? #0 pc=0x1000\n"},
    {"two PCs are two accesses", "47 00 10 00 00 47 02 10 00 00 8d 07",
     "access 0+5 ? #0 pc=0x1000\naccess 5+7 ? #0 pc=0x1002 write 7/1\n"},
    {"other comparators and packets end a group", "47 00 10 00 00 9d 07 4e 00 01 01 41 8d 09",
     "access 0+5 ? #0 pc=0x1000\naccess 5+2 ? #1 write 7/1\naccess 7+3 ? #0 address=0x100/16\ntext 10+2 ? port=0 "
     "0x41/1\n"
     "access 12+2 ? #0 write 9/1\n"},
    {"an overflow ends a group and the time", "47 00 10 00 00 70 8d 09 20",
     "access 0+5 ? #0 pc=0x1000\noverflow 5+1 ?\naccess 6+2 @>=2 ? #0 write 9/1\n"},
    {"a match", "45 01", "access 0+2 ? #0 match\n"},
    {"samples", "17 00 10 00 00 15 00 15 ff",
     "sample 0+5 ? pc=0x1000\nsample 5+2 ? asleep\nsample 7+2 ? not permitted\n"},
    {"exceptions", "0e 2c 10 0e 0f 20 0e 00 30",
     "exception 0+3 ? number=44 entered IRQ 28\nexception 3+3 ? number=15 left SysTick\n"
     "exception 6+3 ? number=0 returned to thread\n"},
    {"counters", "05 15 1d 04", "counters 0+2 ? 0x15/1 CPI, SLEEP, FOLD\ncounters 2+2 ? 4/1 PMU 0x04\n"},
    {"late", "01 41 d0 0d 01 42 e0 05 01 43 f0 01",
     "text 0+2 @13 late-timestamp ? port=0 0x41/1\ntext 4+2 @18 late-message ? port=0 0x42/1\n"
     "text 8+2 @19 late-timestamp late-message ? port=0 0x43/1\n"},
    {"a global time", "94 d6 e8 c8 07 b4 93 98 a0 a0 80 00 94 7a",
     "time 5+7 ? 0x1020304cf23456/0\ntime 12+2 ? 0x1020304cf2347a/0\n"},
    {"pages", "28 09 05 08 09 06", "text 1+2 ? port=65 5/1\ntext 4+2 ? port=1 6/1\n"},
    {"reserved packets", "37 00 20 00 00 0d 01 0c",
     "reserved 0+5 ? number=6 0x2000/4\nreserved 5+2 ? number=1 1/1\n"
     "reserved 7+1 ? extension\n"},
    {"a sync confirms, damage does not", "01 41 00 00 00 00 00 80 01 42 04 01 43",
     "text 0+2 ? port=0 0x41/1\ntext 8+2 port=0 0x42/1\ndamage 10+1 ? reserved header\n"
     "text 11+2 ? 0x43/1 port 0 of an unknown page\n"},
    {"the page is known again", "04 08 01 43", "damage 0+1 ? unsynchronised\ntext 2+2 ? port=0 0x43/1\n"},
    {"cut", "01 41 03 00", "text 0+2 ? port=0 0x41/1\ndamage 2+2 ? incomplete packet\n"},
    {"filler", "01 41 00 00", "text 0+2 ? port=0 0x41/1\n"},
};

TEST(ItmMessages, AreThoseOfEachSituation) {
    for (const Situation& s : situations) {
        const auto bytes = hex(s.bytes);
        for (const std::size_t chunk : {1U, 2U, 3U, 100U})
            EXPECT_EQ(text(decode(bytes, Config{}, chunk)), s.messages) << s.what << ", " << chunk;
        EXPECT_EQ(text(reference_messages(bytes, Config{})), s.messages) << s.what << ", reference";
    }
}

std::vector<std::uint8_t> random_bytes(std::mt19937_64& random) {
    std::vector<std::uint8_t> out;
    // Packets, some damaged, between bytes of any kind.
    while (out.size() < 200)
        Packets::for_each([&]<class P>() {
            if (random() % 3 == 0) return;
            P packet{};
            wire::Generator generator(random);
            P::fields(generator, packet);
            if (generator.possible()) encode(out, packet);
            if (random() % 8 == 0) out.push_back(static_cast<std::uint8_t>(random()));
            if (random() % 16 == 0 && !out.empty()) out.pop_back();
        });
    return out;
}

TEST(ItmMessages, OfAnyBytesAreThoseOfTheReference) {
    std::mt19937_64 random(7);
    for (unsigned round = 0; round < wanted(400); ++round) {
        const auto bytes = random_bytes(random);
        const Config config{.prescaler = static_cast<std::uint8_t>(random() % 2 == 0 ? 1 : 16)};
        const auto expected = reference_messages(bytes, config);
        const auto found = decode(bytes, config, 1 + random() % 40);
        ASSERT_EQ(text(found), text(expected));
        ASSERT_EQ(found, expected);
    }
}

TEST(ItmMessages, WithoutTimestampsAreDeliveredWithBoundedMemory) {
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < 3 * MessageDecoder::most_held; ++i) encode(bytes, Stimulus{1, 1, i & 0xffU});
    encode(bytes, ShortTimestamp{4});
    Kept kept;
    MessageDecoder decoder(Config{}, kept);
    decoder.feed(Bytes(bytes).first(bytes.size() - 1));
    EXPECT_EQ(kept.all.size(), 2 * MessageDecoder::most_held);
    EXPECT_EQ(decoder.pending()[0].value, 4 * MessageDecoder::most_held);
    decoder.feed(Bytes(bytes).last(1));
    decoder.finish();
    EXPECT_EQ(kept.all, reference_messages(bytes, Config{}));
    EXPECT_FALSE(kept.all[2 * MessageDecoder::most_held - 1].cycles);
    EXPECT_EQ(kept.all[2 * MessageDecoder::most_held].cycles, 4U);
}

Message random_message(std::mt19937_64& random) {
    Message m;
    const auto size = [&] { return static_cast<std::uint8_t>(1U << random() % 3); };
    const auto value = [&](std::uint8_t bytes) { return random() & (~0ULL >> (64 - 8 * bytes)); };
    switch (random() % 6) {
        case 0:
            m.kind = MessageKind::text;
            m.port = random() % 4 == 0 ? random() % 256 : random() % 32;
            m.value_bytes = size();
            m.value = value(m.value_bytes);
            break;
        case 1:
            m.kind = MessageKind::sample;
            if (random() % 4 != 0)
                m.pc = value(4);
            else
                m.name = random() % 2 == 0 ? "asleep" : "not permitted";
            break;
        case 2:
            m.kind = MessageKind::exception;
            m.number = random() % 512;
            m.change = static_cast<Message::Change>(1 + random() % 3);
            m.name = exception_name(*m.number);
            break;
        case 3:
            m.kind = MessageKind::access;
            m.comparator = random() % 4;
            if (random() % 2 == 0) m.pc = value(4);
            if (random() % 2 == 0) {
                m.address_bits = random() % 4 == 0 ? 32 : 16;
                m.address = value(m.address_bits / 8);
            }
            m.value_bytes = size();
            m.value = value(m.value_bytes);
            m.direction = random() % 2 == 0 ? Message::Direction::write : Message::Direction::read;
            break;
        case 4:
            m.kind = MessageKind::counters;
            m.value_bytes = 1;
            m.value = 1 + random() % 63;
            m.name = counter_names(static_cast<std::uint32_t>(*m.value));
            break;
        default:
            m.kind = MessageKind::time;
            m.value = random() >> 1;
            break;
    }
    return m;
}

TEST(ItmMessages, AreWhatTheModelWasTold) {
    std::mt19937_64 random(11);
    for (unsigned round = 0; round < wanted(60); ++round) {
        ModelConfig config;
        config.config.prescaler = static_cast<std::uint8_t>(1U << 2 * (random() % 4));
        config.timestamps = random() % 4 != 0;
        config.sync_messages = random() % 2 == 0 ? 0 : 1 + random() % 20;
        if (random() % 2 == 0) {
            config.fifo_bytes = 20 + random() % 40;
            config.cycles_per_byte = 1 + random() % 8;
        }
        Model model(config);
        std::uint64_t cycle = 0;
        for (unsigned i = 0; i < 60; ++i) model.tell(cycle += random() % 100, random_message(random));
        ASSERT_EQ(text(decode(model.bytes(), config.config, 1 + random() % 50)), text(model.truth()));
        ASSERT_EQ(reference_messages(model.bytes(), config.config), model.truth());
    }
}

TEST(ItmReaders, ForSpeedAgreeWithTheOthers) {
    std::mt19937_64 random(13);
    for (unsigned round = 0; round < wanted(300); ++round) {
        std::vector<std::uint8_t> bytes = random_bytes(random);
        if (round % 4 == 0) {
            // Packets of a program, with few damages.
            ModelConfig config;
            config.sync_messages = random() % 2 == 0 ? 0 : 20;
            Model model(config);
            std::uint64_t cycle = 0;
            for (unsigned i = 0; i < 100; ++i) model.tell(cycle += random() % 100, random_message(random));
            bytes.assign(model.bytes().begin(), model.bytes().end());
            for (unsigned i = static_cast<unsigned>(random() % 4); i != 0; --i)
                bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
        }
        const auto source = configuration(Config{.prescaler = static_cast<std::uint8_t>(random() % 2 == 0 ? 1 : 16)});
        test::expect_fast_readers_agree(*source, bytes, test::random_chunks(random, bytes.size()));
        if (::testing::Test::HasFailure()) FAIL() << "round " << round;
    }
}

TEST(ItmMessages, ComeFromTheConfigurationOfASource) {
    const auto source = configuration(Config{.prescaler = 4});
    const protocol::MessageSource* const messages = protocol::message_source(source.get());
    ASSERT_NE(messages, nullptr);
    Kept kept;
    const auto reader = messages->messages(kept);
    reader->feed(hex("01 41 20"));
    reader->finish();
    EXPECT_EQ(text(kept.all), "text 0+2 @8 ? port=0 0x41/1\n");
    EXPECT_EQ(protocol::message_source(nullptr), nullptr);
}

}  // namespace
}  // namespace waymark::itm
