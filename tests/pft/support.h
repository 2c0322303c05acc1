/// Helpers for the tests of this layer: bytes from hex text, packets as text, a handler that collects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/bytes.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/text.h"

namespace waymark::pft::test {

using waymark::test::hex;

/// Packets and gaps in order.
struct Collected {
    struct Item {
        Offset first;
        std::uint64_t bytes;
        std::string text;  ///< as pft::to_text, or `GAP reason`
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
