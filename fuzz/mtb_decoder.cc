/// Dumps of an MTB, registers and code of any kind: the dump's bytes are put in order once each, packets cover them and
/// encode to the same bytes, and the decoders agree on every element. The first bytes choose registers and chunks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pft_input.h"
#include "support/elements.h"
#include "waymark/core/result.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"
#include "waymark/mtb/arrangement.h"
#include "waymark/mtb/decoder.h"
#include "waymark/mtb/encoder.h"
#include "waymark/mtb/parser.h"
#include "waymark/mtb/text.h"

namespace {

using namespace waymark;

/// Code at 0, and at the highest addresses.
class AnyCode final : public isa::CodeReader {
public:
    explicit AnyCode(Bytes code) : code_(code) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        constexpr std::uint64_t last = 0xffffff00;
        const std::uint64_t at = address.value >= last ? address.value - last : address.value;
        return at < code_.size() ? isa::Code{code_.subspan(at), address.value >= last ? 1U : 0U} : isa::Code{};
    }

private:
    Bytes code_;
};

struct Check {
    Bytes bytes;
    mtb::Explainer explain{mtb::Config{}};
    Offset end{};
    std::vector<std::uint64_t> places{};
    void operator()(const mtb::JumpPacket& packet, mtb::Extent at) {
        WM_CHECK(at.first == end);
        end = at.end();
        places.push_back(at.bytes);
        (void)explain(packet);
        std::vector<std::uint8_t> again;
        mtb::encode(again, packet);
        WM_CHECK(std::equal(again.begin(), again.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at.first.value)));
        const auto scanned = mtb::from_text(mtb::to_text(packet));
        WM_CHECK(scanned.has_value() && *scanned == mtb::Packet(packet));
    }
    void operator()(const Gap& gap) {
        WM_CHECK(gap.first == end);
        end = gap.end;
        explain(gap);
    }
};
std::vector<std::uint64_t> parse(Bytes bytes, std::size_t piece) {
    Check check{bytes};
    mtb::Parser<Check> parser({}, check);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    parser.finish();
    WM_CHECK(check.end.value == bytes.size());
    return check.places;
}

template <class Decoder>
std::vector<synthetic::Element> decode(Bytes bytes, std::size_t piece, const mtb::Config& config,
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    mtb::Config config;
    const unsigned known = input.byte();
    const auto word = [&] { return static_cast<std::uint32_t>(input.byte() | input.byte() << 8); };
    if ((known & 1U) != 0) config.position = word();
    if ((known & 2U) != 0) config.master = input.byte() & 0x1fU;
    if ((known & 4U) != 0) config.flow = word();
    if ((known & 8U) != 0) config.base = word() << 8;
    if ((known & 16U) != 0) config.vtor = input.byte();
    const std::size_t piece = 1 + input.byte();
    const AnyCode code(input.take(input.byte()));
    const Bytes bytes = input.rest();
    std::uint64_t arranged = 0;
    for (const auto& p : mtb::arrange(bytes, config).pieces) {
        WM_CHECK(p.bytes != 0 && p.offset <= bytes.size() && p.bytes <= bytes.size() - p.offset);
        arranged += p.bytes;
    }
    WM_CHECK(arranged <= bytes.size());
    WM_CHECK(parse(bytes, bytes.size() + 1) == parse(bytes, piece));
    const auto fast = decode<mtb::Decoder>(bytes, piece, config, code);
    WM_CHECK(fast == decode<mtb::ReferenceDecoder>(bytes, bytes.size() + 1, config, code));
    return 0;
}
