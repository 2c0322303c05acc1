/// Parser, encoder, text and messages of STPv2: any bytes, any chunking. The packets cover the input from end to end
/// and do not depend on how it is cut; encoded again, they read as the same packets. The first byte says how to cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/stm/encoder.h"
#include "waymark/stm/message_decoder.h"
#include "waymark/stm/parser.h"
#include "waymark/stm/text.h"

namespace {

using namespace waymark;

struct Check {
    stm::Explainer explain;
    Offset end{};
    std::string text{}, places{};
    std::vector<std::uint8_t> again{};
    stm::NibbleWriter writer{again};
    explicit Check(const stm::Config& config) : explain(config) {}
    template <class P>
    void operator()(const P& packet, stm::Extent at) {
        WM_CHECK(at.first == end);
        end = at.end();
        (void)explain(packet);
        // After a gap, packets are written again behind an ASYNC.
        stm::encode(writer, packet);
        const std::string words = stm::to_text(packet);
        text += words + "\n";
        places += std::to_string(at.bytes) + " ";
        const auto scanned = stm::from_text(words);
        WM_CHECK(scanned.has_value() && *scanned == stm::Packet(packet));
    }
    void operator()(const Gap& gap) {
        WM_CHECK(gap.first == end);
        end = gap.end;
        explain(gap);
        places += std::to_string(gap.bytes()) + "! ";
    }
};

template <class Reader>
void feed(Reader& reader, Bytes bytes, std::size_t piece) {
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        reader.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    reader.finish();
}

class Kept final : public protocol::MessageListener {
public:
    void message(const protocol::Message& m) override { all.push_back(m); }
    std::vector<protocol::Message> all;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 1) return 0;
    const stm::Config config{};
    const Bytes bytes(data + 1, size - 1);
    Check whole(config), pieces(config), again(config);
    stm::Parser<Check> one(config, whole), several(config, pieces), third(config, again);
    feed(one, bytes, bytes.size() + 1);
    feed(several, bytes, 1U + data[0]);
    WM_CHECK(whole.end.value == bytes.size() && pieces.end == whole.end);
    WM_CHECK(whole.text == pieces.text && whole.places == pieces.places);
    feed(third, whole.again, whole.again.size() + 1);
    WM_CHECK(again.text.starts_with(whole.text));
    Kept kept, parts;
    stm::MessageDecoder decoder(config, kept), second(config, parts);
    feed(decoder, bytes, bytes.size() + 1);
    feed(second, bytes, 1U + data[0]);
    WM_CHECK(kept.all == parts.all);
    return 0;
}
