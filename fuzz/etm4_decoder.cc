/// Decoders of ETMv4 and ETE: any bytes, any registers, any code, any chunking. Both decoders, and several threads,
/// give the same elements; gaps are in order.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "etm4_input.h"
#include "support/elements.h"
#include "waymark/etm4/decoder.h"
#include "waymark/etm4/parallel_decoder.h"
#include "waymark/etm4/reference_decoder.h"
#include "waymark/follow/paths.h"

namespace {

using namespace waymark;
using synthetic::Element;

/// The same 256 bytes again and again in the lowest and highest 64 KB of memory.
class FuzzCode final : public isa::CodeReader {
public:
    explicit FuzzCode(Bytes bytes) : bytes_(bytes.begin(), bytes.end()) { bytes_.resize(256); }
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        const std::uint64_t page = address.value >> 16;
        if (page != 0 && page != 0xffff'ffff'ffff) return {};
        return {Bytes(bytes_).subspan(address.value & 0xffU), space.ns ? 1U : 0U};
    }

private:
    std::vector<std::uint8_t> bytes_;
};

template <class Decoder>
std::vector<Element> decode(Bytes bytes, std::size_t piece, const etm4::Config& config, const isa::CodeReader& code) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    // Inputs are short, so paths are remembered at once; of 2 to 16 places they displace each other.
    follow::usual_paths = {.log2_size = 1 + static_cast<unsigned>(piece % 4), .eager = true};
    Decoder decoder(config, code, out);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    decoder.finish();
    return sink.take();
}

std::vector<Element> decode_parallel(Bytes bytes, std::size_t piece, const etm4::Config& config,
                                     const isa::CodeReader& code) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    etm4::ParallelDecoder decoder(config, code, table, sink, {.workers = 2, .piece_bytes = piece});
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const etm4::Config config = fuzz::etm4_config(input);
    const std::size_t piece = 1 + input.byte();
    const FuzzCode code(input.take(input.byte()));
    const Bytes bytes = input.rest();
    const std::vector<Element> expected = decode<etm4::ReferenceDecoder>(bytes, bytes.size() + 1, config, code);
    std::uint64_t end = 0;
    for (const Element& e : expected)
        if (e.kind == synthetic::Kind::gap) {
            if (e.a < end || e.b < e.a || e.b > bytes.size()) std::abort();
            end = e.b;
        }
    if (decode<etm4::Decoder>(bytes, bytes.size() + 1, config, code) != expected) std::abort();
    if (decode<etm4::Decoder>(bytes, piece, config, code) != expected) std::abort();
    if (bytes.size() >= 2 * piece && decode_parallel(bytes, piece, config, code) != expected) std::abort();
    return 0;
}
