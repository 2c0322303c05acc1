/// Operations per second of the model of the Statistical Profiling unit: skipped in blocks, passed one by one, and the
/// cost of a sample.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>

#include "waymark/spe/model.h"

namespace {

using namespace waymark;

constexpr std::uint64_t base = 0x1'0000, buffer_bytes = 1 << 20;

spe::Executed load(std::uint64_t cycle) {
    spe::Executed op;
    op.pc = {0x40'0000};
    op.cycle = cycle;
    op.operation.kind = spe::Operation::Kind::general;
    op.operation.load = true;
    op.total_latency = 4;
    op.access = spe::Access{.address = {0x7fff'0000}};
    return op;
}

/// Empties a full buffer.
void serve(spe::Model& model, std::uint64_t cycle) {
    model.change(cycle, [](spe::State& s) {
        s.regs.pmbptr_el1.ptr = base;
        s.regs.pmbsr_el1 = {};
    });
}

/// A driver that counts blocks of six operations and examines only those that contain a sample.
void skipped(benchmark::State& state) {
    spe::ProfilingBuffer buffer({base}, buffer_bytes);
    spe::Model model(
        spe::ModelConfig::linux_user(spe::Version::v1_2, static_cast<std::uint32_t>(state.range(0)), buffer), buffer);
    std::uint64_t cycle = 0;
    constexpr std::uint64_t blocks = 1 << 20, block = 6;
    for (auto _ : state) {
        for (std::uint64_t i = 0; i < blocks; ++i, cycle += block) {
            if (model.until_next() >= block) [[likely]] {
                model.skip(block);
                continue;
            }
            for (std::uint64_t k = 0; k < block; ++k) model.retire(load(cycle + k));
            if (model.pmbirq()) serve(model, cycle);
        }
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(blocks * block));
    state.counters["samples"] = static_cast<double>(model.counts().chosen);
}
BENCHMARK(skipped)->Arg(256)->Arg(1024)->Arg(4096)->Arg(65536)->Unit(benchmark::kMillisecond);

void operations(benchmark::State& state) {
    spe::ProfilingBuffer buffer({base}, buffer_bytes);
    spe::Model model(spe::ModelConfig::linux_user(spe::Version::v1_2, 4096, buffer), buffer);
    std::uint64_t cycle = 0;
    constexpr std::uint64_t operations = 1 << 20;
    for (auto _ : state)
        for (std::uint64_t i = 0; i < operations; ++i) {
            model.retire(load(++cycle));
            if (model.pmbirq()) serve(model, cycle);
        }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(operations));
}
BENCHMARK(operations)->Unit(benchmark::kMillisecond);

void samples(benchmark::State& state) {
    spe::ProfilingBuffer buffer({base}, buffer_bytes);
    spe::Model model(spe::ModelConfig::linux_user(spe::Version::v1_2, 256, buffer), buffer);
    std::uint64_t cycle = 0;
    constexpr std::uint64_t count = 1 << 14;
    for (auto _ : state)
        for (std::uint64_t i = 0; i < count; ++i) {
            model.skip(model.until_next());
            model.retire(load(cycle += 300));
            if (model.pmbirq()) serve(model, cycle);
        }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(count));
}
BENCHMARK(samples)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
