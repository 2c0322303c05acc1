/// Shared by the benchmarks of program flow decoders: reference, fast, fast on two cores, counts of edges, and OpenCSD
/// in the same run on the same streams. Before a decoder is timed, its result for each stream is compared with the
/// execution the stream was generated from. bench/decode.sh prints the rates as tables.
///
/// A protocol P has:
///
///     static constexpr const char* program;   // name of the benchmark
///     static constexpr const char* streams;   // one letter each; `a`, `r`: real captures, whose truth is the
///     reference static constexpr const char* crash_opencsd;   // those of them using Part = …; using Stream = …; // as
///     tests/support/measured_streams.h has them static Stream make(char which); using Decoder = …; using
///     ReferenceDecoder = …; using ParallelDecoder = …; static bool create_decoder(dcd_tree_handle_t, const Part&); //
///     OpenCSD's
///
/// WAYMARK_BENCH_WAYPOINTS: waypoints in each stream, 20 million if not given.
#pragma once

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "support/executed_hash.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/follow/parallel.h"

#ifdef WAYMARK_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

namespace waymark::bench {

inline std::uint64_t waypoints() {
    const char* text = std::getenv("WAYMARK_BENCH_WAYPOINTS");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 20'000'000;
}

template <class P>
const typename P::Stream& stream(char which) {
    static std::map<char, std::unique_ptr<typename P::Stream>> streams;
    auto& s = streams[which];
    if (!s) s = std::make_unique<typename P::Stream>(P::make(which));
    return *s;
}

struct Counts {
    std::uint64_t ranges = 0, instructions = 0;
    synthetic::ExecutedHash hashes;  // one for each source, if the sink makes hashes
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

/// For decoders that count: their ranges only list the counted edges.
class IgnoringSink final : public flow::Sink {
public:
    explicit IgnoringSink(Counts&) {}
    void consume(const flow::Batch&) override {}
    void finish() {}
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

inline void add(Counts& counts, std::span<const std::uint64_t> edges, std::span<const flow::Block> blocks) {
    for (std::size_t edge = 0; edge < std::min(edges.size(), 2 * blocks.size()); ++edge) {
        counts.ranges += edges[edge];
        counts.instructions += edges[edge] * blocks[edge / 2].instructions;
    }
}

// A decoder, with the objects it needs.
template <class P, class D, class To = CountingSink>
struct Delivered {
    using Protocol = P;
    Delivered(const typename P::Part& part, Counts& counts)
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
template <class P>
struct Counted {
    using Protocol = P;
    Counted(const typename P::Part& part, Counts& c)
        : counts(c), sink(c), out(blocks, sink), decoder(part.config, *part.code, out) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        add(counts, out.counts(), blocks.blocks());
    }
    Counts& counts;
    IgnoringSink sink;
    flow::BlockTable blocks;
    flow::CountWriter out;
    typename P::Decoder decoder;
};
template <class P, follow::Ranges ranges,
          class To = std::conditional_t<ranges == follow::Ranges::counted, IgnoringSink, CountingSink>>
struct Parallel {
    using Protocol = P;
    Parallel(const typename P::Part& part, Counts& c)
        : counts(c), sink(c), decoder(part.config, *part.code, blocks, sink, {.workers = 2, .ranges = ranges}) {}
    void feed(Bytes bytes) { decoder.feed(bytes); }
    void finish() {
        decoder.finish();
        sink.finish();
        if (ranges == follow::Ranges::counted) add(counts, decoder.counts(), blocks.blocks());
    }
    Counts& counts;
    To sink;
    flow::BlockTable blocks;
    typename P::ParallelDecoder decoder;
};

/// Passes frames to the decoders of their sources, piece by piece.
template <class D>
class Sources {
public:
    Sources(const typename D::Protocol::Stream& s, Counts& counts) {
        for (const auto& part : s.parts) {
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

#ifdef WAYMARK_OPENCSD
inline ocsd_datapath_resp_t count(const void* context, const ocsd_trc_index_t, const std::uint8_t,
                                  const ocsd_generic_trace_elem* element) {
    auto& counts = *static_cast<Counts*>(const_cast<void*>(context));
    if (element->elem_type == OCSD_GEN_TRC_ELEM_INSTR_RANGE) {
        ++counts.ranges;
        counts.instructions += element->num_instr_range;
    }
    return OCSD_RESP_CONT;
}

/// OpenCSD's full decoder; P::create_decoder(tree, part) gives it a part's configuration.
template <class P>
bool opencsd_tree(Counts& counts, std::span<const typename P::Part> parts, Bytes bytes, bool framed) {
    const dcd_tree_handle_t tree = framed
                                       ? ocsd_create_dcd_tree(OCSD_TRC_SRC_FRAME_FORMATTED, OCSD_DFRMTR_FRAME_MEM_ALIGN)
                                       : ocsd_create_dcd_tree(OCSD_TRC_SRC_SINGLE, 0);
    bool good = true;
    for (const auto& part : parts) good &= P::create_decoder(tree, part);
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

template <class P>
struct OpenCsd {
    using Protocol = P;
    static Counts decode(const typename P::Stream& s) {
        Counts counts;
        bool good = true;
        if (!s.frames.empty()) {
            good &= opencsd_tree<P>(counts, s.parts, s.frames, true);
        } else {
            for (const auto& part : s.parts) good &= opencsd_tree<P>(counts, {&part, 1}, part.bytes, false);
        }
        return good ? counts : Counts{};
    }
};
#endif

/// The whole stream, once.
template <class D>
Counts decode_all(const typename D::Protocol::Stream& s) {
    if constexpr (requires { D::decode(s); }) {
        return D::decode(s);
    } else {
        Counts counts;
        if (!s.frames.empty()) {
            Sources<D>(s, counts).run(s.frames);
            return counts;
        }
        for (const auto& part : s.parts) {
            D decoder(part, counts);
            decoder.feed(part.bytes);
            decoder.finish();
        }
        return counts;
    }
}

/// Reports a difference between benchmark and decoder.
inline bool wrong = false;

/// The expected result for a stream: from its generator, or for real captures from the reference decoder.
template <class P>
const Counts& truth(char which) {
    static std::map<char, std::unique_ptr<Counts>> truths;
    auto& t = truths[which];
    if (t) return *t;
    const typename P::Stream& s = stream<P>(which);
    t = std::make_unique<Counts>();
    if (which == 'a' || which == 'r') {
        *t = decode_all<Delivered<P, typename P::ReferenceDecoder, HashingSink>>(s);
    } else {
        for (const auto& part : s.parts) {
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
    if (std::is_same_v<D, OpenCsd<typename D::Protocol>>) return true;
#endif
    using P = typename D::Protocol;
    const Counts& expected = truth<P>(which);
    const Counts found = decode_all<Checked>(stream<P>(which));
    const bool hashed = !std::is_same_v<D, Checked>;
    if (found.ranges == expected.ranges && found.instructions == expected.instructions &&
        (!hashed || found.hashes.value() == expected.hashes.value()))
        return true;
    const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
    std::fprintf(stderr,
                 "%s: %s/%c gives %llu ranges, %llu instructions, hash %llx\n"
                 "    but there are %llu ranges, %llu instructions, hash %llx\n",
                 P::program, name, which, number(found.ranges), number(found.instructions),
                 number(found.hashes.value()), number(expected.ranges), number(expected.instructions),
                 number(expected.hashes.value()));
    wrong = true;
    return false;
}

template <class D, class Checked>
void rate(benchmark::State& state, const char* name, char which) {
    const auto& s = stream<typename D::Protocol>(which);
    if (s.parts.empty())
        return state.SkipWithError(which == 'r' ? "no capture: set WAYMARK_BENCH_CAPTURE"
                                                : "no captures: set WAYMARK_CORPUS");
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

template <class D, class Checked>
void add_rows(const char* name, bool real_time) {
    for (const char* which = D::Protocol::streams; *which != 0; ++which) {
#ifdef WAYMARK_OPENCSD
        if (std::is_same_v<D, OpenCsd<typename D::Protocol>> && std::strchr(D::Protocol::crash_opencsd, *which))
            continue;
#endif
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
    using Stream = typename D::Protocol::Stream;
    const Stream& s = stream<typename D::Protocol>(wanted[prefix.size()]);
    Counts (*volatile watched)(const Stream&) = decode_all<D>;
    const Counts counts = watched(s);
    std::printf("%llu ranges, %llu instructions\n", static_cast<unsigned long long>(counts.ranges),
                static_cast<unsigned long long>(counts.instructions));
    return true;
}

/// Decoders that all protocols have: f<decoder, the same with a sink that hashes>(name, several threads).
template <class P, class F>
void for_each_decoder(F&& f) {
    using Reference = typename P::ReferenceDecoder;
    using Decoder = typename P::Decoder;
    using follow::Ranges;
    f.template operator()<Delivered<P, Reference>, Delivered<P, Reference, HashingSink>>("reference", false);
    f.template operator()<Delivered<P, Decoder>, Delivered<P, Decoder, HashingSink>>("fast", false);
    f.template operator()<Counted<P>, Counted<P>>("counts", false);
    f.template operator()<Parallel<P, Ranges::delivered>, Parallel<P, Ranges::delivered, HashingSink>>("fast-2", true);
    f.template operator()<Parallel<P, Ranges::counted>, Parallel<P, Ranges::counted>>("counts-2", true);
#ifdef WAYMARK_OPENCSD
    f.template operator()<OpenCsd<P>, OpenCsd<P>>("opencsd", false);
#endif
}

/// The benchmark of all decoders that `for_each(f)` gives, or `--once NAME/STREAM`.
template <class ForEach>
int main_of(int argc, char** argv, ForEach&& for_each) {
    if (argc == 3 && std::strcmp(argv[1], "--once") == 0) {
        bool done = false;
        for_each([&]<class D, class>(const char* name, bool) { done |= once<D>(name, argv[2]); });
        return done ? 0 : 2;
    }
    for_each([]<class D, class Checked>(const char* name, bool real_time) { add_rows<D, Checked>(name, real_time); });
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return wrong ? 1 : 0;
}

}  // namespace waymark::bench
