/// Parser, encoder and both decoders of the Statistical Profiling Extension: any bytes, any chunking. The packets and
/// records cover the input from end to end, do not depend on how it is cut, encode to the same bytes again, and the
/// fast decoder gives the records of the reference. The first two bytes say how to cut and where to start.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/spe/decoder.h"
#include "waymark/spe/encoder.h"
#include "waymark/spe/parser.h"
#include "waymark/spe/reference_decoder.h"
#include "waymark/spe/text.h"

namespace {

using namespace waymark;

struct Item {
    Offset first;
    std::uint64_t bytes;
    std::optional<spe::Packet> packet;  // or a gap
    GapReason reason{};
    friend bool operator==(const Item&, const Item&) = default;
};

class Collector {
public:
    explicit Collector(std::vector<Item>& items) : items_(items) {}
    template <class P>
    void operator()(const P& packet, spe::Extent at) {
        items_.push_back({at.first, at.bytes, spe::Packet(packet), {}});
    }
    void operator()(const Gap& gap) { items_.push_back({gap.first, gap.bytes(), {}, gap.reason}); }

private:
    std::vector<Item>& items_;
};

std::vector<Item> parse(Bytes bytes, std::size_t piece) {
    std::vector<Item> items;
    Collector collector(items);
    spe::Parser<Collector> parser(collector);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        WM_CHECK(parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at))).empty());
    parser.finish();
    return items;
}

struct Records final : spe::RecordSink {
    std::vector<spe::Record> records;
    std::vector<spe::RecordGap> gaps;
    spe::Totals totals;
    void consume(const spe::RecordBatch& batch) override {
        for (spe::RecordGap gap : batch.gaps) {
            gap.before += static_cast<std::uint32_t>(records.size());
            gaps.push_back(gap);
        }
        for (std::size_t i = 0; i < batch.records.size; ++i) records.push_back(batch.records.row(i));
    }
};

template <class D>
Records decode(Bytes bytes, std::size_t piece, spe::Start start) {
    Records out;
    D decoder(out, start);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    decoder.finish();
    out.totals = decoder.totals();
    return out;
}

void check(const Records& a, const Records& b) {
    WM_CHECK(a.records == b.records);
    WM_CHECK(a.gaps == b.gaps);
    WM_CHECK(a.totals == b.totals);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t piece = 1U + data[0];
    const spe::Start start = (data[1] & 1U) != 0 ? spe::Start::mid_record : spe::Start::record;
    const Bytes bytes(data + 2, size - 2);

    const std::vector<Item> whole = parse(bytes, bytes.size() + 1);
    WM_CHECK(parse(bytes, piece) == whole);
    Offset at{};
    for (const Item& item : whole) {
        WM_CHECK(item.first == at);
        at = at + item.bytes;
        if (!item.packet) continue;
        (void)spe::explain(*item.packet, 0x410fd0c0);
        const std::string text = std::visit([](const auto& p) { return spe::to_text(p); }, *item.packet);
        const auto scanned = spe::from_text(text);
        WM_CHECK(scanned.has_value() && *scanned == *item.packet);
        std::vector<std::uint8_t> again;
        spe::encode(again, *item.packet);
        // Bytes that an alignment packet skips are not kept.
        const std::size_t same = std::holds_alternative<spe::Alignment>(*item.packet) ? 1 : again.size();
        WM_CHECK(again.size() == item.bytes &&
                 std::equal(again.begin(), again.begin() + static_cast<std::ptrdiff_t>(same),
                            bytes.begin() + static_cast<std::ptrdiff_t>(item.first.value)));
    }
    WM_CHECK(at.value == bytes.size());

    const Records slow = decode<spe::ReferenceDecoder>(bytes, bytes.size() + 1, start);
    check(slow, decode<spe::Decoder>(bytes, bytes.size() + 1, start));
    check(slow, decode<spe::Decoder>(bytes, piece, start));
    const spe::Totals& t = slow.totals;
    WM_CHECK(t.record_bytes + t.padding_bytes + t.alignment_bytes + t.lost_bytes == bytes.size());
    WM_CHECK(t.records == slow.records.size());
    return 0;
}
