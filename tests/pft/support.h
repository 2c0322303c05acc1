/// Helpers for the tests of this layer: bytes from hex text, packets as text, a handler that collects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "support/collected.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/text.h"

namespace waymark::pft::test {

using waymark::test::hex;

using Collected = waymark::test::Collected<Packet>;
using Collector = waymark::test::Collector<Packet, Config>;

/// Parses a whole stream, cut after every `cuts` position.
inline Collected collect(Bytes bytes, const Config& config, const std::vector<std::size_t>& cuts = {}) {
    return waymark::test::collect<Parser, Packet, Config>(bytes, config, cuts);
}

inline std::vector<std::uint8_t> with_async(std::vector<std::uint8_t> bytes) {
    const std::vector<std::uint8_t> async = {0, 0, 0, 0, 0, 0x80};
    bytes.insert(bytes.begin(), async.begin(), async.end());
    return bytes;
}

/// Every configuration that changes the form of packets.
inline std::vector<Config> all_configs() {
    std::vector<Config> out;
    for (const bool cycle_accurate : {false, true})
        for (const std::uint8_t context_id_bytes : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
            for (const std::uint8_t timestamp_bytes : std::initializer_list<std::uint8_t>{7, 9}) {
                Config c;
                c.cycle_accurate = cycle_accurate;
                c.context_id_bytes = context_id_bytes;
                c.timestamp_bytes = timestamp_bytes;
                c.minor_version = timestamp_bytes == 9 ? 1 : 0;
                c.gray_timestamps = timestamp_bytes == 7;
                out.push_back(c);
            }
    return out;
}

/// A random legal packet of the given type index; false if it cannot occur under this configuration.
template <class P>
bool random_packet(wire::Random& random, const Config& config, P& packet) {
    wire::Generator generator(random);
    packet = {};
    P::fields(generator, packet, config);
    return generator.possible();
}
inline Packet random_packet(wire::Random& random, const Config& config) {
    for (;;) {
        Packet out;
        bool possible = false;
        std::size_t index = random() % Packets::size;
        Packets::for_each([&]<class P>() {
            if (index-- != 0) return;
            P packet;
            possible = random_packet(random, config, packet);
            out = packet;
        });
        if (possible) return out;
    }
}

}  // namespace waymark::pft::test
