/// Compares readers for speed, protocol::RowSource and protocol::MessageCounter, with a configuration's list and
/// messages.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "waymark/core/offset_map.h"
#include "waymark/protocol/message.h"
#include "waymark/protocol/message_survey.h"
#include "waymark/protocol/packet_rows.h"

namespace waymark::test {

/// Rows of packets, `0x20 0x4 5 D32 …`, and gaps, from Configuration::list.
class ListedRows final : public protocol::PacketListener {
public:
    ListedRows(const OffsetMap& offsets, Bytes bytes) : offsets_(offsets), bytes_(bytes) {}
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        char place[64];
        std::snprintf(place, sizeof place, "0x20\t0x%llx\t%llu\t",
                      static_cast<unsigned long long>(offsets_.capture(at.first).value),
                      static_cast<unsigned long long>(at.bytes));
        text += place + std::string(packet.name()) + '\t' + packet.fields_text() + '\t' + packet.meaning() + '\t';
        const std::size_t shown = std::min<std::size_t>(at.bytes, 16);
        for (std::size_t i = 0; i < shown; ++i) {
            std::snprintf(place, sizeof place, i == 0 ? "%02x" : " %02x", bytes_[at.first.value + i]);
            text += place;
        }
        text += at.bytes > shown ? " …\tB\n" : "\tB\n";
    }
    void gap(const Gap& gap) override {
        text += "GAP " + std::to_string(gap.first.value) + '+' + std::to_string(gap.bytes()) + '\n';
    }
    std::string text;

private:
    const OffsetMap& offsets_;
    Bytes bytes_;
};
/// The same from RowSource.
class WrittenRows final : public protocol::PacketRows {
public:
    WrittenRows(const OffsetMap& offsets, Bytes bytes) : PacketRows(offsets, "0x20", "B") { set_bytes(bytes, 0); }
    void gap(const Gap& gap) override {
        deliver();
        text += "GAP " + std::to_string(gap.first.value) + '+' + std::to_string(gap.bytes()) + '\n';
    }
    std::string text;
    std::uint64_t count = 0;

private:
    void take(std::string_view rows, std::uint64_t packets) override {
        text += rows;
        count += packets;
    }
    void settle() override {}
};

/// A chunk of a stream, after which the reader may be told that the next bytes do not follow.
struct Chunk {
    std::size_t bytes{};
    std::optional<GapReason> reset{};
};
[[nodiscard]] inline std::vector<Chunk> random_chunks(std::mt19937_64& random, std::size_t bytes) {
    std::vector<Chunk> out;
    const std::size_t most = random() % 2 == 0 ? 1 + random() % 9 : 1 + random() % (bytes + 1);
    for (std::size_t at = 0; at < bytes; at += out.back().bytes) {
        out.push_back({std::min(1 + random() % most, bytes - at), {}});
        if (random() % 40 == 0)
            out.back().reset = random() % 3 == 0   ? GapReason::framing
                               : random() % 2 == 0 ? GapReason::missing
                                                   : GapReason::stopped;
    }
    return out;
}
inline void read(protocol::Reader& reader, Bytes bytes, const std::vector<Chunk>& chunks) {
    for (const Chunk& chunk : chunks) {
        reader.feed(bytes.first(chunk.bytes));
        bytes = bytes.subspan(chunk.bytes);
        if (chunk.reset) reader.reset(*chunk.reset);
    }
    reader.finish();
}

class CountedPackets final : public protocol::PacketListener {
public:
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        ++names[std::string(packet.name())];
        bytes += at.bytes;
    }
    void gap(const Gap&) override {}
    std::map<std::string, std::uint64_t> names;
    std::uint64_t bytes = 0;
};
class CountedMessages final : public protocol::MessageListener {
public:
    void message(const protocol::Message& m) override {
        using enum protocol::MessageKind;
        const bool is_lost = m.kind == damage || m.kind == reserved;
        messages += is_lost ? 0 : 1;
        overflows += m.kind == overflow ? 1 : 0;
        samples |= m.kind == sample;
        if (is_lost) lost += m.at.bytes;
    }
    std::uint64_t messages = 0, overflows = 0, lost = 0;
    bool samples = false;
};

inline void expect_fast_readers_agree(const protocol::Configuration& configuration, Bytes bytes,
                                      const std::vector<Chunk>& chunks) {
    // The stream is the buffer, or one or two stretches of the buffer.
    OffsetMap offsets;
    for (std::uint64_t part = 0; part < bytes.size() % 3; ++part)
        offsets.add(Offset{part * (bytes.size() / 2)}, Offset{0x1000 * (part + 1)});
    ListedRows listed(offsets, bytes);
    read(*configuration.list(listed), bytes, chunks);
    WrittenRows written(offsets, bytes);
    read(*dynamic_cast<const protocol::RowSource&>(configuration).write_rows(written), bytes, chunks);
    written.deliver();
    EXPECT_EQ(written.text, listed.text);

    CountedPackets packets;
    read(*configuration.list(packets), bytes, chunks);
    CountedMessages messages;
    read(*protocol::message_source(&configuration)->messages(messages), bytes, chunks);
    const auto surveyor = configuration.survey(offsets);
    read(*surveyor, bytes, chunks);
    const protocol::Survey survey = surveyor->survey();
    EXPECT_EQ(survey.packets, packets.names);
    EXPECT_EQ(survey.bytes_in_packets, packets.bytes);
    const protocol::MessageCounts counts = dynamic_cast<const protocol::MessageCounter&>(*surveyor).messages();
    EXPECT_EQ(counts.messages, messages.messages);
    EXPECT_EQ(counts.samples, messages.samples);
    EXPECT_EQ(counts.troubles.overflows.times, messages.overflows);
    std::uint64_t lost = 0, rows = 0;
    for (const flow::Trouble& gap : counts.troubles.gaps) lost += gap.bytes;
    EXPECT_EQ(lost, messages.lost);
    for (const auto& [name, count] : packets.names) rows += count;
    EXPECT_EQ(written.count, rows);
}

}  // namespace waymark::test
