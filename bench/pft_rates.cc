/// How many ranges a second the decoders of Program Flow Trace give: reference, fast, fast on two cores, counts of
/// edges, and OpenCSD beside them in the same run on the same streams. bench/decode.sh makes one table of it.
///
///     a  the real captures in WAYMARK_CORPUS, if there are any
///     b  random execution of random programs (tests/support/synthetic.h) in mixed A32 and T32: about 1 500 blocks
///     c  about 50 000 blocks
///     d  b with return stack
///     e  b cycle-accurate with timestamps
///     f  two sources like b through the formatter
///
/// `analysis-counts` and `analysis-calls` do what answers need: who called whom, or only how often what ran.
///
/// WAYMARK_BENCH_WAYPOINTS: waypoints in each stream, 20 million if not given.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/synthetic.h"
#include "support/trace_writer.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/reference_decoder.h"
#include "waymark/pipeline/run.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

namespace {

using namespace waymark;

std::uint64_t waypoints() {
    const char* text = std::getenv("WAYMARK_BENCH_WAYPOINTS");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 20'000'000;
}

/// What one source sent.
struct Part {
    struct Section {
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes;
    };
    pft::Config config;
    std::uint32_t etmcr = 0, etmccer = 0x34c01ac2, etmidr = 0x411cf312;
    coresight::TraceId id{0x10};
    std::shared_ptr<const isa::CodeReader> code;
    std::vector<Section> sections;  // the same code, for OpenCSD
    std::vector<std::uint8_t> bytes;
};
struct Stream {
    std::vector<Part> parts;
    std::vector<std::uint8_t> frames;  // f: all parts together; else empty
    [[nodiscard]] std::size_t bytes() const {
        std::size_t sum = frames.size();
        if (frames.empty())
            for (const Part& part : parts) sum += part.bytes.size();
        return sum;
    }
};

void configure(Part& part) {
    part.config = pft::Config::from_registers(pft::from_value<pft::Etmcr>(part.etmcr),
                                              pft::from_value<pft::Etmccer>(part.etmccer),
                                              pft::from_value<pft::Etmidr>(part.etmidr));
}

Part make_part(unsigned blocks, bool return_stack, bool cycle_accurate, std::uint64_t steps, std::uint64_t seed = 1) {
    Part part;
    part.etmcr = (return_stack ? 1U << 29 : 0U) | (cycle_accurate ? 1U << 28 | 1U << 12 : 0U);
    configure(part);
    const synthetic::Program program = synthetic::make_program(
        {.seed = 1, .blocks = blocks, .a32_eret = false, .blx_may_fail = false, .large_block_chance = 0});
    // Plain execution: what OpenCSD reads otherwise (docs/spec/pft.md, 4.10) would compare different work.
    synthetic::Walk walk(program, {.seed = seed + 1,
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
    synthetic::TraceWriter writer(part.config, {.seed = seed + 2, .keep_truth = false});
    walk.run(writer, steps);
    writer.finish();
    part.bytes = writer.bytes();
    part.code = std::make_shared<synthetic::Memory>(program.memory);
    for (const auto& section : program.memory.sections) part.sections.push_back({section.address, section.bytes});
    return part;
}

Stream two_sources() {
    Stream s;
    for (const std::uint64_t i : {0U, 1U}) {
        s.parts.push_back(make_part(1500, false, false, waypoints() / 2, 1 + 10 * i));
        s.parts.back().id = {static_cast<std::uint8_t>(0x10 + i)};
    }
    coresight::Formatter formatter(s.frames);
    // In turns of some bytes, as a funnel lets them pass.
    std::array<Bytes, 2> left{s.parts[0].bytes, s.parts[1].bytes};
    synthetic::Random random(5);
    while (!left[0].empty() || !left[1].empty())
        for (const std::size_t i : {0U, 1U}) {
            const std::size_t now = std::min<std::size_t>(left[i].size(), 1 + random.below(24));
            formatter.add(s.parts[i].id, left[i].first(now));
            left[i] = left[i].subspan(now);
        }
    formatter.flush();
    return s;
}

/// The bytes of one source of a capture.
class Keep final : public pipeline::Consumer {
public:
    explicit Keep(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
    void feed(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void reset() override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }

private:
    std::vector<std::uint8_t>& bytes_;
};

void add_capture(Stream& s, const std::filesystem::path& folder) {
    auto capture = capture::read_snapshot(folder);
    if (!capture) return;
    auto session = pipeline::make_session(std::move(*capture), {});
    if (!session) return;
    std::deque<std::vector<std::uint8_t>> kept;
    std::vector<const pipeline::Source*> sources;
    for (const pipeline::Source& source : session->sources)
        if (source.protocol == pipeline::Protocol::pft) sources.push_back(&source);
    std::vector<const pipeline::Source*> order;
    (void)pipeline::run(*session, sources, [&](const pipeline::StreamInfo& stream) {
        order.push_back(&stream.source);
        return std::make_unique<Keep>(kept.emplace_back());
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (kept[i].empty()) continue;
        Part part;
        const auto value = [&](const char* name, std::uint32_t& into) {
            if (const auto* r = capture::find_register(order[i]->registers, name))
                into = static_cast<std::uint32_t>(r->value);
        };
        value("ETMCR", part.etmcr);
        value("ETMCCER", part.etmccer);
        value("ETMIDR", part.etmidr);
        part.config = order[i]->config;
        part.code = order[i]->memory;
        for (const image::Region& region : order[i]->memory->regions()) {
            if (region.shadowed_by) continue;
            const Bytes bytes = order[i]->memory->at(region.address, {}).bytes;
            part.sections.push_back({region.address.value, {bytes.begin(), bytes.end()}});
        }
        part.bytes = std::move(kept[i]);
        s.parts.push_back(std::move(part));
    }
}

Stream captures() {
    Stream s;
    if (const char* corpus = std::getenv("WAYMARK_CORPUS"))
        for (const char* name : {"ptm/tc2", "ptm/snowball"}) add_capture(s, std::filesystem::path(corpus) / name);
    return s;
}

const Stream& stream(char which) {
    static std::array<std::unique_ptr<Stream>, 6> streams;
    auto& s = streams[static_cast<std::size_t>(which - 'a')];
    if (s) return *s;
    s = std::make_unique<Stream>();
    switch (which) {
        case 'a': *s = captures(); break;
        case 'b': s->parts.push_back(make_part(1500, false, false, waypoints())); break;
        case 'c': s->parts.push_back(make_part(50000, false, false, waypoints())); break;
        case 'd': s->parts.push_back(make_part(1500, true, false, waypoints())); break;
        case 'e': s->parts.push_back(make_part(1500, false, true, waypoints())); break;
        default: *s = two_sources(); break;
    }
    return *s;
}

struct Counts {
    std::uint64_t ranges = 0, instructions = 0;
};

/// Resolves every block in order, as a real consumer does.
class CountingSink final : public flow::Sink {
public:
    explicit CountingSink(Counts& counts) : counts_(counts) {}
    void consume(const flow::Batch& batch) override {
        counts_.ranges += batch.ranges.size();
        std::uint64_t instructions = 0;
        for (const flow::Range& range : batch.ranges) instructions += batch.blocks[range.block()].instructions;
        counts_.instructions += instructions;
    }

private:
    Counts& counts_;
};

void add(Counts& counts, std::span<const std::uint64_t> edges, std::span<const flow::Block> blocks) {
    for (std::size_t edge = 0; edge < std::min(edges.size(), 2 * blocks.size()); ++edge) {
        counts.ranges += edges[edge];
        counts.instructions += edges[edge] * blocks[edge / 2].instructions;
    }
}

// One decoder each, with all it needs.
template <class D>
struct Told {
    Told(const Part& part, Counts& counts) : sink(counts), out(blocks, sink), decoder(part.config, *part.code, out) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() { decoder.finish(); }
    CountingSink sink;
    flow::BlockTable blocks;
    flow::BatchWriter out;
    D decoder;
};
struct Counted {
    Counted(const Part& part, Counts& c)
        : counts(c), sink(c), out(blocks, sink), decoder(part.config, *part.code, out) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        add(counts, out.counts(), blocks.blocks());
    }
    Counts& counts;
    CountingSink sink;
    flow::BlockTable blocks;
    flow::CountWriter out;
    pft::Decoder decoder;
};
template <pft::ParallelDecoder::Ranges ranges, unsigned workers = 2>
struct Parallel {
    Parallel(const Part& part, Counts& c)
        : counts(c), sink(c), decoder(part.config, *part.code, blocks, sink, {.workers = workers, .ranges = ranges}) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        if (ranges == pft::ParallelDecoder::Ranges::counted) add(counts, decoder.counts(), blocks.blocks());
    }
    Counts& counts;
    CountingSink sink;
    flow::BlockTable blocks;
    pft::ParallelDecoder decoder;
};

/// As `waymark profile` does it. No symbols: functions begin where they are called.
template <bool calls, unsigned workers>
struct Analysed {
    Analysed(const Part& part, Counts& c)
        : counts(c),
          code(symbols, memory),
          sink(code, [](Offset at) { return at.value; }, {.calls = calls}),
          decoder(part.config, *part.code, blocks, sink,
                  {.workers = workers,
                   .ranges = calls ? pft::ParallelDecoder::Ranges::told : pft::ParallelDecoder::Ranges::counted}) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        if (!calls) sink.take_counts({blocks.blocks(), decoder.counts(), decoder.cycles()});
        sink.finish();
        for (const analysis::FlowCounts* some : sink.counts()) add(counts, some->times, blocks.blocks());
    }
    Counts& counts;
    image::Symbols symbols;
    image::MemoryMap memory;
    flow::BlockTable blocks;
    analysis::FlowCode code;
    analysis::FlowSink sink;
    pft::ParallelDecoder decoder;
};

/// Frames to the decoders of their sources, a piece at a time.
template <class D>
class Sources {
public:
    Sources(const Stream& s, Counts& counts) {
        for (const Part& part : s.parts) {
            by_id_[part.id.value] = decoders_.size();
            decoders_.push_back(std::make_unique<D>(part, counts));
            waiting_.emplace_back();
        }
    }
    void run(Bytes bytes) {
        constexpr std::size_t piece = std::size_t{1} << 22;
        for (std::size_t at = 0; at < bytes.size(); at += piece) {
            deformatter_.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)), *this);
            for (std::size_t i = 0; i < decoders_.size(); ++i) {
                decoders_[i]->feed(waiting_[i]);
                waiting_[i].clear();
            }
        }
        deformatter_.finish(*this);
        for (const auto& decoder : decoders_) decoder->finish();
    }
    void data(coresight::TraceId id, Bytes bytes, Offset) {
        auto& to = waiting_[by_id_[id.value]];
        to.insert(to.end(), bytes.begin(), bytes.end());
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}

private:
    coresight::Deformatter deformatter_;
    std::array<std::size_t, coresight::trace_ids> by_id_{};
    std::vector<std::unique_ptr<D>> decoders_;
    std::vector<std::vector<std::uint8_t>> waiting_;
};

/// All of a stream, once.
template <class D>
Counts decode_all(const Stream& s) {
    Counts counts;
    if (!s.frames.empty()) {
        Sources<D>(s, counts).run(s.frames);
        return counts;
    }
    for (const Part& part : s.parts) {
        D decoder(part, counts);
        decoder.feed(part.bytes);
        decoder.finish();
    }
    return counts;
}

#ifdef WAYMARK_OPENCSD
ocsd_datapath_resp_t count(const void* context, const ocsd_trc_index_t, const std::uint8_t,
                           const ocsd_generic_trace_elem* element) {
    auto& counts = *static_cast<Counts*>(const_cast<void*>(context));
    if (element->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE) {
        ++counts.ranges;
        counts.instructions += element->num_instr_range;
    }
    return OCSD_RESP_CONT;
}

bool opencsd_tree(Counts& counts, std::span<const Part> parts, Bytes bytes, bool framed) {
    const dcd_tree_handle_t tree = framed
                                       ? ocsd_create_dcd_tree(OCSD_TRC_SRC_FRAME_FORMATTED, OCSD_DFRMTR_FRAME_MEM_ALIGN)
                                       : ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    bool good = true;
    for (const Part& part : parts) {
        ocsd_ptm_cfg config{};
        config.reg_idr = part.etmidr;
        config.reg_ctrl = part.etmcr;
        config.reg_ccer = part.etmccer;
        config.reg_trc_id = part.id.value;
        config.arch_ver = ARCH_V7;
        config.core_prof = profile_CortexA;
        unsigned char id = 0;
        good &=
            ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, OCSD_CREATE_FLG_FULL_DECODER, &config, &id) == OCSD_OK;
    }
    good &= ocsd_dt_set_gen_elem_outfn(tree, count, &counts) == OCSD_OK;
    // One map for all sources of a tree; they run the same program.
    for (const auto& section : parts.front().sections)
        ocsd_dt_add_buffer_mem_acc(tree, section.address, OCSD_MEM_SPACE_ANY, section.bytes.data(),
                                   static_cast<std::uint32_t>(section.bytes.size()));
    std::size_t at = 0;
    while (good && at < bytes.size()) {
        const auto piece = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size() - at, 1 << 20));
        std::uint32_t used = 0;
        good &= !OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(tree, OCSD_OP_DATA, static_cast<ocsd_trc_index_t>(at),
                                                              piece, bytes.data() + at, &used));
        at += used;
    }
    std::uint32_t used = 0;
    ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, nullptr, &used);
    ocsd_destroy_dcd_tree(tree);
    return good;
}

struct OpenCsd {};
template <>
Counts decode_all<OpenCsd>(const Stream& s) {
    Counts counts;
    bool good = true;
    if (!s.frames.empty()) {
        good &= opencsd_tree(counts, s.parts, s.frames, true);
    } else {
        for (const Part& part : s.parts) good &= opencsd_tree(counts, {&part, 1}, part.bytes, false);
    }
    if (!good) return {};
    return counts;
}
#endif

template <class D>
void rate(benchmark::State& state, char which) {
    const Stream& s = stream(which);
    if (s.parts.empty()) return state.SkipWithError("no captures: set WAYMARK_CORPUS");
    Counts counts;
    for (auto _ : state) counts = decode_all<D>(s);
    if (counts.ranges == 0) return state.SkipWithError("the decoder gave up");
    state.counters["rate"] =
        benchmark::Counter(static_cast<double>(counts.ranges), benchmark::Counter::kIsIterationInvariantRate);
    state.counters["ranges"] = static_cast<double>(counts.ranges);
    state.counters["instructions"] = static_cast<double>(counts.instructions);
    state.counters["bytes"] = static_cast<double>(s.bytes());
}

using Ranges = pft::ParallelDecoder::Ranges;
constexpr const char* all_streams = "abcdef";

template <class D>
void add_rows(const char* name, bool real_time) {
    for (const char* which = all_streams; *which != 0; ++which) {
        auto* b = benchmark::RegisterBenchmark((std::string(name) + "/" + *which).c_str(), rate<D>, *which);
        b->Unit(benchmark::kMillisecond);
        if (real_time) b->UseRealTime();
    }
}

/// `--once NAME/STREAM`: decodes once, for tools that watch.
template <class D>
[[gnu::noinline]] bool once(const char* name, const char* wanted) {
    const std::string prefix = std::string(name) + "/";
    if (std::strncmp(wanted, prefix.c_str(), prefix.size()) != 0) return false;
    const Stream& s = stream(wanted[prefix.size()]);
    Counts (*volatile watched)(const Stream&) = decode_all<D>;
    const Counts counts = watched(s);
    std::printf("%llu ranges, %llu instructions\n", static_cast<unsigned long long>(counts.ranges),
                static_cast<unsigned long long>(counts.instructions));
    return true;
}

/// `--write STREAM FOLDER`: the trace as `trace.bin` and the code as `code-ADDRESS.bin`, for `waymark flow`.
int write(char which, const std::filesystem::path& folder) {
    const Stream& s = stream(which);
    const auto put = [&](const std::string& name, Bytes bytes) {
        std::FILE* file = std::fopen((folder / name).c_str(), "wb");
        if (file == nullptr) return;
        std::fwrite(bytes.data(), 1, bytes.size(), file);
        std::fclose(file);
    };
    std::filesystem::create_directories(folder);
    if (s.parts.empty()) return 2;
    put("trace.bin", s.frames.empty() ? Bytes(s.parts.front().bytes) : Bytes(s.frames));
    for (const auto& section : s.parts.front().sections)
        put("code-" + std::to_string(section.address) + ".bin", section.bytes);
    return 0;
}

template <class F>
void for_each_decoder(F&& f) {
    f.template operator()<Told<pft::ReferenceDecoder>>("reference", false);
    f.template operator()<Told<pft::Decoder>>("fast", false);
    f.template operator()<Counted>("counts", false);
    f.template operator()<Parallel<Ranges::told>>("fast-2", true);
    f.template operator()<Parallel<Ranges::counted>>("counts-2", true);
    f.template operator()<Analysed<false, 1>>("analysis-counts", false);
    f.template operator()<Analysed<true, 1>>("analysis-calls", false);
    f.template operator()<Analysed<false, 2>>("analysis-counts-2", true);
    f.template operator()<Analysed<true, 2>>("analysis-calls-2", true);
#ifdef WAYMARK_OPENCSD
    f.template operator()<OpenCsd>("opencsd", false);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--once") == 0) {
        bool done = false;
        for_each_decoder([&]<class D>(const char* name, bool) { done |= once<D>(name, argv[2]); });
        return done ? 0 : 2;
    }
    if (argc == 4 && std::strcmp(argv[1], "--write") == 0) return write(*argv[2], argv[3]);
    for_each_decoder([]<class D>(const char* name, bool real_time) { add_rows<D>(name, real_time); });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
