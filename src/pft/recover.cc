#include "waymark/pft/recover.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "elements.h"
#include "waymark/follow/head.h"
#include "waymark/pft/packet.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

namespace {

namespace seen = follow::seen;
using follow::Observation;
using follow::Observed;
using follow::SentPlace;

// ---- packets → observations

SentPlace sent(const Target& target) {
    SentPlace out{.bits = target.bits, .width = static_cast<std::uint8_t>(target_bits(target.bytes))};
    if (target.bytes != 5) return out;
    out.whole = true;
    out.isa = target.isa;
    return out;
}

Observed seen_in(const Atom& p) {
    seen::Outcomes out{.taken = 0, .count = static_cast<std::uint8_t>(p.outcome.atoms.count)};
    for (unsigned i = 0; i < out.count; ++i) out.taken |= (p.outcome.atoms.e(i) ? 1U : 0U) << i;
    return out;
}
Observed seen_in(const BranchAddress& p) {
    SentPlace to = sent(p.target);
    to.thumb_ee = p.alt_isa;
    if (p.exception() == 0) return seen::Branch{to};
    constexpr std::uint32_t debug = 1;
    return seen::Jump{to, p.exception() == debug};
}
Observed seen_in(const WaypointUpdate& p) { return seen::Reached{sent(p.target)}; }
Observed seen_in(const ISync& p) { return seen::Sync{{p.address(), p.isa()}, p.reason == ISyncReason::periodic}; }
Observed seen_in(const auto&) { return seen::Nothing{}; }

// ---- the end of the head, and the beginning of its packets

/// The A-sync after the head, and the packets up to the next I-sync.
struct Sync {
    std::size_t zeros = 0, mark = 0;        ///< the A-sync's first zero, and its last byte
    std::vector<Observation> observations;  ///< after it, the I-sync last
    ISync isync;
};

std::optional<Sync> find_sync(const Config& config, Bytes stream) {
    Sync sync;
    std::size_t zeros = 0, at = 0;
    for (; at < stream.size(); ++at) {
        if (stream[at] == 0x80 && zeros >= 5) break;
        zeros = stream[at] == 0 ? zeros + 1 : 0;
    }
    if (at == stream.size()) return {};
    sync.mark = at;
    sync.zeros = at - zeros;
    for (++at; at < stream.size();) {
        bool found = false;
        const Parsed parsed = parse_one(stream.subspan(at), config, [&](const auto& packet, std::size_t) {
            if constexpr (std::is_same_v<std::decay_t<decltype(packet)>, ISync>) {
                sync.isync = packet;
                found = true;
            }
            sync.observations.push_back({{at}, seen_in(packet)});
        });
        if (parsed.step != Step::ok) return {};
        if (found) return sync;
        at += parsed.bytes;
    }
    return {};
}

std::size_t longest_packet(const Config& config) {
    const std::size_t cycles = config.cycle_accurate ? 5 : 0;
    const std::size_t branch = 7 + cycles, isync = 6 + cycles + config.context_id_bytes;
    const std::size_t timestamp = config.timestamps ? 1 + config.timestamp_bytes + cycles : 0;
    return std::max({branch, isync, timestamp});
}

/// The observations of the examined head, and of the packets up to the I-sync; empty if no chain of packets leads to
/// the A-sync.
std::vector<Observation> observations_of(const Config& config, Bytes stream, const Sync& sync, std::size_t most_bytes) {
    // The five zeros before the last byte belong to the A-sync.
    const std::size_t last_end = sync.mark - 5;
    const std::size_t base = last_end > most_bytes ? last_end - most_bytes : 0;
    const Bytes head = stream.subspan(base, last_end - base);
    const std::size_t end = sync.zeros - std::min(sync.zeros, base);
    const follow::HeadChains chains(head.size(), end, longest_packet(config), [&](std::size_t at) -> std::size_t {
        if (head[at] == 0) return 0;
        const Parsed parsed = parse_one(head.subspan(at), config, [](const auto&, std::size_t) {});
        return parsed.step == Step::ok ? parsed.bytes : 0;
    });
    std::vector<Observation> out;
    const auto begin = chains.joined();
    if (!begin) return out;
    for (std::size_t at = *begin; at < end; at += chains.length(at))
        (void)parse_one(stream.subspan(base + at), config, [&](const auto& packet, std::size_t) {
            out.push_back({{base + at}, seen_in(packet)});
        });
    out.insert(out.end(), sync.observations.begin(), sync.observations.end());
    return out;
}

}  // namespace

HeadRecovery recover_head(const Config& config, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                          Bytes stream, const RecoverLimits& limits) {
    const std::vector<CodeExtent> reached = follow::below_4gb(extents);
    HeadRecovery out;
    const auto sync = find_sync(config, stream);
    const auto without = [&](HeadOutcome why) {
        out.outcome = why;
        return out;
    };
    if (!sync) return without(HeadOutcome::no_sync);
    out.sync = out.first = sync->observations.back().at;
    out.async = {sync->zeros};
    if (sync->zeros == 0) return without(HeadOutcome::no_head);
    if (reached.empty()) return without(HeadOutcome::no_code);
    const std::vector<Observation> observations = observations_of(config, stream, *sync, limits.head_bytes);
    if (observations.empty()) return without(HeadOutcome::no_parse);

    const follow::HeadRules rules{.decode = pft::rules(config).walk.decode,
                                  .space = {sync->isync.ns, sync->isync.hyp, {}, {}},
                                  .isas = {Isa::a32, Isa::t32},
                                  .return_stack = config.return_stack,
                                  .isa_of_base = true,
                                  .reached_is_base = config.update_is_compression_base};
    const double unseen = follow::unseen_share(stream.subspan(sync->zeros), [&](Bytes bytes, flow::BatchWriter& to) {
        ReferenceDecoder decoder(config, code, to);
        decoder.feed(bytes);
        decoder.finish();
    });
    follow::search_head(rules, code, reached, observations, unseen, limits, out);
    return out;
}

void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out) {
    follow::decode_head(head, out, [&](const HeadStretch& stretch, flow::BatchWriter& to) {
        ReferenceDecoder decoder(config, code, to);
        decoder.begin_at(stretch.first, stretch.standing);
        decoder.feed(stream.subspan(stretch.first.value, stretch.end - stretch.first));
        decoder.finish();
    });
}

}  // namespace waymark::pft
