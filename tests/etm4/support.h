/// Helpers for the tests of this layer: packets as text, a handler that collects, configurations.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/text.h"

namespace waymark::etm4::test {

using waymark::test::hex;

/// Packets and gaps in order.
struct Collected {
    struct Item {
        Offset first;
        std::uint64_t bytes;
        std::string text;  ///< as etm4::to_text, or `GAP reason`
        friend bool operator==(const Item&, const Item&) = default;
    };
    std::vector<Item> items;
    std::vector<Packet> packets;

    [[nodiscard]] std::string text() const {
        std::string out;
        for (const Item& item : items)
            out += std::to_string(item.first.value) + "+" + std::to_string(item.bytes) + " " + item.text + "\n";
        return out;
    }
};

class Collector {
public:
    Collector(const Config& config, Collected& into) : config_(config), into_(into) {}
    template <class P>
    void operator()(const P& packet, Extent at) {
        into_.items.push_back({at.first, at.bytes, to_text(packet, config_)});
        into_.packets.emplace_back(packet);
    }
    void operator()(const Gap& gap) {
        into_.items.push_back({gap.first, gap.bytes(), "GAP " + std::string(name(gap.reason))});
    }

private:
    const Config& config_;
    Collected& into_;
};

/// Parses a whole stream, cut after every `cuts` position.
inline Collected collect(Bytes bytes, const Config& config, const std::vector<std::size_t>& cuts = {}) {
    Collected out;
    Collector handler(config, out);
    Parser<Collector> parser(config, handler);
    std::size_t from = 0;
    for (const std::size_t cut : cuts) {
        parser.feed(bytes.subspan(from, cut - from));
        from = cut;
    }
    parser.feed(bytes.subspan(from));
    parser.finish();
    return out;
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
