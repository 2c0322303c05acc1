#include "waymark/doctor/identify.h"

#include <algorithm>

#include "waymark/protocol/listed_packets.h"

namespace waymark::doctor {

namespace {

class Ignore final : public protocol::PacketListener {
public:
    void packet(const protocol::PacketView&, protocol::Extent) override {}
    void gap(const Gap&) override {}
};

/// Whether a bare file can have this protocol, so that an option or another command can read it.
bool can_be_bare(const Protocol& protocol) {
    return !protocol.words().types.empty() || !protocol.how_to_read("FILE").empty();
}

}  // namespace

std::string_view name(const Protocol* protocol) {
    return protocol == nullptr ? "not recognised" : protocol->words().title;
}

bool leaves_bytes(const Identity& identity, const std::vector<Stretch>& stretches) {
    const auto findings =
        identity.protocol->health(identity, identity.configuration.get(), stretches, std::string_view());
    return std::any_of(findings.begin(), findings.end(),
                       [](const protocol::CaptureFinding& f) { return f.kind == "damaged-packets"; });
}

void take_end_mark_off(std::vector<Stretch>& stretches, const Configuration& configuration) {
    for (Stretch& stretch : stretches) {
        if (stretch.end_mark_bytes == 0) continue;
        Ignore ignore;
        const auto reader = configuration.list(ignore);
        stretch.bytes.resize(protocol::feed(*reader, stretch, [&] { return reader->amid_packet(); }));
        stretch.end_mark_bytes = 0;
    }
}

Identity identify(const std::vector<Stretch>& stretches, bool framed, const Protocol* described,
                  const Protocol* listed) {
    Identity out;
    if (const auto* const known = protocol::listed_packets(listed)) {
        known->identify_listed(stretches, out);
        return out;
    }
    if (std::all_of(stretches.begin(), stretches.end(), [](const Stretch& s) { return s.bytes.empty(); })) {
        out.tried.push_back({"nothing", "there are no bytes"});
        return out;
    }
    for (const Protocol* protocol : pipeline::protocols()) {
        if (framed && !protocol->trace_id()) continue;
        if (protocol != described && !can_be_bare(*protocol)) continue;
        if (out.protocol == nullptr) {
            if (protocol->identify(stretches, out)) out.protocol = protocol;
            continue;
        }
        // A protocol with the same synchronisation as an earlier one is chosen only if the bytes fit it better than all
        // earlier ones.
        const std::string_view sync = out.protocol->words().sync_bytes;
        if (sync.empty() || protocol->words().sync_bytes != sync) continue;
        // A description outweighs a greater likelihood: the described protocol has to fail where the other one does
        // not.
        const bool is_described = out.protocol == described;
        if (is_described && !leaves_bytes(out, stretches)) continue;
        Identity other;
        other.tried = out.tried;
        const bool fits = protocol->identify(stretches, other);
        if (fits && !(is_described && leaves_bytes(other, stretches)))
            out = std::move(other);
        else
            out.tried = std::move(other.tried);
    }
    return out;
}

}  // namespace waymark::doctor
