/// Events per second of the model of the Debug and Profiling Unit: counting alone, cycle by cycle and in stretches, and
/// tracing in every mode. An event is a cycle passed to the model, or an item.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>

#include "waymark/dpu/model.h"

namespace {

using namespace waymark;

constexpr std::uint32_t base = 0x20000000, buffer_bytes = 1 << 16;

dpu::Model programmed(dpu::TraceMode mode, bool traced) {
    dpu::ModelConfig config;
    config.eonce = dpu::EonceSetup::for_mode(mode);
    dpu::Model model(config);
    model.write(dpu::DpTsa::offset, base);
    model.write(dpu::DpTea::offset, base + buffer_bytes - 32);
    model.write(dpu::DpTw::offset, base);
    model.write(dpu::DpTac::offset, 0x000f0023);
    model.write(dpu::DpTbc::offset, 0x000f0073);
    if (traced) model.write(dpu::DpTc::offset, 0x00200001U | static_cast<std::uint32_t>(mode) << 1);
    model.step({});
    return model;
}

/// Cycle by cycle, only counting.
void counting(benchmark::State& state) {
    dpu::Model model = programmed(dpu::TraceMode::flow, false);
    dpu::CycleInput in;
    constexpr std::int64_t cycles = 1 << 20;
    for (auto _ : state)
        for (std::int64_t i = 0; i < cycles; ++i) {
            in.set(dpu::EventWire::dc_hit, static_cast<std::uint64_t>(i & 1));
            in.set(dpu::EventWire::stall_all, static_cast<std::uint64_t>(i & 2) >> 1);
            benchmark::DoNotOptimize(model.step(in));
        }
    state.SetItemsProcessed(state.iterations() * cycles);
}
BENCHMARK(counting)->Unit(benchmark::kMillisecond);

/// Blocks of six cycles with their events, as passed by a recorder.
void stretches(benchmark::State& state) {
    dpu::Model model = programmed(dpu::TraceMode::flow, true);
    dpu::CycleInput in;
    constexpr std::int64_t blocks = 1 << 18;
    for (auto _ : state)
        for (std::int64_t i = 0; i < blocks; ++i) {
            in.set(dpu::EventWire::dc_hit, static_cast<std::uint64_t>(i & 3));
            benchmark::DoNotOptimize(model.run(in, 6));
        }
    state.SetItemsProcessed(state.iterations() * blocks * 6);
    state.counters["stretches"] =
        benchmark::Counter(static_cast<double>(state.iterations() * blocks), benchmark::Counter::kIsRate);
}
BENCHMARK(stretches)->Unit(benchmark::kMillisecond);

/// An item in every cycle, in a trace mode: the argument.
void items(benchmark::State& state) {
    const auto mode = static_cast<dpu::TraceMode>(state.range(0));
    dpu::Model model = programmed(mode, true);
    std::array<dpu::EonceItem, 4> program{};
    constexpr dpu::ItemKind kinds[] = {dpu::ItemKind::call, dpu::ItemKind::cof, dpu::ItemKind::loop_long,
                                       dpu::ItemKind::ret};
    for (std::size_t i = 0; i < program.size(); ++i) {
        program[i].kind = kinds[i];
        program[i].src = 0x00401000 + 0x40 * static_cast<std::uint32_t>(i);
        program[i].dst = 0x00402000 - 0x40 * static_cast<std::uint32_t>(i);
    }
    dpu::CycleInput in;
    constexpr std::int64_t cycles = 1 << 19;
    for (auto _ : state)
        for (std::int64_t i = 0; i < cycles; ++i) {
            in.items = std::span(program).subspan(static_cast<std::size_t>(i & 3), 1);
            in.set(dpu::EventWire::dc_hit, static_cast<std::uint64_t>(i & 1));
            benchmark::DoNotOptimize(model.step(in));
        }
    state.SetItemsProcessed(state.iterations() * cycles);
    state.counters["lines"] = static_cast<double>(model.counts().lines_written);
    state.counters["lost"] = static_cast<double>(model.counts().lost);
}
BENCHMARK(items)->DenseRange(0, 5)->Unit(benchmark::kMillisecond);

/// A block of six cycles followed by a call or a return: a stretch of five and a step, entries of nine words.
void blocks(benchmark::State& state) {
    const auto mode = static_cast<dpu::TraceMode>(state.range(0));
    dpu::Model model = programmed(mode, true);
    dpu::EonceItem call;
    call.kind = dpu::ItemKind::call;
    call.src = 0x00401000;
    call.dst = 0x00402000;
    dpu::CycleInput stretch, last;
    last.items = std::span(&call, 1);
    constexpr std::int64_t count = 1 << 18;
    for (auto _ : state)
        for (std::int64_t i = 0; i < count; ++i) {
            stretch.set(dpu::EventWire::dc_hit, static_cast<std::uint64_t>(i & 3));
            benchmark::DoNotOptimize(model.run(stretch, 5));
            call.kind = (i & 1) != 0 ? dpu::ItemKind::ret : dpu::ItemKind::call;
            benchmark::DoNotOptimize(model.step(last));
        }
    state.SetItemsProcessed(state.iterations() * count * 6);
}
BENCHMARK(blocks)->Arg(1)->Arg(2)->Arg(3)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
