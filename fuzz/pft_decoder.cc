/// The two decoders of Program Flow Trace on any bytes, code and configuration: they end, and agree on every element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "pft_input.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/follow/paths.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace {

using namespace waymark;

/// Two pieces of code; in Secure state, the second is somewhere else.
class FuzzCode final : public isa::CodeReader {
public:
    static constexpr std::uint64_t first = 0x8000, second = 0xfffffff0;
    FuzzCode(Bytes a, Bytes b) : a_(a), b_(b) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        const std::uint64_t base = space.ns ? second : second - 0x1000;
        if (address.value >= first && address.value - first < a_.size()) return {a_.subspan(address.value - first), 0};
        if (address.value >= base && address.value - base < b_.size()) return {b_.subspan(address.value - base), 1};
        return {};
    }

private:
    Bytes a_, b_;
};

/// Every element as numbers.
class Flat final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch,
            [&](const flow::Block& b, const flow::Range& r) {
                add({1, b.start, b.target, b.bytes, b.instructions, b.section, static_cast<std::uint64_t>(b.isa),
                     static_cast<std::uint64_t>(b.end), b.last_bytes, b.flags, r.edge & 1U, batch.base.value + r.offset,
                     r.cycles, r.times});
                if (b.bytes == 0 || b.instructions == 0) std::abort();
            },
            [&](const flow::Event& e) {
                add({2, e.what.index(), e.offset.value});
                std::visit([&](const auto& what) { event(what); }, e.what);
            });
    }
    std::vector<std::uint64_t> numbers;

private:
    void add(std::initializer_list<std::uint64_t> values) { numbers.insert(numbers.end(), values); }
    void event(const Gap& g) { add({g.first.value, g.end.value, static_cast<std::uint64_t>(g.reason)}); }
    void event(const flow::TraceOn& t) { add({static_cast<std::uint64_t>(t.reason), t.cycles}); }
    void event(const flow::Context& c) {
        add({c.ns, c.hyp, c.context_id.has_value(), c.context_id.value_or(0), c.vmid.has_value(), c.vmid.value_or(0)});
    }
    void event(const flow::Timestamp& t) { add({t.value, t.known, t.frequency_changed, t.cycles}); }
    void event(const flow::Exception& e) {
        add({e.type->number, e.preferred_return.value_or(Address{1}).value, e.vector.value_or(Address{1}).value,
             e.cycles});
    }
    void event(const flow::NoMemory& n) { add({n.address.value}); }
    void event(const flow::Cycles& c) { add({c.cycles.value_or(0)}); }
    void event(const flow::Atoms& a) { add({a.taken, a.not_taken}); }
    void event(const flow::Reached& r) { add({r.address.value}); }
    void event(const flow::Inconsistency& i) {
        add({static_cast<std::uint64_t>(i.conflict), i.found.value, i.expected.value});
    }
    void event(const auto&) {}
};

template <class Decoder>
std::vector<std::uint64_t> decode(Bytes bytes, std::size_t piece, const pft::Config& config,
                                  const isa::CodeReader& code) {
    Flat sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    // Inputs are short, so paths are remembered at once; of 2 to 16 places they displace each other.
    follow::usual_paths = {.log2_size = 1 + static_cast<unsigned>(piece % 4), .eager = true};
    Decoder decoder(config, code, out);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    decoder.finish();
    return std::move(sink.numbers);
}

std::vector<std::uint64_t> decode_parallel(Bytes bytes, std::size_t piece, const pft::Config& config,
                                           const isa::CodeReader& code) {
    Flat sink;
    flow::BlockTable table;
    pft::ParallelDecoder decoder(config, code, table, sink, {.workers = 2, .piece_bytes = piece});
    decoder.feed(bytes);
    decoder.finish();
    return std::move(sink.numbers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const pft::Config config = fuzz::config(input);
    const std::size_t piece = 1 + input.byte();
    const Bytes a = input.take(input.byte());
    const Bytes b = input.take(input.byte() % 32);
    const FuzzCode code(a, b);
    const Bytes bytes = input.rest();
    const auto expected = decode<pft::ReferenceDecoder>(bytes, bytes.size() + 1, config, code);
    if (decode<pft::Decoder>(bytes, bytes.size() + 1, config, code) != expected) std::abort();
    if (decode<pft::Decoder>(bytes, piece, config, code) != expected) std::abort();
    if (bytes.size() >= 2 * piece && decode_parallel(bytes, piece, config, code) != expected) std::abort();
    return 0;
}
