/// What a parser delivers, as text: for the tests of a protocol's packets.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/core/packet_parser.h"
#include "waymark/core/types.h"

namespace waymark::test {

/// Packets and gaps in order. `Packet` is the variant of a protocol's packets.
template <class Packet>
struct Collected {
    struct Item {
        Offset first;
        std::uint64_t bytes;
        std::string text;  ///< as the protocol's to_text, or `GAP reason`
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

/// Handles packets: to_text(packet, config...) of the protocol gives the text of each. All is borrowed.
template <class Packet, class... Config>
class Collector {
public:
    Collector(const Config&... config, Collected<Packet>& into) : config_(config...), into_(into) {}
    template <class P>
    void operator()(const P& packet, wire::Extent at) {
        into_.items.push_back(
            {at.first, at.bytes, std::apply([&](const Config&... c) { return to_text(packet, c...); }, config_)});
        into_.packets.emplace_back(packet);
    }
    void operator()(const Gap& gap) {
        into_.items.push_back({gap.first, gap.bytes(), "GAP " + std::string(name(gap.reason))});
    }

private:
    std::tuple<const Config&...> config_;
    Collected<Packet>& into_;
};

/// Feeds a whole stream, cut after every `cuts` position, to anything with feed().
template <class Reader>
void feed(Reader& reader, Bytes bytes, const std::vector<std::size_t>& cuts) {
    std::size_t from = 0;
    for (const std::size_t cut : cuts) {
        reader.feed(bytes.subspan(from, cut - from));
        from = cut;
    }
    reader.feed(bytes.subspan(from));
}

/// Parses a whole stream, cut after every `cuts` position.
template <template <class> class Parser, class Packet, class... Config>
[[nodiscard]] Collected<Packet> collect(Bytes bytes, const Config&... config, const std::vector<std::size_t>& cuts) {
    using Handler = Collector<Packet, Config...>;
    Collected<Packet> out;
    Handler handler(config..., out);
    Parser<Handler> parser(config..., handler);
    feed(parser, bytes, cuts);
    parser.finish();
    return out;
}

}  // namespace waymark::test
