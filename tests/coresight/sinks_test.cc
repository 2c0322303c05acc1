// Funnel, formatter, trace RAM and trace port behind trace sources. docs/spec/pft.md, 6.3 to 6.5.
#include "waymark/coresight/sinks.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "coresight/reference_deformatter.h"
#include "waymark/coresight/bypass.h"

namespace waymark::coresight {
namespace {

using testing::deformat;
using Buffer = std::vector<std::uint8_t>;

Buffer count_up(std::size_t size, unsigned first = 0) {
    Buffer out(size);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>(first + i);
    return out;
}

TEST(TraceRam, HoldsWhatFits) {
    TraceRam ram(32);
    ram.write(count_up(20));
    EXPECT_FALSE(ram.wrapped());
    EXPECT_EQ(ram.write_pointer(), 20U);
    EXPECT_EQ(ram.contents(), count_up(20));
    ram.write(count_up(12, 20));  // filled exactly: the oldest byte is at the write pointer, which is 0 again
    EXPECT_TRUE(ram.wrapped());
    EXPECT_EQ(ram.write_pointer(), 0U);
    EXPECT_EQ(ram.contents(), count_up(32));
}

TEST(TraceRam, OldestByteStandsAtTheWritePointerOnceWrapped) {
    for (const std::size_t size : {16U, 48U, 64U})
        for (const std::size_t total : {1U, 15U, 16U, 47U, 48U, 49U, 64U, 100U, 1000U})
            for (const std::size_t piece : {1U, 7U, 16U, 64U, 1000U}) {
                TraceRam ram(size);
                const Buffer all = count_up(total);
                for (std::size_t at = 0; at < total; at += piece)
                    ram.write(Bytes(all).subspan(at, std::min(piece, total - at)));
                const Bytes kept = Bytes(all).last(std::min(size, total));
                EXPECT_EQ(ram.contents(), Buffer(kept.begin(), kept.end())) << size << ' ' << total << ' ' << piece;
                EXPECT_EQ(ram.written(), total);
                if (total >= size) {
                    EXPECT_EQ(ram.ram()[ram.write_pointer()], kept.front());
                }
            }
}

TEST(TraceRam, StopsSoManyBytesBehindTheTrigger) {
    TraceRam ram(32);
    ram.write(count_up(40));
    ram.stop_after(4);
    EXPECT_FALSE(ram.stopped());
    ram.write(count_up(10, 40));
    ram.stop_after(100);  // there is one trigger
    ram.write(count_up(10, 50));
    EXPECT_TRUE(ram.stopped());
    EXPECT_EQ(ram.contents(), count_up(32, 12));
}

TEST(TraceRam, SizesKeepFramesWhole) {
    EXPECT_TRUE(TraceRam::is_size(16));
    EXPECT_TRUE(TraceRam::is_size(32768));
    EXPECT_FALSE(TraceRam::is_size(0));
    EXPECT_FALSE(TraceRam::is_size(24));
}

TEST(FrameSink, GivesTheFramesAFormatterMakes) {
    Buffer expected;
    Formatter formatter(expected, {.full_sync_frames = 3});
    ByteCollector collected;
    FrameSink frames(collected, {.full_sync_frames = 3});
    for (unsigned i = 0; i < 50; ++i) {
        const TraceId id{static_cast<std::uint8_t>(0x10 + i % 3)};
        const Buffer bytes = count_up(i * 200, i);
        formatter.add(id, bytes);
        frames.write(id, bytes);
        if (i % 7 == 0) {
            formatter.idle();
            frames.idle();
        }
    }
    formatter.add(trigger_id, Buffer{0x11});
    frames.trigger(TraceId{0x11});
    formatter.flush();
    frames.flush();
    EXPECT_EQ(collected.bytes(), expected);
}

TEST(FrameSink, GivesAwayAFrameOnceItIsComplete) {
    ByteCollector collected;
    FrameSink frames(collected);
    frames.write(TraceId{0x10}, count_up(13));
    EXPECT_EQ(collected.bytes().size(), 0U);
    frames.write(TraceId{0x10}, count_up(1));
    EXPECT_EQ(collected.bytes().size(), 16U);
    frames.write(TraceId{0x10}, count_up(10'000));
    // Eight frames hold 14 + 7 * 15 bytes: 84 times that, and one frame more.
    EXPECT_EQ(collected.bytes().size(), (84U * 8 + 1) * 16);
}

TEST(BypassSink, FillsWordsOfFourBytesUnlessItIsToldOtherwise) {
    ByteCollector collected;
    BypassSink bypass(collected);
    bypass.write(TraceId{0x10}, count_up(5, 0x41));
    bypass.flush();
    EXPECT_EQ(collected.bytes(), (Buffer{0x41, 0x42, 0x43, 0x44, 0x45, 0x01, 0, 0}));
    bypass.flush();  // the first mark counts too
    EXPECT_EQ(collected.bytes().size(), 12U);

    ByteCollector unmarked;
    BypassSink none(unmarked, 0);
    none.write(TraceId{0x10}, count_up(5));
    none.flush();
    EXPECT_EQ(unmarked.bytes(), count_up(5));
}

TEST(BypassSink, EndsWithTheMark) {
    for (const std::size_t size : {0U, 1U, 3U, 4U, 9U}) {
        ByteCollector collected;
        BypassSink bypass(collected, 8);
        const Buffer trace = count_up(size, 0x41);
        bypass.write(TraceId{0x10}, trace);
        bypass.flush();
        EXPECT_EQ(collected.bytes().size() % 8, 0U);
        const Bytes stripped = strip_bypass_padding(collected.bytes(), 8);
        EXPECT_EQ(Buffer(stripped.begin(), stripped.end()), trace);
    }
}

/// Who had the bus, byte by byte.
class Bus final : public BusSink {
public:
    void write(TraceId id, Bytes bytes) override {
        order += std::string(bytes.size(), static_cast<char>('a' + id.value - 0x10));
        auto& stream = streams[id.value];
        stream.insert(stream.end(), bytes.begin(), bytes.end());
    }
    void flush() override { ++flushes; }
    std::string order;
    std::map<unsigned, Buffer> streams;
    unsigned flushes = 0;
};

TEST(Funnel, StaysWithAnInputForATurn) {
    Bus bus;
    Funnel funnel(bus, {.hold_bytes = 4});
    ByteSink& a = funnel.input({TraceId{0x10}});
    ByteSink& b = funnel.input({TraceId{0x11}});
    a.write(count_up(3));
    EXPECT_EQ(bus.order, "");
    b.write(count_up(5));
    EXPECT_EQ(bus.order, "bbbb");
    a.write(count_up(2, 3));
    EXPECT_EQ(bus.order, "bbbbaaaa");
    funnel.flush();
    EXPECT_EQ(bus.order, "bbbbaaaaba");
    EXPECT_EQ(bus.flushes, 1U);
    EXPECT_EQ(bus.streams[0x10], count_up(5));
    EXPECT_EQ(bus.streams[0x11], count_up(5));
}

TEST(Funnel, PriorityComesBeforeTurns) {
    Bus bus;
    Funnel funnel(bus, {.hold_bytes = 2});
    ByteSink& a = funnel.input({TraceId{0x10}, 1});
    ByteSink& b = funnel.input({TraceId{0x11}, 1});
    ByteSink& c = funnel.input({TraceId{0x12}, 0});
    // One byte each, so that all are waiting when the flush comes.
    for (ByteSink* input : {&a, &b, &c}) input->write(count_up(1));
    funnel.flush();
    EXPECT_EQ(bus.order, "cab");
}

// Each turn goes to the input after the one that had the last, and at first to the second.
TEST(Funnel, EqualInputsTakeTurns) {
    Bus bus;
    Funnel funnel(bus, {.hold_bytes = 2});
    ByteSink& a = funnel.input({TraceId{0x10}});
    ByteSink& b = funnel.input({TraceId{0x11}});
    ByteSink& c = funnel.input({TraceId{0x12}});
    for (ByteSink* input : {&a, &b, &c}) input->write(count_up(1));
    funnel.flush();
    EXPECT_EQ(bus.order, "bca");
    for (ByteSink* input : {&c, &b, &a}) input->write(count_up(1));
    funnel.flush();
    EXPECT_EQ(bus.order, "bcabca");
    b.write(count_up(2));
    for (ByteSink* input : {&a, &b, &c}) input->write(count_up(1));
    funnel.flush();
    EXPECT_EQ(bus.order, "bcabcabbcab");
}

TEST(FunnelDeathTest, OnlyTraceSourcesAreInputs) {
    Bus bus;
    Funnel funnel(bus);
    EXPECT_DEATH((void)funnel.input({trigger_id}), "broken invariant");
    EXPECT_DEATH((void)funnel.input({null_id}), "broken invariant");
}

/// Sources → funnel → formatter → RAM or port → deformatter.
TEST(Funnel, EverySourceComesOutWhole) {
    for (unsigned hold = 1; hold < 12; ++hold) {
        ByteCollector port;
        FrameSink frames(port, {.full_sync_frames = 4});
        Funnel funnel(frames, {.hold_bytes = hold});
        std::map<unsigned, Buffer> sent;
        std::map<unsigned, ByteSink*> inputs;
        for (unsigned id = 0x10; id < 0x14; ++id)
            inputs[id] = &funnel.input({TraceId{static_cast<std::uint8_t>(id)}, id % 2});
        for (unsigned i = 0; i < 400; ++i) {
            const unsigned id = 0x10 + i * 7 / 3 % 4;
            const Buffer bytes = count_up(i % 11, i);
            inputs[id]->write(bytes);
            sent[id].insert(sent[id].end(), bytes.begin(), bytes.end());
        }
        funnel.flush();
        std::map<unsigned, Buffer> received;
        for (const auto& heard : deformat(port.bytes(), {.framing = Framing::tpiu}).heard)
            if (heard.kind == testing::Heard::Kind::data && heard.what >> 8 != null_id.value)
                received[heard.what >> 8].push_back(static_cast<std::uint8_t>(heard.what));
        EXPECT_EQ(received, sent);
    }
}

}  // namespace
}  // namespace waymark::coresight
