/// How many ranges a second the decoders of Program Flow Trace give: reference, cached blocks, and OpenCSD beside them
/// in the same run on the same stream. Streams are random executions of random programs (tests/support/synthetic.h).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/reference_decoder.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

namespace {

using namespace waymark;

constexpr std::uint64_t waypoints = 20'000'000;

struct Stream {
    pft::Config config;
    std::uint32_t etmcr = 0, etmccer = 0, etmidr = 0x411cf312;
    synthetic::Program program;
    std::vector<std::uint8_t> bytes;
};

Stream make_stream(unsigned blocks, bool return_stack, bool cycle_accurate) {
    Stream s;
    s.etmcr = (return_stack ? 1U << 29 : 0U) | (cycle_accurate ? 1U << 28 | 1U << 12 : 0U);
    s.etmccer = 0x34c01ac2;
    s.config =
        pft::Config::from_registers(pft::from_value<pft::Etmcr>(s.etmcr), pft::from_value<pft::Etmccer>(s.etmccer),
                                    pft::from_value<pft::Etmidr>(s.etmidr));
    s.program = synthetic::make_program({.seed = 1, .blocks = blocks, .a32_eret = false, .blx_may_fail = false, .large_block_chance = 0});
    // Plain execution: what OpenCSD reads otherwise (docs/spec/pft.md, 4.10) would compare different work.
    synthetic::Walk walk(s.program, {.seed = 2,
                                     .exceptions = 20,
                                     .debug = 0,
                                     .context_changes = 0,
                                     .vmid_changes = 0,
                                     .filter_changes = 0,
                                     .overflows = 0,
                                     .jazelle = 0,
                                     .security_changes = 0,
                                     .odd_exceptions = 0,
                                     .trustzone = false});
    synthetic::TraceWriter writer(s.config, {.seed = 3, .keep_truth = false});
    walk.run(writer, waypoints);
    writer.finish();
    s.bytes = writer.bytes();
    return s;
}

const Stream& stream(int which) {
    static const Stream streams[] = {make_stream(1500, false, false), make_stream(50000, false, false),
                                     make_stream(1500, true, false), make_stream(1500, false, true)};
    return streams[which];
}

void report(benchmark::State& state, std::uint64_t ranges, std::uint64_t instructions, std::size_t bytes) {
    const auto n = static_cast<double>(state.iterations());
    state.counters["ranges/s"] = benchmark::Counter(static_cast<double>(ranges) * n, benchmark::Counter::kIsRate);
    state.counters["MB/s"] = benchmark::Counter(static_cast<double>(bytes) * n / 1e6, benchmark::Counter::kIsRate);
    state.counters["ranges"] = static_cast<double>(ranges);
    state.counters["instructions"] = static_cast<double>(instructions);
}

/// Resolves every block in order, as a real consumer does.
class CountingSink final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        ranges += batch.ranges.size();
        for (const flow::Range& range : batch.ranges) instructions += batch.blocks[range.block()].instructions;
    }
    std::uint64_t ranges = 0, instructions = 0;
};

template <class Decoder>
void decode(benchmark::State& state) {
    const Stream& s = stream(static_cast<int>(state.range(0)));
    std::uint64_t ranges = 0, instructions = 0;
    for (auto _ : state) {
        CountingSink sink;
        flow::BlockTable blocks;
        flow::BatchWriter out(blocks, sink);
        Decoder decoder(s.config, s.program.memory, out);
        decoder.feed(s.bytes);
        decoder.finish();
        ranges = sink.ranges;
        instructions = sink.instructions;
    }
    report(state, ranges, instructions, s.bytes.size());
}

/// How often each edge ran, nothing else.
void count_edges(benchmark::State& state) {
    const Stream& s = stream(static_cast<int>(state.range(0)));
    std::uint64_t ranges = 0, instructions = 0;
    for (auto _ : state) {
        CountingSink sink;
        flow::BlockTable blocks;
        flow::CountWriter out(blocks, sink);
        pft::Decoder decoder(s.config, s.program.memory, out);
        decoder.feed(s.bytes);
        decoder.finish();
        ranges = instructions = 0;
        for (std::size_t edge = 0; edge < 2 * blocks.blocks().size(); ++edge) {
            ranges += out.counts()[edge];
            instructions += out.counts()[edge] * blocks.blocks()[edge / 2].instructions;
        }
    }
    report(state, ranges, instructions, s.bytes.size());
}

/// The packets alone.
struct Nothing {
    std::uint64_t packets = 0;
    template <class P>
    void operator()(const P& packet, pft::Extent) {
        benchmark::DoNotOptimize(packet);
        ++packets;
    }
    void operator()(const Gap&) {}
};
void parse(benchmark::State& state) {
    const Stream& s = stream(static_cast<int>(state.range(0)));
    Nothing handler;
    for (auto _ : state) {
        pft::Parser<Nothing> parser(s.config, handler);
        parser.feed(s.bytes);
        parser.finish();
    }
    state.counters["packets/s"] = benchmark::Counter(static_cast<double>(handler.packets), benchmark::Counter::kIsRate);
    state.counters["MB/s"] =
        benchmark::Counter(static_cast<double>(s.bytes.size() * state.iterations()) / 1e6, benchmark::Counter::kIsRate);
}

#ifdef WAYMARK_OPENCSD
struct PeerCounts {
    std::uint64_t ranges = 0, instructions = 0;
};

ocsd_datapath_resp_t count(const void* context, const ocsd_trc_index_t, const std::uint8_t,
                           const ocsd_generic_trace_elem* element) {
    auto& counts = *static_cast<PeerCounts*>(const_cast<void*>(context));
    if (element->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE) {
        ++counts.ranges;
        counts.instructions += element->num_instr_range;
    }
    return OCSD_RESP_CONT;
}

void opencsd(benchmark::State& state) {
    const Stream& s = stream(static_cast<int>(state.range(0)));
    PeerCounts counts;
    for (auto _ : state) {
        counts = {};
        const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
        ocsd_ptm_cfg config{};
        config.reg_idr = s.etmidr;
        config.reg_ctrl = s.etmcr;
        config.reg_ccer = s.etmccer;
        config.reg_trc_id = 0x10;
        config.arch_ver = ARCH_V7;
        config.core_prof = profile_CortexA;
        unsigned char id = 0;
        if (ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, OCSD_CREATE_FLG_FULL_DECODER, &config, &id) != OCSD_OK ||
            ocsd_dt_set_gen_elem_outfn(tree, count, &counts) != OCSD_OK) {
            state.SkipWithError("OpenCSD refuses the configuration");
            break;
        }
        for (const auto& section : s.program.memory.sections)
            ocsd_dt_add_buffer_mem_acc(tree, section.address, OCSD_MEM_SPACE_ANY, section.bytes.data(),
                                       static_cast<std::uint32_t>(section.bytes.size()));
        std::size_t at = 0;
        while (at < s.bytes.size()) {
            const auto piece = static_cast<std::uint32_t>(std::min<std::size_t>(s.bytes.size() - at, 1 << 20));
            std::uint32_t used = 0;
            if (OCSD_DATA_RESP_IS_FATAL(
                    ocsd_dt_process_data(tree, OCSD_OP_DATA, static_cast<ocsd_trc_index_t>(at), piece,
                                                                s.bytes.data() + at, &used))) {
                state.SkipWithError("OpenCSD gives up");
                break;
            }
            at += used;
        }
        std::uint32_t used = 0;
        ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, nullptr, &used);
        ocsd_destroy_dcd_tree(tree);
    }
    report(state, counts.ranges, counts.instructions, s.bytes.size());
}
#endif

void streams(benchmark::internal::Benchmark* b) {
    for (const int which : {0, 1, 2, 3}) b->Arg(which);
    b->ArgName("stream")->Unit(benchmark::kMillisecond)->Repetitions(3)->ReportAggregatesOnly();
}

BENCHMARK(parse)->Apply(streams);
BENCHMARK(decode<pft::ReferenceDecoder>)->Name("reference")->Apply(streams);
BENCHMARK(decode<pft::Decoder>)->Name("fast")->Apply(streams);
BENCHMARK(count_edges)->Name("counts")->Apply(streams);
#ifdef WAYMARK_OPENCSD
BENCHMARK(opencsd)->Name("OpenCSD")->Apply(streams);
#endif

}  // namespace

BENCHMARK_MAIN();
