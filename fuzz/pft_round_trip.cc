/// Packets of Program Flow Trace: each parsed packet encodes to at most as many bytes, which parse to the same packet,
/// and to text that scans to the same packet; encoding is canonical.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "pft_input.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/text.h"

namespace {

using namespace waymark;

struct Item {
    std::uint64_t bytes;
    pft::Packet packet;
};

class Collector {
public:
    explicit Collector(std::vector<Item>& items) : items_(items) {}
    template <class P>
    void operator()(const P& packet, pft::Extent at) {
        items_.push_back({at.bytes, packet});
    }
    void operator()(const Gap&) {}

private:
    std::vector<Item>& items_;
};

std::vector<Item> parse(Bytes bytes, const pft::Config& config) {
    std::vector<Item> items;
    Collector collector(items);
    pft::Parser<Collector> parser(config, collector);
    parser.feed(bytes);
    parser.finish();
    return items;
}

/// Parses one packet behind an A-sync.
std::optional<pft::Packet> parse_one(const std::vector<std::uint8_t>& bytes, const pft::Config& config) {
    std::vector<std::uint8_t> synced = {0, 0, 0, 0, 0, 0x80};
    synced.insert(synced.end(), bytes.begin(), bytes.end());
    const std::vector<Item> items = parse(synced, config);
    if (items.size() != 2 || items[1].bytes != bytes.size()) return {};
    return items[1].packet;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const pft::Config config = fuzz::config(input);
    std::vector<std::uint8_t> stream = {0, 0, 0, 0, 0, 0x80};
    const Bytes rest = input.rest();
    stream.insert(stream.end(), rest.begin(), rest.end());
    for (const Item& item : parse(stream, config)) {
        std::vector<std::uint8_t> encoded, again;
        pft::encode(encoded, item.packet, config);
        if (encoded.size() > item.bytes) std::abort();
        const auto parsed = parse_one(encoded, config);
        if (parsed != item.packet) std::abort();
        pft::encode(again, *parsed, config);
        if (again != encoded) std::abort();
        const std::string text = std::visit([&](const auto& p) { return pft::to_text(p, config); }, item.packet);
        const auto scanned = pft::from_text(text, config);
        if (!scanned || *scanned != item.packet) std::abort();
    }
    return 0;
}
