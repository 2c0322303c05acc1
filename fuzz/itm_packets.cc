/// Parser, encoder, text and messages of ITM and DWT: any bytes, any chunking. The packets cover the input from end to
/// end, do not depend on how it is cut, and encode to the same bytes again; messages equal the reference decoder's. The
/// first byte says how to cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/itm/encoder.h"
#include "waymark/itm/message_decoder.h"
#include "waymark/itm/parser.h"
#include "waymark/itm/reference_decoder.h"
#include "waymark/itm/text.h"

namespace {

using namespace waymark;

struct Check {
    Bytes bytes;
    itm::Explainer explain;
    Offset end{};
    std::vector<std::uint64_t> places{};
    template <class P>
    void operator()(const P& packet, itm::Extent at) {
        WM_CHECK(at.first == end);
        end = at.end();
        places.push_back(at.bytes);
        (void)explain(packet);
        std::vector<std::uint8_t> again;
        itm::encode(again, packet);
        WM_CHECK(again.size() == at.bytes &&
                 std::equal(again.begin(), again.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at.first.value)));
        const auto scanned = itm::from_text(itm::to_text(packet));
        WM_CHECK(scanned.has_value() && *scanned == itm::Packet(packet));
    }
    void operator()(const Gap& gap) {
        WM_CHECK(gap.first == end);
        end = gap.end;
        explain(gap);
    }
};

std::vector<std::uint64_t> parse(Bytes bytes, const itm::Config& config, std::size_t piece) {
    Check check{bytes, itm::Explainer(config)};
    itm::Parser<Check> parser(config, check);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    parser.finish();
    WM_CHECK(check.end.value == bytes.size());
    return check.places;
}

class Kept final : public protocol::MessageListener {
public:
    void message(const protocol::Message& m) override { all.push_back(m); }
    std::vector<protocol::Message> all;
};

void check_messages(Bytes bytes, const itm::Config& config, std::size_t piece) {
    Kept kept;
    itm::MessageDecoder decoder(config, kept);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        decoder.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    decoder.finish();
    WM_CHECK(kept.all == itm::reference_messages(bytes, config));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const itm::Config config{};
    const Bytes bytes(data + 1, size - 1);
    WM_CHECK(parse(bytes, config, bytes.size() + 1) == parse(bytes, config, 1U + data[0]));
    check_messages(bytes, config, 1U + data[0]);
    return 0;
}
