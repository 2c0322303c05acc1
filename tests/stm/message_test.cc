// Packets of STPv2 → messages, and back by the model.
#include "waymark/stm/message_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "support/fast_readers.h"
#include "support/wanted.h"
#include "waymark/stm/encoder.h"
#include "waymark/stm/model.h"
#include "waymark/stm/protocol.h"

namespace waymark::stm {
namespace {

using protocol::Message;
using protocol::MessageKind;

class Kept final : public protocol::MessageListener {
public:
    void message(const Message& m) override { all.push_back(m); }
    std::vector<Message> all;
};

std::vector<Message> decode(Bytes bytes, std::size_t chunk = 1000, const Config& config = {}) {
    Kept kept;
    MessageDecoder decoder(config, kept);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        decoder.feed(bytes.subspan(at, std::min(chunk, bytes.size() - at)));
    decoder.finish();
    return kept.all;
}

TEST(StmMessages, AreThoseThatTheModelWrote) {
    for (unsigned round = 0; round < wanted(2); ++round) {
        const std::uint8_t version = round % 2 == 0 ? 3 : 4;
        std::mt19937_64 random(version + 2 * (round / 2));
        Model model(version), taken(version);
        std::vector<std::uint8_t> pieces;
        std::size_t kept = 0;
        std::vector<Message> sent;
        std::uint64_t time = random() >> 8;
        for (unsigned i = 0; i < 400; ++i) {
            if (i % 100 == 0) model.sync(), taken.sync();
            Message m;
            m.confirmed = true;
            m.kind = std::array{MessageKind::text,    MessageKind::text,      MessageKind::text,    MessageKind::flag,
                                MessageKind::trigger, MessageKind::frequency, MessageKind::overflow}[random() % 7];
            if (m.kind != MessageKind::frequency) m.master = random() % 3 == 0 ? 0x1234U : random() % 4;
            if (m.kind != MessageKind::frequency && m.kind != MessageKind::overflow)
                m.channel = random() % 2 == 0 ? random() % 3 : 0x300U + random() % 3;
            if (m.kind != MessageKind::frequency && m.kind != MessageKind::overflow && random() % 2 == 0) {
                time += random() >> (random() % 64);
                m.timestamp = time;
            }
            if (m.kind == MessageKind::text) {
                m.value_bytes = std::array<std::uint8_t, 5>{0, 1, 2, 4, 8}[random() % 5];
                m.marked = random() % 2 == 0;
                m.value =
                    m.value_bytes == 8 ? random() : random() % (1ULL << (m.value_bytes == 0 ? 4 : 8 * m.value_bytes));
            } else if (m.kind == MessageKind::flag) {
                m.marked = true;
            } else {
                m.value = random() % 256;
                m.value_bytes = m.kind == MessageKind::frequency ? 0 : 1;
            }
            if (m.kind == MessageKind::overflow) m.name = "of master " + std::to_string(*m.master);
            model.add(m);
            taken.add(m);
            sent.push_back(m);
            if (random() % 4 != 0) continue;
            const std::vector<std::uint8_t> piece = taken.take();
            pieces.insert(pieces.end(), piece.begin(), piece.end());
            kept += taken.bytes().size();
            ASSERT_LE(taken.bytes().size(), 1U);
        }
        EXPECT_GT(kept, 0U) << "no piece ended within a byte";
        pieces.insert(pieces.end(), taken.bytes().begin(), taken.bytes().end());
        EXPECT_EQ(pieces, model.bytes());
        for (const std::size_t chunk : {1, 7, 100000}) {
            std::vector<Message> found = decode(model.bytes(), chunk);
            ASSERT_EQ(found.size(), sent.size());
            for (std::size_t i = 0; i < sent.size(); ++i) {
                found[i].at = {};
                ASSERT_EQ(found[i], sent[i]) << i;
            }
        }
    }
}

TEST(StmReaders, ForSpeedAgreeWithTheOthers) {
    std::mt19937_64 random(13);
    for (unsigned round = 0; round < wanted(300); ++round) {
        std::vector<std::uint8_t> bytes;
        NibbleWriter writer(bytes);
        for (unsigned part = 0; part < 3; ++part) {
            if (random() % 4 != 0) encode(writer, Async{21 + random() % 3});
            if (random() % 2 == 0) encode(writer, VersionPacket{static_cast<std::uint8_t>(1 + random() % 4)});
            for (unsigned i = 0; i < 6; ++i)
                OpcodePackets::for_each([&]<class P>() {
                    if (random() % 3 != 0) return;
                    P packet{};
                    wire::Generator generator(random);
                    P::fields(generator, packet);
                    encode(writer, packet);
                    if (random() % 200 == 0) writer.put(random(), 1 + static_cast<unsigned>(random() % 4));
                });
        }
        for (unsigned i = static_cast<unsigned>(random() % 4); i != 0; --i)
            bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
        test::expect_fast_readers_agree(*configuration(Config{}), bytes, test::random_chunks(random, bytes.size()));
        if (::testing::Test::HasFailure()) FAIL() << "round " << round;
    }
}

TEST(StmMessages, OfTheMasterOfHardwareEventsAreNamed) {
    Model model;
    model.sync();
    Message m;
    m.master = 5;
    m.channel = 1;
    m.value = 3;
    m.value_bytes = 1;
    model.add(m);
    EXPECT_EQ(decode(model.bytes(), 100, {.hardware_events = true, .hardware_master = 5}).at(0).name, "hardware event");
    EXPECT_EQ(decode(model.bytes(), 100, {.hardware_events = false, .hardware_master = 5}).at(0).name, "");
    EXPECT_EQ(decode(model.bytes(), 100, {.hardware_events = true, .hardware_master = 6}).at(0).name, "");
}

TEST(StmMessages, AfterDamageHaveNoChannelAndLowerBoundsOfTheTime) {
    Model model;
    model.sync();
    Message m;
    m.master = 5;
    m.channel = 1;
    m.value_bytes = 1;
    m.value = 3;
    m.timestamp = 1000;
    model.add(m);
    model.sync();
    std::vector<std::uint8_t> bytes = model.bytes();
    // A reserved opcode, an ASYNC and a VERSION, data with a timestamp of one nibble, then a whole one.
    Model more;
    more.add_packet(Null{});
    more.sync();
    more.add_packet(Data<2, false, true>{{7, {9, 1}}});
    more.add(m);
    bytes.insert(bytes.end(), {0x0f, 0x02});
    bytes.insert(bytes.end(), more.bytes().begin(), more.bytes().end());
    const auto found = decode(bytes);
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found[0].timestamp, 1000U);
    EXPECT_FALSE(found[0].at_least);
    EXPECT_EQ(found[1].kind, MessageKind::damage);
    EXPECT_FALSE(found[2].master || found[2].channel);
    EXPECT_EQ(found[2].timestamp, 0x3e9U);
    EXPECT_TRUE(found[2].at_least);
    EXPECT_EQ(found[3].master, 5U);
    EXPECT_EQ(found[3].timestamp, 1000U);
    EXPECT_FALSE(found[3].at_least);
}

}  // namespace
}  // namespace waymark::stm
