/// The two decoders of ETMv3 on any bytes, code and configuration: they end, and agree on every element.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "pft_input.h"
#include "support/elements.h"
#include "waymark/etm3/decoder.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"

namespace {

using namespace waymark;

/// Code at 0x8000, and at the highest addresses.
class AnyCode final : public isa::CodeReader {
public:
    AnyCode(Bytes a, Bytes b) : a_(a), b_(b) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        constexpr std::uint64_t first = 0x8000, second = 0xfffffff0;
        if (address.value >= first && address.value - first < a_.size()) return {a_.subspan(address.value - first), 0};
        if (address.value >= second && address.value - second < b_.size())
            return {b_.subspan(address.value - second), 1};
        return {};
    }

private:
    Bytes a_, b_;
};

etm3::Config config_from(fuzz::Input& input) {
    constexpr std::uint8_t sizes[] = {0, 1, 2, 4};
    const unsigned a = input.byte(), b = input.byte();
    etm3::Config c;
    c.cycle_accurate = (a & 1U) != 0;
    c.data_value = (a & 2U) != 0;
    c.data_address = (a & 4U) != 0;
    c.data_only = (a & 0x18U) == 0x18;
    c.alternative_branches = (a & 0x20U) != 0;
    c.gray_timestamps = (a & 0x40U) != 0;
    c.m_profile = (a & 0x80U) != 0;
    c.context_id_bytes = sizes[b & 3U];
    c.timestamp_bytes = (b & 4U) != 0 ? 9 : 7;
    return c;
}

template <class Decoder>
std::vector<synthetic::Element> decode(Bytes bytes, std::size_t piece, const etm3::Config& config,
                                       const isa::CodeReader& code) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    Decoder decoder(config, code, out);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    decoder.finish();
    return sink.take();
}

std::vector<synthetic::Element> decode_parallel(Bytes bytes, std::size_t piece, const etm3::Config& config,
                                                const isa::CodeReader& code) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    etm3::ParallelDecoder decoder(config, code, table, sink, {.workers = 2, .piece_bytes = piece});
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const etm3::Config config = config_from(input);
    const std::size_t piece = 1 + input.byte();
    const Bytes a = input.take(input.byte());
    const Bytes b = input.take(input.byte() % 32);
    const AnyCode code(a, b);
    const Bytes bytes = input.rest();
    const auto expected = decode<etm3::ReferenceDecoder>(bytes, bytes.size() + 1, config, code);
    if (decode<etm3::Decoder>(bytes, bytes.size() + 1, config, code) != expected) std::abort();
    if (decode<etm3::Decoder>(bytes, piece, config, code) != expected) std::abort();
    if (bytes.size() >= 2 * piece && decode_parallel(bytes, piece, config, code) != expected) std::abort();
    return 0;
}
