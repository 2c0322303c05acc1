/// Helpers for the tests of this layer: words from text, entries and gaps as text, elements collected, random traces.
///
/// A line `//
/// Requirements: R57 R63` directly above a test says which requirements of docs/spec/dpu.md, section 2, it
/// checks; requirements_test.py reads these lines, here and in tests/record.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "waymark/dpu/decoder.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/reference_decoder.h"
#include "waymark/dpu/text.h"

namespace waymark::dpu::test {

using Words = std::vector<std::uint32_t>;
using Bytes8 = std::vector<std::uint8_t>;

/// `FFF0A20F 00402011` → words.
inline Words words(const std::string& text) {
    std::istringstream in(text);
    in >> std::hex;
    Words out;
    for (std::uint32_t word = 0; in >> word;) out.push_back(word);
    return out;
}

inline Bytes8 memory(const Words& words, ByteOrder order = ByteOrder::big) {
    Bytes8 out;
    for (const std::uint32_t word : words) append_word(out, word, order);
    return out;
}

inline TraceFormat in(TraceMode mode) { return {.dpu_base = default_dpu_base, .mode = mode, .eonce_counters = 0}; }
inline TraceFormat any_mode() { return {.dpu_base = default_dpu_base, .mode = std::nullopt, .eonce_counters = 0}; }

/// Entries and gaps in order: `36 TASK-SWITCH …`, `no entry: malformed packet`.
struct Item {
    std::uint64_t first{}, bytes{};
    std::string text;
    friend bool operator==(const Item&, const Item&) = default;
};
class Collector {
public:
    explicit Collector(const TraceFormat& f) : format(f) {}
    template <class P>
    void operator()(const P& entry, EntryExtent at) {
        items.push_back({at.first.value, at.bytes, to_text(entry, format) + (at.doubtful ? " doubtful" : "")});
        entries.emplace_back(entry);
    }
    void operator()(const Gap& gap) {
        items.push_back({gap.first.value, gap.bytes(), "no entry: " + std::string(name(gap.reason))});
    }
    [[nodiscard]] std::vector<std::string> texts() const {
        std::vector<std::string> out;
        for (const Item& item : items) out.push_back(item.text);
        return out;
    }
    TraceFormat format;
    std::vector<Item> items;
    std::vector<Entry> entries;
};

inline Collector parse(const Bytes8& bytes, const TraceFormat& format, bool complete = true,
                       ByteOrder order = ByteOrder::big, std::size_t piece = ~std::size_t{0}) {
    Collector out(format);
    Parser<Collector> parser(format, order, out);
    const Bytes all(bytes);
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t size = std::min(piece, all.size() - at);
        parser.feed(all.subspan(at, size));
        at += size;
    }
    parser.finish(complete);
    return out;
}
inline std::vector<std::string> parsed(const std::string& text, const TraceFormat& format, bool complete = true) {
    return parse(memory(words(text)), format, complete).texts();
}

/// Elements from a decoder; readings by the elements' `value`.
struct Elements final : ElementSink {
    std::vector<Element> elements;
    std::vector<Reading> readings;
    Totals totals;
    void consume(const Batch& batch) override {
        for (Element element : batch.elements) {
            if (element.has_reading()) element.value += static_cast<std::uint32_t>(readings.size());
            elements.push_back(element);
        }
        readings.insert(readings.end(), batch.readings.begin(), batch.readings.end());
    }
    friend bool operator==(const Elements& a, const Elements& b) {
        return a.elements == b.elements && a.readings == b.readings && a.totals == b.totals;
    }
};

template <class D>
Elements decode(const Bytes8& bytes, const TraceFormat& format, const StartState& start = {}, bool complete = true,
                ByteOrder order = ByteOrder::big, std::size_t piece = ~std::size_t{0}) {
    Elements out;
    D decoder(format, order, out, start);
    const Bytes all(bytes);
    for (std::size_t at = 0; at < all.size();) {
        const std::size_t size = std::min(piece, all.size() - at);
        decoder.feed(all.subspan(at, size));
        at += size;
    }
    decoder.finish(complete);
    out.totals = decoder.totals();
    return out;
}

/// Random legal entries of one format. More than half of the counter words are flags or addresses.
class RandomTrace {
public:
    RandomTrace(const TraceFormat& format, std::uint64_t seed) : format_(format), random_(seed) {
        Entries::for_each([&]<class P>() {
            // Where literal words fill lines depends on their places.
            constexpr bool fills = std::same_as<P, Pad> || std::same_as<P, Closed>;
            if (fills && format.mode == TraceMode::user_raw) return;
            if (legal<P>(format)) makers_.push_back([](RandomTrace& self) { return Entry(self.make<P>()); });
        });
    }
    Entry entry() { return makers_[random_() % makers_.size()](*this); }
    std::vector<Entry> entries(std::size_t count) {
        std::vector<Entry> out;
        for (std::size_t i = 0; i < count; ++i) out.push_back(entry());
        return out;
    }
    wire::Random& random() { return random_; }

private:
    template <class P>
    P make() {
        P entry{};
        wire::Generator generator(random_);
        P::fields(generator, entry, format_);
        if constexpr (requires { entry.counters; })
            for (std::size_t i = 0; i < entry.counters.size(); ++i) {
                if (!std::same_as<decltype(entry.counters), Counters> && i >= format_.eonce_counters) continue;
                if (random_() % 2 == 0)
                    entry.counters[i] =
                        format_.word({static_cast<FlagKind>(random_() % 8), static_cast<std::uint8_t>(random_())}) >> 1;
            }
        // Words that fill lines (7.2).
        if constexpr (std::same_as<P, UserRaw>)
            if (format_.in_flag_page(entry.data)) entry.data ^= 0x80000000U;
        return entry;
    }

    TraceFormat format_;
    wire::Random random_;
    std::vector<Entry (*)(RandomTrace&)> makers_;
};

/// The bytes of a buffer that holds these entries.
inline Bytes8 encoded(const std::vector<Entry>& entries, const TraceFormat& format, ByteOrder order = ByteOrder::big) {
    Words out;
    for (const Entry& entry : entries) EXPECT_TRUE(encode(out, entry, format));
    return memory(out, order);
}

/// Every possible format of a trace.
inline std::vector<TraceFormat> formats() {
    std::vector<TraceFormat> out;
    for (unsigned mode = 0; mode < trace_modes; ++mode) out.push_back(in(static_cast<TraceMode>(mode)));
    for (const std::uint8_t c : {std::uint8_t{1}, std::uint8_t{2}})
        out.push_back({.dpu_base = default_dpu_base, .mode = TraceMode::eonce_raw, .eonce_counters = c});
    out.push_back({.dpu_base = 0x00401000, .mode = TraceMode::flow, .eonce_counters = 0});
    return out;
}

}  // namespace waymark::dpu::test
