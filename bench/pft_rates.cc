/// Ranges per second of the decoders of Program Flow Trace (bench/flow_rates.h).
///
///     a        the real captures in WAYMARK_CORPUS, if there are any
///     b to f   tests/support/measured_streams.h
///     r        the snapshot WAYMARK_BENCH_CAPTURE, if given, with the names of the ELF file WAYMARK_BENCH_SYMBOLS
///
/// `analysis-counts` and `analysis-calls` measure analyses: execution counts only, or the call tree too.
#include "flow_rates.h"

#include <chrono>
#include <deque>
#include <filesystem>

#include "support/measured_streams.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/capture/snapshot.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/protocol.h"
#include "waymark/pft/reference_decoder.h"
#include "waymark/pipeline/run.h"

namespace {

using namespace waymark;

using Part = synthetic::MeasuredPart;
using Stream = synthetic::MeasuredStream;

/// The bytes of one source of a capture.
class Keep final : public pipeline::Consumer {
public:
    explicit Keep(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}
    void feed(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void reset(GapReason) override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }

private:
    std::vector<std::uint8_t>& bytes_;
};

/// By code: its known names.
std::map<const isa::CodeReader*, std::shared_ptr<const pipeline::Names>>& names() {
    static std::map<const isa::CodeReader*, std::shared_ptr<const pipeline::Names>> all;
    return all;
}

void add_capture(Stream& s, const std::filesystem::path& folder, const char* symbols = nullptr) {
    auto capture = capture::read_snapshot(folder);
    if (!capture) return;
    pipeline::SessionOptions options;
    if (symbols != nullptr) options.symbols.emplace_back(symbols);
    auto session = pipeline::make_session(std::move(*capture), options);
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
        names()[part.code.get()] = order[i]->names;
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

struct Ptm {
    static constexpr const char* program = "pft_rates";
    static constexpr const char* streams = "abcdefr";
    static constexpr const char* crash_opencsd = "";
    using Part = synthetic::MeasuredPart;
    using Stream = synthetic::MeasuredStream;
    using Decoder = pft::Decoder;
    using ReferenceDecoder = pft::ReferenceDecoder;
    using ParallelDecoder = pft::ParallelDecoder;
    static Stream make(char which) {
        if (which == 'a') return captures();
        if (which != 'r') return synthetic::measured_stream(which, bench::waypoints());
        Stream s;
        if (const char* capture = std::getenv("WAYMARK_BENCH_CAPTURE"))
            add_capture(s, capture, std::getenv("WAYMARK_BENCH_SYMBOLS"));
        return s;
    }
#ifdef WAYMARK_OPENCSD
    static bool create_decoder(dcd_tree_handle_t tree, const Part& part) {
        ocsd_ptm_cfg config{};
        config.reg_idr = part.etmidr;
        config.reg_ctrl = part.etmcr;
        config.reg_ccer = part.etmccer;
        config.reg_trc_id = part.id.value;
        config.arch_ver = ARCH_V7;
        config.core_prof = profile_CortexA;
        unsigned char id = 0;
        return ocsd_dt_create_decoder(tree, OCSD_BUILTIN_DCD_PTM, OCSD_CREATE_FLG_FULL_DECODER, &config, &id) ==
               OCSD_OK;
    }
#endif
};

/// The same work as `waymark profile`. Synthetic programs have no symbols: functions begin where they are called.
template <bool calls, unsigned workers>
struct Analysed {
    using Protocol = Ptm;
    Analysed(const Part& part, bench::Counts& c)
        : counts(c),
          code(symbols_of(part), memory),
          sink(code, [](Offset at) { return at.value; }, {.calls = calls}),
          decoder(part.config, *part.code, blocks, sink,
                  {.workers = workers, .ranges = calls ? follow::Ranges::delivered : follow::Ranges::counted}) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        if (!calls) sink.take_counts({blocks.blocks(), decoder.counts(), decoder.cycles()});
        sink.finish();
        for (const analysis::FlowCounts* some : sink.counts()) bench::add(counts, some->times, blocks.blocks());
    }
    const image::Symbols& symbols_of(const Part& part) const {
        const auto found = names().find(part.code.get());
        return found == names().end() ? none : found->second->symbols;
    }
    bench::Counts& counts;
    image::Symbols none;
    image::MemoryMap memory;
    flow::BlockTable blocks;
    analysis::FlowCode code;
    analysis::FlowSink sink;
    pft::ParallelDecoder decoder;
};

/// `--write STREAM FOLDER`: the trace as `trace.bin` and the code as `code-ADDRESS.bin`, for `waymark flow`.
int write(char which, const std::filesystem::path& folder) {
    const Stream& s = bench::stream<Ptm>(which);
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
    const Part& part = bench::stream<Ptm>('b').parts.front();
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
    bench::for_each_decoder<Ptm>(f);
    f.template operator()<Analysed<false, 1>, Analysed<false, 1>>("analysis-counts", false);
    f.template operator()<Analysed<true, 1>, Analysed<true, 1>>("analysis-calls", false);
    f.template operator()<Analysed<false, 2>, Analysed<false, 2>>("analysis-counts-2", true);
    f.template operator()<Analysed<true, 2>, Analysed<true, 2>>("analysis-calls-2", true);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--write") == 0) return write(*argv[2], argv[3]);
    if (argc == 4 && std::strcmp(argv[1], "--summary") == 0)
        return summary(static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10)), argv[3]);
    return bench::main_of(argc, argv, [](auto&& f) { for_each_decoder(f); });
}
