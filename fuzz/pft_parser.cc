/// Parser and encoder of Program Flow Trace: any bytes, any configuration, any chunking. The packets and gaps cover the
/// input from end to end and do not depend on how it is cut; each packet encodes to bytes that parse to the same
/// packet.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "pft_input.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/text.h"

namespace {

using namespace waymark;

struct Item {
    Offset first;
    std::uint64_t bytes;
    std::optional<pft::Packet> packet;  // or a gap
    GapReason reason{};
    friend bool operator==(const Item&, const Item&) = default;
};

class Collector {
public:
    explicit Collector(std::vector<Item>& items) : items_(items) {}
    template <class P>
    void operator()(const P& packet, pft::Extent at) {
        items_.push_back({at.first, at.bytes, pft::Packet(packet), {}});
    }
    void operator()(const Gap& gap) { items_.push_back({gap.first, gap.bytes(), {}, gap.reason}); }

private:
    std::vector<Item>& items_;
};

std::vector<Item> parse(Bytes bytes, const pft::Config& config, std::size_t piece) {
    std::vector<Item> items;
    Collector collector(items);
    pft::Parser<Collector> parser(config, collector);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    parser.finish();
    return items;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const pft::Config config = fuzz::config(input);
    const std::size_t piece = 1 + input.byte() % 40;
    const Bytes bytes = input.rest();

    const std::vector<Item> whole = parse(bytes, config, bytes.size() + 1);
    if (parse(bytes, config, piece) != whole) std::abort();
    Offset at{};
    pft::Explainer explain(config);
    for (const Item& item : whole) {
        if (item.first != at) std::abort();
        at = at + item.bytes;
        if (item.packet)
            (void)explain(*item.packet);
        else
            explain(Gap{item.first, at, item.reason});
    }
    if (at.value != bytes.size()) std::abort();
    return 0;
}
