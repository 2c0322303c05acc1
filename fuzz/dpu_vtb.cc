/// A Debug and Profiling Unit's trace buffer: any words in any trace mode, in any chunks. What is reported covers the
/// input end to end, is the same however the input is cut, encodes to the same words again, and the fast decoder gives
/// the elements of the reference decoder. Entries as Nexus messages are read back. The first four bytes say how.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/dpu/decoder.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/reference_decoder.h"
#include "waymark/dpu/text.h"
#include "waymark/dpu/vtb.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;

struct Input {
    TraceFormat format;
    ByteOrder order{};
    bool complete{};
    std::size_t piece{};
    StartState start;
    Bytes bytes;
};

struct Item {
    Offset first;
    std::uint64_t bytes{};
    std::optional<Entry> entry;  // or a gap
    bool doubtful{};
    GapReason reason{};
    friend bool operator==(const Item&, const Item&) = default;
};

struct Collector {
    std::vector<Item> items;
    template <class P>
    void operator()(const P& entry, const EntryExtent& at) {
        items.push_back({at.first, at.bytes, Entry(entry), at.doubtful, {}});
    }
    void operator()(const Gap& gap) { items.push_back({gap.first, gap.bytes(), {}, false, gap.reason}); }
};

void feed(auto& into, Bytes bytes, std::size_t piece) {
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        into.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
}

std::vector<Item> parse(const Input& in, std::size_t piece) {
    Collector collector;
    dpu::Parser<Collector> parser(in.format, in.order, collector);
    feed(parser, in.bytes, piece);
    parser.finish(in.complete);
    return std::move(collector.items);
}

struct Elements final : ElementSink {
    std::vector<Element> elements;
    std::vector<Reading> readings;
    Totals totals;
    void consume(const Batch& batch) override {
        for (Element element : batch.elements) {
            if (element.has_reading()) {
                WM_CHECK(element.value < batch.readings.size());
                element.value += static_cast<std::uint32_t>(readings.size());
            }
            elements.push_back(element);
        }
        readings.insert(readings.end(), batch.readings.begin(), batch.readings.end());
    }
    friend bool operator==(const Elements& a, const Elements& b) {
        return a.elements == b.elements && a.readings == b.readings && a.totals == b.totals;
    }
};

template <class D>
Elements decode(const Input& in, std::size_t piece) {
    Elements out;
    D decoder(in.format, in.order, out, in.start);
    feed(decoder, in.bytes, piece);
    decoder.finish(in.complete);
    out.totals = decoder.totals();
    return out;
}

/// The entries as Nexus messages: every byte of them is read back.
void check_nexus(const Input& in, const std::vector<Item>& items) {
    struct Parsed {
        nexus::Reader reader;
        std::uint64_t bytes = 0;
        void operator()(const nexus::Message& message, nexus::Extent at) {
            bytes += at.bytes;
            (void)reader.read(message);
        }
        void operator()(const Gap&) { WM_CHECK(false); }
    };
    std::vector<std::uint8_t> out;
    nexus::Mapper mapper(out, in.format.mode.value_or(TraceMode::flow), in.complete);
    for (const Item& item : items)
        if (item.entry) mapper.entry(*item.entry, {});
    Parsed parsed;
    nexus::Parser<Parsed> parser(parsed);
    parser.feed(out);
    parser.finish();
    WM_CHECK(parsed.bytes == out.size());
}

/// Meaningless registers: a stretch never leaves the dump, and never more is read than the dump has.
void check_order(Bytes bytes) {
    if (bytes.size() < 16) return;
    const auto word = [&](std::size_t at) { return load_word(bytes.data() + at, ByteOrder::little); };
    VtbState state{word(0), word(4), word(8), (bytes[12] & 1U) != 0, (bytes[12] & 2U) != 0, {}};
    if ((bytes[12] & 4U) != 0) state.lines_written = bytes[13];
    const std::uint64_t dump = std::uint64_t{bytes[14]} << (bytes[15] % 32);
    const auto order = reading_order(state, dump);
    if (!order) return;
    for (const Stretch& stretch : order->stretches)
        WM_CHECK(stretch.bytes != 0 && stretch.offset <= dump && stretch.bytes <= dump - stretch.offset);
    WM_CHECK(order->bytes() <= dump);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 4) return 0;
    Input in;
    const unsigned mode = data[0] % (trace_modes + 1);
    in.format.mode = mode == trace_modes ? std::nullopt : std::optional(static_cast<TraceMode>(mode));
    if (in.format.mode) in.format.eonce_counters = static_cast<std::uint8_t>(data[0] >> 6);
    if (in.format.eonce_counters > 2) in.format.eonce_counters = 0;
    in.order = (data[1] & 1U) != 0 ? ByteOrder::little : ByteOrder::big;
    in.complete = (data[1] & 2U) != 0;
    if ((data[1] & 4U) != 0) in.start.context = TaskContext{(data[1] & 8U) != 0, data[2]};
    if ((data[1] & 16U) != 0) in.start.counters = Counters{};
    if ((data[1] & 32U) != 0) in.format.dpu_base = 0x00401000;
    in.piece = 1U + data[3];
    in.bytes = Bytes(data + 4, size - 4);

    const std::vector<Item> whole = parse(in, in.bytes.size() + 1);
    WM_CHECK(parse(in, in.piece) == whole);
    Offset at{};
    for (const Item& item : whole) {
        WM_CHECK(item.first == at);
        at = at + item.bytes;
        if (!item.entry) continue;
        (void)explain(*item.entry);
        const std::string text = std::visit([&](const auto& e) { return to_text(e, in.format); }, *item.entry);
        const auto scanned = from_text(text, in.format);
        WM_CHECK(scanned.has_value() && *scanned == *item.entry);
        std::vector<std::uint32_t> words;
        WM_CHECK(encode(words, *item.entry, in.format));
        std::vector<std::uint8_t> again;
        for (const std::uint32_t word : words) append_word(again, word, in.order);
        WM_CHECK(
            again.size() == item.bytes &&
            std::equal(again.begin(), again.end(), in.bytes.begin() + static_cast<std::ptrdiff_t>(item.first.value)));
    }
    WM_CHECK(at.value == in.bytes.size());

    const Elements slow = decode<ReferenceDecoder>(in, in.bytes.size() + 1);
    WM_CHECK(decode<Decoder>(in, in.bytes.size() + 1) == slow);
    WM_CHECK(decode<Decoder>(in, in.piece) == slow);
    std::uint64_t gaps = 0;
    for (const std::uint64_t each : slow.totals.gap_bytes) gaps += each;
    WM_CHECK(slow.totals.entry_bytes + gaps == in.bytes.size());
    check_nexus(in, whole);
    check_order(in.bytes);
    return 0;
}
