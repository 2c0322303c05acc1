/// Helpers for the tests of this layer: packets and records, in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/bytes.h"
#include "support/collected.h"
#include "waymark/spe/decoder.h"
#include "waymark/spe/encoder.h"
#include "waymark/spe/parser.h"
#include "waymark/spe/record.h"
#include "waymark/spe/reference_decoder.h"
#include "waymark/spe/text.h"

namespace waymark::spe::test {

using Collected = waymark::test::Collected<Packet>;
using Collector = waymark::test::Collector<Packet>;
using waymark::test::feed;
using waymark::test::hex;

/// Parses a whole stream, cut after every `cuts` position.
inline Collected collect(Bytes bytes, const std::vector<std::size_t>& cuts = {}) {
    return waymark::test::collect<Parser, Packet>(bytes, cuts);
}

/// Records and gaps in their order; `before` counts from the start of the stream.
struct Decoded final : RecordSink {
    std::vector<Record> records;
    std::vector<RecordGap> gaps;
    Totals totals;

    void consume(const RecordBatch& batch) override {
        for (RecordGap gap : batch.gaps) {
            gap.before += static_cast<std::uint32_t>(records.size());
            gaps.push_back(gap);
        }
        for (std::size_t i = 0; i < batch.records.size; ++i) records.push_back(batch.records.row(i));
    }
};

template <class D>
Decoded decode(Bytes bytes, const std::vector<std::size_t>& cuts = {}, Start start = Start::record) {
    Decoded out;
    D decoder(out, start);
    feed(decoder, bytes, cuts);
    decoder.finish();
    out.totals = decoder.totals();
    return out;
}

template <class P>
P random_packet(wire::Random& random) {
    wire::Generator generator(random);
    P packet{};
    P::fields(generator, packet);
    return packet;
}
inline Packet random_packet(wire::Random& random) {
    Packet out;
    std::size_t index = random() % Packets::size;
    Packets::for_each([&]<class P>() {
        if (index-- == 0) out = random_packet<P>(random);
    });
    return out;
}

/// Appends a packet that fits at the end of `out`: an alignment packet reaches to the next place that it names, and no
/// padding follows padding. Returns false if the packet was omitted.
inline bool append(std::vector<std::uint8_t>& out, Packet& packet, bool after_padding) {
    if (auto* alignment = std::get_if<Alignment>(&packet))
        alignment->skip.bytes =
            alignment->skip.unit - static_cast<std::uint32_t>(out.size() & (alignment->skip.unit - 1));
    if (after_padding && std::holds_alternative<Padding>(packet)) return false;
    // The alignment has one byte: the zero of its header would be padding.
    if (auto* alignment = std::get_if<Alignment>(&packet); alignment != nullptr && alignment->skip.bytes < 2)
        return false;
    encode(out, packet);
    return true;
}

/// A record that an implementation could write, with packets in any order, padded to `align`, with a few rare features.
inline std::vector<std::uint8_t> random_record(wire::Random& random, std::size_t align = 64) {
    std::vector<std::uint8_t> out;
    std::vector<Packet> packets;
    const auto kind = static_cast<OperationClass>(random() % 3);
    const auto address = [&](std::uint8_t index) {
        AddressPacket p = random_packet<AddressPacket>(random);
        p.index = {index, random() % 64 == 0};
        packets.emplace_back(p);
    };
    const auto counter = [&](std::uint8_t index) {
        Counter p = random_packet<Counter>(random);
        p.index = {index, random() % 64 == 0};
        packets.emplace_back(p);
    };
    if (random() % 64 != 0) address(0);
    counter(0);
    counter(1);
    packets.emplace_back(random_packet<Events>(random));
    packets.emplace_back(OperationType{kind, static_cast<std::uint8_t>(random())});
    if (kind == OperationClass::branch && random() % 4 != 0) address(1);
    if (kind == OperationClass::load_store) {
        address(2);
        counter(2);
        if (random() % 2 == 0) address(3);
        if (random() % 2 == 0) packets.emplace_back(random_packet<DataSource>(random));
    }
    if (random() % 8 == 0) address(4);
    if (random() % 8 == 0) counter(4);
    if (random() % 2 == 0)
        packets.emplace_back(Context{static_cast<std::uint8_t>(random() % 2), static_cast<std::uint32_t>(random())});
    if (random() % 32 == 0) packets.emplace_back(random_packet<Unknown>(random));
    if (random() % 32 == 0) packets.push_back(packets[random() % packets.size()]);
    if (random() % 32 == 0) packets.emplace_back(random_packet<AddressPacket>(random));
    if (random() % 32 == 0) packets.emplace_back(random_packet<Context>(random));
    if (random() % 64 == 0) packets.emplace_back(Padding{random() % 32 == 0 ? 3000 : random() % 200 + 1});
    if (random() % 4 == 0) std::shuffle(packets.begin(), packets.end(), random);
    for (const Packet& p : packets) encode(out, p);
    const bool timestamp = random() % 4 != 0;
    const std::size_t last = timestamp ? 9 : 1;
    if (random() % 2 == 0) out.resize(out.size() + (align - (out.size() + last) % align) % align);
    encode(out, timestamp ? Packet{Timestamp{random()}} : Packet{End{}});
    out.resize(out.size() + (align - out.size() % align) % align);
    return out;
}

inline std::vector<std::uint8_t> random_records(wire::Random& random, unsigned count) {
    std::vector<std::uint8_t> out;
    for (unsigned i = 0; i < count; ++i) {
        const auto record = random_record(random, std::size_t{1} << random() % 7);
        out.insert(out.end(), record.begin(), record.end());
    }
    return out;
}

/// Flips, drops, inserts and zeroes bytes.
inline void damage(wire::Random& random, std::vector<std::uint8_t>& bytes, unsigned times) {
    for (unsigned n = 0; n < times && !bytes.empty(); ++n) {
        const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size());
        switch (random() % 5) {
            case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8); break;
            case 1: bytes.erase(at); break;
            case 2: *at = 0; break;
            case 3: *at = static_cast<std::uint8_t>(random()); break;
            default: bytes.insert(at, static_cast<std::uint8_t>(random())); break;
        }
    }
}

}  // namespace waymark::spe::test
