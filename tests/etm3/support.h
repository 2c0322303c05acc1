/// Helpers for the tests of this layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/etm3/encoder.h"
#include "waymark/etm3/parser.h"
#include "waymark/etm3/text.h"

namespace waymark::etm3::test {

/// Packets and gaps of a stream, as text with their meaning.
struct Listed {
    std::vector<Packet> packets;
    std::string text;  ///< a line each
};
class Lister {
public:
    Lister(const Config& config, Listed& into) : config_(config), explain_(config), into_(into) {}
    template <class P>
    void operator()(const P& packet, Extent) {
        const std::string meaning = explain_(packet);
        into_.packets.emplace_back(packet);
        into_.text += to_text(packet, config_) + (meaning.empty() ? "" : ": " + meaning) + "\n";
    }
    void operator()(const Gap& gap) {
        explain_(gap);
        into_.text += "GAP " + std::string(waymark::name(gap.reason)) + "\n";
    }

private:
    const Config& config_;
    Explainer explain_;
    Listed& into_;
};
inline Listed list(const std::vector<std::uint8_t>& bytes, const Config& config, std::size_t chunk = 1 << 20) {
    Listed out;
    Lister handler(config, out);
    Parser<Lister> parser(config, handler);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        parser.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
    parser.finish();
    return out;
}
inline std::vector<std::uint8_t> with_async(std::vector<std::uint8_t> bytes) {
    const std::vector<std::uint8_t> async = {0, 0, 0, 0, 0, 0x80};
    bytes.insert(bytes.begin(), async.begin(), async.end());
    return bytes;
}

}  // namespace waymark::etm3::test
