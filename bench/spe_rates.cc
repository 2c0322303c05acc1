/// Records per second of the decoders of the Statistical Profiling Extension. Streams are loads, stores, branches and
/// others in random order, in the form of Neoverse cores (64 bytes per record) and packed to 8 bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <vector>

#include "waymark/spe/decoder.h"
#include "waymark/spe/encoder.h"
#include "waymark/spe/reference_decoder.h"

namespace {

using namespace waymark;

constexpr std::size_t records = 500'000;

/// `chance` in 1000 records contain a packet without a column, which the fast path does not handle.
std::vector<std::uint8_t> make_stream(std::size_t align, unsigned chance) {
    std::mt19937_64 random(1);
    std::vector<std::uint8_t> out;
    const auto put = [&](const spe::Packet& packet) { spe::encode(out, packet); };
    std::uint64_t time = 1'000'000;
    for (std::size_t i = 0; i < records; ++i) {
        const auto kind = random() % 10;
        put(spe::AddressPacket{{0}, 0x8000'aaaa'0000'0000U + random() % 0x100000 * 4});
        put(spe::Context{1, static_cast<std::uint32_t>(4000 + random() % 8)});
        if (kind < 5)
            put(spe::OperationType{spe::OperationClass::load_store, 0});
        else if (kind < 7)
            put(spe::OperationType{spe::OperationClass::load_store, 1});
        else
            put(spe::OperationType{kind < 9 ? spe::OperationClass::branch : spe::OperationClass::other, 1});
        put(spe::Events{{2 | random() % 64 * 4, 2}});
        put(spe::Counter{{1}, static_cast<std::uint16_t>(random() % 40)});
        put(spe::Counter{{0}, static_cast<std::uint16_t>(40 + random() % 400)});
        if (kind < 7) {
            put(spe::AddressPacket{{2}, 0xffff'0000'0000U + random() % 0x1000000 * 8});
            put(spe::Counter{{2}, 1});
        }
        if (kind < 5) put(spe::DataSource{{random() % 16, 1}});
        if (kind >= 7 && kind < 9) put(spe::AddressPacket{{1}, 0x8000'aaaa'0000'0000U + random() % 0x100000 * 4});
        if (random() % 1000 < chance) put(spe::Counter{{7}, 1});
        const std::size_t used = out.size() % align + 9;
        out.resize(out.size() + (align - used % align) % align);
        put(spe::Timestamp{time += random() % 1000});
    }
    return out;
}

struct Sum final : spe::RecordSink {
    std::uint64_t records = 0, latency = 0;
    void consume(const spe::RecordBatch& batch) override {
        records += batch.records.size;
        for (std::size_t i = 0; i < batch.records.size; ++i) latency += batch.records.total_latency[i];
    }
};

template <class D>
void decode(benchmark::State& state) {
    const auto bytes = make_stream(static_cast<std::size_t>(state.range(0)), static_cast<unsigned>(state.range(1)));
    Sum sum;
    for (auto _ : state) {
        D decoder(sum);
        decoder.feed(bytes);
        decoder.finish();
    }
    benchmark::DoNotOptimize(sum.latency);
    state.counters["records/s"] = benchmark::Counter(static_cast<double>(sum.records), benchmark::Counter::kIsRate);
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes.size()) * static_cast<std::int64_t>(state.iterations()));
}

// Alignment of records; how many of 1000 are unusual.
BENCHMARK(decode<spe::Decoder>)->Name("Decoder")->Args({64, 0})->Args({8, 0})->Args({1, 0})->Args({64, 100});
BENCHMARK(decode<spe::ReferenceDecoder>)->Name("ReferenceDecoder")->Args({64, 0})->Args({8, 0});

}  // namespace

BENCHMARK_MAIN();
