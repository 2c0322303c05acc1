/// Parser, encoder and text of ETMv4 and ETE: any bytes, any registers, any chunking. The packets and gaps cover the
/// input from end to end and do not depend on how it is cut; each packet encodes to text, and to at most as many bytes,
/// that give the same packet again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "etm4_input.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/data_stream.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/text.h"

namespace {

using namespace waymark;

struct Item {
    Offset first;
    std::uint64_t bytes;
    std::optional<etm4::Packet> packet;  // or a gap
    GapReason reason{};
    friend bool operator==(const Item&, const Item&) = default;
};

class Collector {
public:
    explicit Collector(std::vector<Item>& items) : items_(items) {}
    template <class P>
    void operator()(const P& packet, etm4::Extent at) {
        items_.push_back({at.first, at.bytes, etm4::Packet(packet), {}});
    }
    void operator()(const Gap& gap) { items_.push_back({gap.first, gap.bytes(), {}, gap.reason}); }

private:
    std::vector<Item>& items_;
};

std::vector<Item> parse(Bytes bytes, const etm4::Config& config, std::size_t piece) {
    std::vector<Item> items;
    Collector collector(items);
    etm4::Parser<Collector> parser(config, collector);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    parser.finish();
    return items;
}

void check_round_trip(const Item& item, const etm4::Config& config) {
    std::vector<std::uint8_t> encoded(11, 0);
    encoded.push_back(0x80);
    const std::size_t sync = encoded.size();
    etm4::encode(encoded, *item.packet, config);
    if (encoded.size() - sync > item.bytes) std::abort();
    const std::vector<Item> again = parse(encoded, config, encoded.size());
    if (again.size() != 2 || again[1].packet != item.packet || again[1].bytes != encoded.size() - sync) std::abort();
    const std::string text = std::visit([&](const auto& p) { return etm4::to_text(p, config); }, *item.packet);
    const auto scanned = etm4::from_text(text, config);
    if (!scanned || *scanned != *item.packet) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const etm4::Config config = fuzz::etm4_config(input);
    const std::size_t piece = 1 + input.byte() % 40;
    const bool synced = input.byte() % 4 != 0;
    std::vector<std::uint8_t> bytes(synced ? 11 : 0, 0);
    if (synced) bytes.push_back(0x80);
    const Bytes rest = input.rest();
    bytes.insert(bytes.end(), rest.begin(), rest.end());

    const std::vector<Item> whole = parse(bytes, config, bytes.size() + 1);
    if (parse(bytes, config, piece) != whole) std::abort();
    Offset at{};
    etm4::Explainer explain(config);
    for (const Item& item : whole) {
        if (item.first != at || item.bytes == 0) std::abort();
        at = at + item.bytes;
        if (item.packet) {
            (void)explain(*item.packet);
            check_round_trip(item, config);
        } else {
            explain(Gap{item.first, at, item.reason});
        }
    }
    if (at.value != bytes.size()) std::abort();

    etm4::DataStreamCounter counter;
    counter.feed(rest);
    if (counter.bytes() != rest.size() || counter.syncs() * 12 > rest.size()) std::abort();
    return 0;
}
