/// Helpers for the tests of this layer: packets as text, a handler that collects, configurations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "support/collected.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/text.h"

namespace waymark::etm4::test {

using waymark::test::hex;

using Collected = waymark::test::Collected<Packet>;
using Collector = waymark::test::Collector<Packet, Config>;

/// Parses a whole stream, cut after every `cuts` position.
inline Collected collect(Bytes bytes, const Config& config, const std::vector<std::size_t>& cuts = {}) {
    return waymark::test::collect<Parser, Packet, Config>(bytes, config, cuts);
}

inline std::vector<std::uint8_t> with_async(std::vector<std::uint8_t> bytes) {
    std::vector<std::uint8_t> async(11, 0);
    async.push_back(0x80);
    bytes.insert(bytes.begin(), async.begin(), async.end());
    return bytes;
}

/// An ETMv4.4 with everything except data and conditional trace.
inline Config etmv4() {
    Config c;
    c.version = 0x44;
    c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = true;
    c.vmid_bytes = 4;
    c.cycle_count_bits = 12;
    return c;
}
/// An ETE with all features.
inline Config ete(unsigned minor = 3) {
    Config c = etmv4();
    c.version = static_cast<std::uint8_t>(0x50 + minor);
    c.q_elements = true;
    c.timestamp_markers = minor >= 1;
    return c;
}
/// An ETMv4.6 that traces data and conditional instructions.
inline Config conditional() {
    Config c = etmv4();
    c.version = 0x46;
    c.conditional = 7;
    c.data_trace = c.p0_loads = true;
    c.p0_keys = c.conditional_keys = 8;
    return c;
}
/// An ETMv4.5 of an M profile core.
inline Config m_profile() {
    Config c = etmv4();
    c.version = 0x45;
    c.profile = CoreProfile::m;
    c.address_bytes = 4;
    return c;
}

/// Every kind of configuration that changes which packets there are or what form they have.
inline std::vector<Config> all_configs() {
    std::vector<Config> out;
    for (const Config& kind : {etmv4(), ete(0), ete(3), conditional(), m_profile()})
        for (const std::uint8_t vmid_bytes : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
            for (const std::uint8_t context_id_bytes : std::initializer_list<std::uint8_t>{0, 4})
                for (const bool commit_mode_1 : {false, true}) {
                    Config c = kind;
                    c.vmid_bytes = vmid_bytes;
                    c.context_id_bytes = context_id_bytes;
                    c.commit_mode_1 = commit_mode_1;
                    out.push_back(c);
                }
    Config first;  // ETMv4.0: no Ignore
    first.version = 0x40;
    out.push_back(first);
    return out;
}

/// A random legal packet of type P; false if the configuration has none.
template <class P>
bool random_packet(wire::Random& random, const Config& config, P& packet) {
    if (!is_allowed<P>(config)) return false;
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

}  // namespace waymark::etm4::test
