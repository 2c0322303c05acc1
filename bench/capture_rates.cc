/// Million ranges a second of CPU time that the fast decoders of captures give, on one thread: `elements` to a sink
/// that looks up each block, and `counts` of edges. `capture_rates [--no-paths] [--once] [--opencsd] [--two] CAPTURE…`:
/// without remembered paths (follow/paths.h); decode each capture once only, for profilers; decode it with OpenCSD as
/// well; decode it on two threads as well, whose rates are of wall time.
#include <algorithm>
#include <array>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "waymark/decode.h"
#include "waymark/follow/paths.h"

using namespace waymark;

namespace {

unsigned repetitions = 5;
bool with_opencsd = false, with_two = false;

[[nodiscard]] double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Counting final : public flow::Sink {
public:
    explicit Counting(bool counts) : counts_(counts) {}
    void consume(const flow::Batch& batch) override {
        if (counts_) return;  // the ranges only list the counted edges
        ranges += batch.ranges.size();
        for (const flow::Range& range : batch.ranges) instructions += batch.blocks[range.block()].instructions;
    }
    [[nodiscard]] bool counts_suffice() const override { return counts_; }
    void take_counts(const flow::EdgeCounts& counts) override {
        for (std::size_t edge = 0; edge < counts.times.size(); ++edge) {
            ranges += counts.times[edge];
            instructions += counts.times[edge] * counts.blocks[edge / 2].instructions;
        }
    }
    std::uint64_t ranges = 0, instructions = 0;

private:
    bool counts_;
};

#ifdef WAYMARK_OPENCSD
ocsd_datapath_resp_t count_range(const void* ranges, const ocsd_trc_index_t, const std::uint8_t,
                                 const ocsd_generic_trace_elem* element) {
    if (element->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE) ++*static_cast<std::uint64_t*>(const_cast<void*>(ranges));
    return OCSD_RESP_CONT;
}

bool create_opencsd(dcd_tree_handle_t tree, const pipeline::Source& source) {
    const auto value = [&](const char* name) {
        for (const capture::Register& r : source.registers)
            if (r.name == name) return static_cast<std::uint32_t>(r.value);
        return std::uint32_t{0};
    };
    unsigned char id = 0;
    const auto create = [&](const char* decoder, const auto& config) {
        return ocsd_dt_create_decoder(tree, decoder, OCSD_CREATE_FLG_FULL_DECODER, &config, &id) == OCSD_OK;
    };
    if (source.type == "ETE") {
        const ocsd_ete_cfg config{value("TRCIDR0"),    value("TRCIDR1"),    value("TRCIDR2"),     value("TRCIDR8"),
                                  value("TRCDEVARCH"), value("TRCCONFIGR"), value("TRCTRACEIDR"), ARCH_V8,
                                  profile_CortexA};
        return create(OCSD_BUILTIN_DCD_ETE, config);
    }
    if (value("TRCIDR1") != 0) {
        ocsd_etmv4_cfg config{};
        config.reg_idr0 = value("TRCIDR0");
        config.reg_idr1 = value("TRCIDR1");
        config.reg_idr2 = value("TRCIDR2");
        config.reg_idr8 = value("TRCIDR8");
        config.reg_configr = value("TRCCONFIGR");
        config.reg_traceidr = value("TRCTRACEIDR");
        config.arch_ver = ARCH_V8;
        config.core_prof = profile_CortexA;
        return create(OCSD_BUILTIN_DCD_ETMV4I, config);
    }
    const ocsd_ptm_cfg config{value("ETMIDR"),      value("ETMCR"), value("ETMCCER"),
                              value("ETMTRACEIDR"), ARCH_V7,        profile_CortexA};
    return create(OCSD_BUILTIN_DCD_PTM, config);
}

/// OpenCSD's full decoder, whose elements are only counted. Returns the rate; 0: it gave up.
double opencsd_rate(const pipeline::Source& source, Bytes bytes) {
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    std::uint64_t ranges = 0;
    bool good = create_opencsd(tree, source) && ocsd_dt_set_gen_elem_outfn(tree, count_range, &ranges) == OCSD_OK;
    for (const image::Region& region : source.memory->regions()) {
        if (region.shadowed_by) continue;
        const Bytes code = source.memory->at(region.address, image::SpaceFilter::space(0)).bytes;
        ocsd_dt_add_buffer_mem_acc(tree, region.address.value, OCSD_MEM_SPACE_ANY, code.data(),
                                   static_cast<std::uint32_t>(std::min<std::uint64_t>(region.bytes, code.size())));
    }
    const double began = seconds();
    for (std::size_t at = 0; good && at < bytes.size();) {
        const auto piece = static_cast<std::uint32_t>(std::min<std::size_t>(bytes.size() - at, 1 << 20));
        std::uint32_t used = 0;
        good = !OCSD_DATA_RESP_IS_FATAL(ocsd_dt_process_data(tree, OCSD_OP_DATA, static_cast<ocsd_trc_index_t>(at),
                                                             piece, bytes.data() + at, &used));
        at += used;
    }
    std::uint32_t used = 0;
    ocsd_dt_process_data(tree, OCSD_OP_EOT, 0, 0, nullptr, &used);
    const double took = seconds() - began;
    ocsd_destroy_dcd_tree(tree);
    return good ? static_cast<double>(ranges) / took / 1e6 : 0;
}

/// In a process of its own: version 1.3.3 crashes on some streams with a return stack. Prints nothing then.
void print_opencsd_rate(const pipeline::Source& source, Bytes bytes) {
    std::fflush(stdout);
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) return;
    const pid_t child = fork();
    if (child == 0) {
        const double rate = opencsd_rate(source, bytes);
        _exit(write(ends[1], &rate, sizeof rate) == sizeof rate ? 0 : 1);
    }
    close(ends[1]);
    double rate = 0;
    const bool known = read(ends[0], &rate, sizeof rate) == sizeof rate && rate > 0;
    close(ends[0]);
    waitpid(child, nullptr, 0);
    if (known) std::printf(" opencsd %.2f", rate);
}
#endif

/// The bytes of one source, which are decoded when they are complete.
class Measured final : public pipeline::Consumer {
public:
    explicit Measured(const pipeline::StreamInfo& stream) : stream_(stream) {}
    void feed(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void reset(GapReason) override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }
    void finish() override {
        std::uint64_t instructions = 0;
        for (const bool counts : {false, true}) {
            const char* const name = counts ? "counts" : "elements";
            const Best one = best(counts, 1);
            std::printf(" %s %.1f", name, static_cast<double>(one.sink.ranges) / one.cpu / 1e6);
            if (with_two)
                std::printf(" two-%s %.1f", name, static_cast<double>(one.sink.ranges) / best(counts, 2).wall / 1e6);
            instructions = one.sink.instructions;
        }
#ifdef WAYMARK_OPENCSD
        if (with_opencsd) print_opencsd_rate(stream_.source, bytes_);
#endif
        std::printf(" instructions %" PRIu64 "\n", instructions);
    }

private:
    struct Best {
        Counting sink;
        double cpu, wall;  ///< seconds
    };
    [[nodiscard]] Best best(bool counts, unsigned jobs) const {
        using Clock = std::chrono::steady_clock;
        Best best{Counting(counts), 1e9, 1e9};
        for (unsigned i = 0; i < repetitions; ++i) {
            best.sink = Counting(counts);
            const auto decoder = pipeline::flow_consumer(stream_, best.sink, pipeline::DecoderKind::fast, jobs);
            const double began = seconds();
            const auto began_at = Clock::now();
            for (std::size_t at = 0; at < bytes_.size(); at += piece)
                decoder->feed(Bytes(bytes_).subspan(at, std::min(piece, bytes_.size() - at)));
            decoder->finish();
            best.cpu = std::min(best.cpu, seconds() - began);
            best.wall = std::min(best.wall, std::chrono::duration<double>(Clock::now() - began_at).count());
        }
        return best;
    }

    static constexpr std::size_t piece = std::size_t{1} << 22;
    const pipeline::StreamInfo stream_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--no-paths") == 0) {
            follow::usual_paths.none = true;
        } else if (std::strcmp(argv[i], "--once") == 0) {
            repetitions = 1;
        } else if (std::strcmp(argv[i], "--opencsd") == 0) {
            with_opencsd = true;
        } else if (std::strcmp(argv[i], "--two") == 0) {
            with_two = true;
        } else {
            doctor::CaptureInput input;
            input.capture = argv[i];
            const auto session = doctor::open_capture(input, nullptr, {});
            if (!session) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;
            std::printf("%s", std::filesystem::path(argv[i]).filename().c_str());
            (void)pipeline::run(*session, *session->select({}),
                                [&](const pipeline::StreamInfo& stream) { return std::make_unique<Measured>(stream); });
        }
    }
    return 0;
}
