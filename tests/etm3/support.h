/// Helpers for the tests of this layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/etm3/encoder.h"
#include "waymark/etm3/parser.h"
#include "waymark/etm3/text.h"

namespace waymark::etm3::test {

/// Registers of a unit that sends packets of this form.
inline Registers registers_for(const Config& config) {
    Registers out = tracing_registers();
    Etm3cr cr;
    cr.cycle_accurate = config.cycle_accurate;
    cr.branch_output = config.branch_output;
    cr.vmid_trace = config.vmid_trace;
    cr.timestamps = config.timestamps;
    cr.context_id_size = static_cast<std::uint8_t>(config.context_id_bytes == 4 ? 3 : config.context_id_bytes);
    out.cr = from_value<pft::Etmcr>(to_value(cr));
    auto idr = from_value<Etm3idr>(to_value(out.idr));
    idr.minor = config.minor_version;
    idr.alternative_branches = config.alternative_branches;
    out.idr = from_value<pft::Etmidr>(to_value(idr));
    out.ccer.timestamp_binary = !config.gray_timestamps;
    out.ccer.timestamp_64 = config.timestamp_bytes == 9;
    return out;
}

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
