/// Ranges per second of the decoders of Program Flow Trace: reference, fast, fast on two cores, counts of edges, and
/// OpenCSD in the same run on the same streams. bench/decode.sh prints them as one table.
///
///     a        the real captures in WAYMARK_CORPUS, if there are any
///     b to f   tests/support/measured_streams.h
///
/// Before a decoder is timed, its result for each stream is compared with the execution the stream was generated from.
///
/// `analysis-counts` and `analysis-calls` measure analyses: execution counts only, or the call tree too.
///
/// WAYMARK_BENCH_WAYPOINTS: waypoints in each stream, 20 million if not given.
#include <benchmark/benchmark.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "support/measured_streams.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/capture/snapshot.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/protocol.h"
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

using Part = synthetic::MeasuredPart;
using Stream = synthetic::MeasuredStream;

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
        if (source.has_flow()) sources.push_back(&source);
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
        part.config = pft::config_of(*order[i]->configuration);
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
    s = std::make_unique<Stream>(which == 'a' ? captures() : synthetic::measured_stream(which, waypoints()));
    return *s;
}

struct Counts {
    std::uint64_t ranges = 0, instructions = 0;
    synthetic::ExecutedHash hashes;  // one for each source, if the sink makes any
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
    void finish() {}

private:
    Counts& counts_;
};

/// Hashes every range in order.
class HashingSink final : public flow::Sink {
public:
    explicit HashingSink(Counts& counts) : counts_(counts) {}
    void consume(const flow::Batch& batch) override { summary_.consume(batch); }
    void finish() {
        counts_.ranges += summary_.totals().ranges;
        counts_.instructions += summary_.totals().instructions;
        counts_.hashes.add(summary_.totals().hash);
    }

private:
    Counts& counts_;
    flow::Summary summary_;
};

void add(Counts& counts, std::span<const std::uint64_t> edges, std::span<const flow::Block> blocks) {
    for (std::size_t edge = 0; edge < std::min(edges.size(), 2 * blocks.size()); ++edge) {
        counts.ranges += edges[edge];
        counts.instructions += edges[edge] * blocks[edge / 2].instructions;
    }
}

// One decoder each, with everything it needs.
template <class D, class To = CountingSink>
struct Delivered {
    Delivered(const Part& part, Counts& counts)
        : sink(counts), out(blocks, sink), decoder(part.config, *part.code, out) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        sink.finish();
    }
    To sink;
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
template <pft::ParallelDecoder::Ranges ranges, class To = CountingSink>
struct Parallel {
    Parallel(const Part& part, Counts& c)
        : counts(c), sink(c), decoder(part.config, *part.code, blocks, sink, {.workers = 2, .ranges = ranges}) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        sink.finish();
        if (ranges == pft::ParallelDecoder::Ranges::counted) add(counts, decoder.counts(), blocks.blocks());
    }
    Counts& counts;
    To sink;
    flow::BlockTable blocks;
    pft::ParallelDecoder decoder;
};

/// The same work as `waymark profile`, without symbols: functions begin where they are called.
template <bool calls, unsigned workers>
struct Analysed {
    Analysed(const Part& part, Counts& c)
        : counts(c),
          code(symbols, memory),
          sink(code, [](Offset at) { return at.value; }, {.calls = calls}),
          decoder(part.config, *part.code, blocks, sink,
                  {.workers = workers,
                   .ranges = calls ? pft::ParallelDecoder::Ranges::delivered : pft::ParallelDecoder::Ranges::counted}) {
    }
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

/// Passes frames to the decoders of their sources, piece by piece.
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

/// The whole stream, once.
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

/// Reports a difference between benchmark and decoder.
bool wrong = false;

/// The expected result for a stream: from its generator, or for real captures from the reference decoder.
const Counts& truth(char which) {
    static std::array<std::unique_ptr<Counts>, 6> truths;
    auto& t = truths[static_cast<std::size_t>(which - 'a')];
    if (t) return *t;
    const Stream& s = stream(which);
    t = std::make_unique<Counts>();
    if (which == 'a') {
        *t = decode_all<Delivered<pft::ReferenceDecoder, HashingSink>>(s);
    } else {
        for (const Part& part : s.parts) {
            t->ranges += part.truth.ranges;
            t->instructions += part.truth.instructions;
            t->hashes.add(part.truth.hash.value());
        }
    }
    return *t;
}

/// Whether D gives the expected result; for decoders that deliver ranges, `Checked` is D with a sink that hashes them.
/// OpenCSD interprets a few things differently (docs/spec/pft.md, 4.10).
template <class D, class Checked>
bool gives_truth(const char* name, char which) {
#ifdef WAYMARK_OPENCSD
    if (std::is_same_v<D, OpenCsd>) return true;
#endif
    const Counts& expected = truth(which);
    const Counts found = decode_all<Checked>(stream(which));
    const bool hashed = !std::is_same_v<D, Checked>;
    if (found.ranges == expected.ranges && found.instructions == expected.instructions &&
        (!hashed || found.hashes.value() == expected.hashes.value()))
        return true;
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::fprintf(stderr,
                 "pft_rates: %s/%c gives %llu ranges, %llu instructions, hash %llx\n"
                 "           but there are %llu ranges, %llu instructions, hash %llx\n",
                 name, which, number(found.ranges), number(found.instructions), number(found.hashes.value()),
                 number(expected.ranges), number(expected.instructions), number(expected.hashes.value()));
    wrong = true;
    return false;
}

template <class D, class Checked>
void rate(benchmark::State& state, const char* name, char which) {
    const Stream& s = stream(which);
    if (s.parts.empty()) return state.SkipWithError("no captures: set WAYMARK_CORPUS");
    static std::map<char, bool> checked;
    if (!checked.contains(which)) checked[which] = gives_truth<D, Checked>(name, which);
    if (!checked[which]) return state.SkipWithError("wrong");
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

template <class D, class Checked>
void add_rows(const char* name, bool real_time) {
    for (const char* which = all_streams; *which != 0; ++which) {
        auto* b =
            benchmark::RegisterBenchmark((std::string(name) + "/" + *which).c_str(), rate<D, Checked>, name, *which);
        b->Unit(benchmark::kMillisecond);
        if (real_time) b->UseRealTime();
    }
}

/// `--once NAME/STREAM`: decodes once, for profilers.
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

/// `--summary JOBS FOLDER`: the work of `waymark flow --format summary --jobs JOBS` on FOLDER/trace.bin, which is
/// stream b repeated, without the program around it.
int summary(unsigned jobs, const std::filesystem::path& folder) {
    const Part& part = stream('b').parts.front();
    std::FILE* file = std::fopen((folder / "trace.bin").c_str(), "rb");
    if (file == nullptr || jobs == 0) return 2;
    const auto began = std::chrono::steady_clock::now();
    flow::Summary sink;
    flow::BlockTable blocks;
    flow::BatchWriter out(blocks, sink);
    pft::Decoder one(part.config, *part.code, out);
    pft::ParallelDecoder several(part.config, *part.code, blocks, sink, {.workers = jobs});
    std::vector<std::uint8_t> piece(std::size_t{1} << 22);
    std::uint64_t bytes = 0;
    while (const std::size_t count = std::fread(piece.data(), 1, piece.size(), file)) {
        bytes += count;
        if (jobs == 1)
            one.feed(Bytes(piece).first(count));
        else
            several.feed(Bytes(piece).first(count));
    }
    std::fclose(file);
    if (jobs == 1)
        one.finish();
    else
        several.finish();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    const flow::Totals& t = sink.totals();
    std::printf("%.3f seconds, %llu ranges, hash %#018llx\n", seconds.count(),
                static_cast<unsigned long long>(t.ranges), static_cast<unsigned long long>(t.hash));
    return t.ranges == part.truth.ranges * (bytes / part.bytes.size()) ? 0 : 1;
}

template <class F>
void for_each_decoder(F&& f) {
    using Reference = pft::ReferenceDecoder;
    f.template operator()<Delivered<Reference>, Delivered<Reference, HashingSink>>("reference", false);
    f.template operator()<Delivered<pft::Decoder>, Delivered<pft::Decoder, HashingSink>>("fast", false);
    f.template operator()<Counted, Counted>("counts", false);
    f.template operator()<Parallel<Ranges::delivered>, Parallel<Ranges::delivered, HashingSink>>("fast-2", true);
    f.template operator()<Parallel<Ranges::counted>, Parallel<Ranges::counted>>("counts-2", true);
    f.template operator()<Analysed<false, 1>, Analysed<false, 1>>("analysis-counts", false);
    f.template operator()<Analysed<true, 1>, Analysed<true, 1>>("analysis-calls", false);
    f.template operator()<Analysed<false, 2>, Analysed<false, 2>>("analysis-counts-2", true);
    f.template operator()<Analysed<true, 2>, Analysed<true, 2>>("analysis-calls-2", true);
#ifdef WAYMARK_OPENCSD
    f.template operator()<OpenCsd, OpenCsd>("opencsd", false);
#endif
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::strcmp(argv[1], "--once") == 0) {
        bool done = false;
        for_each_decoder([&]<class D, class>(const char* name, bool) { done |= once<D>(name, argv[2]); });
        return done ? 0 : 2;
    }
    if (argc == 4 && std::strcmp(argv[1], "--write") == 0) return write(*argv[2], argv[3]);
    if (argc == 4 && std::strcmp(argv[1], "--summary") == 0)
        return summary(static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)), argv[3]);
    for_each_decoder(
        []<class D, class Checked>(const char* name, bool real_time) { add_rows<D, Checked>(name, real_time); });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return wrong ? 1 : 0;
}
