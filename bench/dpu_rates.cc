/// Rates of parsing, decoding and encoding traces of a Debug and Profiling Unit; items are trace words. Each mode uses
/// a trace of its usual entries with random values, in the byte order of the unit (big) unless stated otherwise.
#include <benchmark/benchmark.h>

#include <random>

#include "waymark/dpu/decoder.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/reference_decoder.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;

constexpr std::size_t trace_words = 4 << 20;

struct Trace {
    TraceFormat format;
    std::vector<Entry> entries;
    std::vector<std::uint8_t> bytes;
    [[nodiscard]] std::size_t words() const { return bytes.size() / 4; }
};

Entry usual(TraceMode mode, wire::Random& random) {
    const auto pc = [&] { return static_cast<std::uint32_t>(random() & 0x00fffffeU); };
    const TaskContext context{random() % 4 == 0, static_cast<std::uint8_t>(2 + random() % 8)};
    Counters counters;
    for (std::uint32_t& value : counters) value = static_cast<std::uint32_t>(random()) & counter_mask;
    const auto reps = static_cast<std::uint32_t>(1 + random() % 1000);
    switch (mode) {
        case TraceMode::eonce_raw:
            if (random() % 64 == 0) return ContextEntry{context};
            if (random() % 8 == 0) return RawPc{pc(), {}};
            return RawPair{pc(), pc(), {}};
        case TraceMode::eonce_comp:
            if (random() % 6 == 0) return LongLoop{context.id, pc(), reps};
            if (random() % 6 == 0) return ShortLoop{context.id, pc(), reps};
            return CompressedFlow{pc(), pc(), context};
        case TraceMode::task: return TaskSwitch{pc(), pc(), counters, context};
        case TraceMode::flow: return Flow{pc(), pc(), counters, context};
        case TraceMode::sw_sample:
        case TraceMode::edca5: return Sample{context, counters};
        case TraceMode::user: return UserData{context, static_cast<std::uint32_t>(random())};
        case TraceMode::user_raw: return UserRaw{static_cast<std::uint32_t>(random()) & 0x7fffffffU};
    }
    return Pad{};
}

const Trace& trace(TraceMode mode, ByteOrder order = ByteOrder::big) {
    static std::array<std::array<Trace, 2>, trace_modes> made;
    Trace& t = made[static_cast<std::size_t>(mode)][static_cast<std::size_t>(order)];
    if (!t.bytes.empty()) return t;
    t.format = {.dpu_base = default_dpu_base, .mode = mode, .eonce_counters = 0};
    wire::Random random(1);
    std::vector<std::uint32_t> words;
    while (words.size() < trace_words) {
        t.entries.push_back(usual(mode, random));
        if (!encode(words, t.entries.back(), t.format)) t.entries.pop_back();
    }
    for (const std::uint32_t word : words) append_word(t.bytes, word, order);
    return t;
}

struct Sums final : ElementSink {
    std::uint64_t elements = 0, counted = 0;
    void consume(const Batch& batch) override {
        elements += batch.elements.size();
        for (const Reading& reading : batch.readings) counted += reading.deltas[0];
    }
};

/// In pieces of 64 KiB, as from a file.
void feed(auto& decoder, Bytes bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += 65536)
        decoder.feed(bytes.subspan(at, std::min<std::size_t>(65536, bytes.size() - at)));
}

template <class D>
void decode(benchmark::State& state, TraceMode mode, ByteOrder order = ByteOrder::big) {
    const Trace& t = trace(mode, order);
    for (auto _ : state) {
        Sums sums;
        D decoder(t.format, order, sums);
        feed(decoder, t.bytes);
        decoder.finish(true);
        if (sums.elements != t.entries.size()) state.SkipWithError("lost entries");
        benchmark::DoNotOptimize(sums.counted);
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(t.words()));
}

void fast(benchmark::State& state, TraceMode mode, ByteOrder order = ByteOrder::big) {
    decode<Decoder>(state, mode, order);
}
void reference(benchmark::State& state, TraceMode mode) { decode<ReferenceDecoder>(state, mode); }

struct Count {
    std::uint64_t entries = 0;
    void operator()(const auto&, const EntryExtent&) { ++entries; }
    void operator()(const Gap&) {}
};
void parse(benchmark::State& state, TraceMode mode) {
    const Trace& t = trace(mode);
    for (auto _ : state) {
        Count count;
        Parser<Count> parser(t.format, ByteOrder::big, count);
        feed(parser, t.bytes);
        parser.finish(true);
        if (count.entries != t.entries.size()) state.SkipWithError("lost entries");
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(t.words()));
}

void encode_entries(benchmark::State& state, TraceMode mode) {
    const Trace& t = trace(mode);
    std::vector<std::uint32_t> out;
    for (auto _ : state) {
        out.clear();
        for (const Entry& entry : t.entries) benchmark::DoNotOptimize(encode(out, entry, t.format));
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(out.size()));
}

BENCHMARK_CAPTURE(fast, task, TraceMode::task);
BENCHMARK_CAPTURE(fast, flow, TraceMode::flow);
BENCHMARK_CAPTURE(fast, flow_little_endian, TraceMode::flow, ByteOrder::little);
BENCHMARK_CAPTURE(fast, samples, TraceMode::sw_sample);
BENCHMARK_CAPTURE(fast, eonce_raw, TraceMode::eonce_raw);
BENCHMARK_CAPTURE(fast, eonce_comp, TraceMode::eonce_comp);
BENCHMARK_CAPTURE(fast, user, TraceMode::user);
BENCHMARK_CAPTURE(fast, user_raw, TraceMode::user_raw);
BENCHMARK_CAPTURE(reference, flow, TraceMode::flow);
BENCHMARK_CAPTURE(reference, eonce_raw, TraceMode::eonce_raw);
BENCHMARK_CAPTURE(reference, eonce_comp, TraceMode::eonce_comp);
BENCHMARK_CAPTURE(parse, flow, TraceMode::flow);
BENCHMARK_CAPTURE(parse, eonce_comp, TraceMode::eonce_comp);
BENCHMARK_CAPTURE(encode_entries, flow, TraceMode::flow);
BENCHMARK_CAPTURE(encode_entries, eonce_comp, TraceMode::eonce_comp);

}  // namespace

BENCHMARK_MAIN();
