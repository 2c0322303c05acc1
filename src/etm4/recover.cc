#include "waymark/etm4/recover.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "head_packets.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/reference_decoder.h"
#include "waymark/follow/head.h"
#include "waymark/follow/reference_follower.h"

namespace waymark::etm4 {

namespace {

using follow::HeadOutcome;
using follow::HeadRecovery;

constexpr std::size_t async_zeros = 11;

/// The first A-sync, and the state of the core from the packets after it.
struct FirstSync {
    std::size_t zeros = 0, mark = 0;  ///< the A-sync's first zero, and its last byte
    TraceInfo info;
    ContextFields context;
    follow::Place place;
    bool continues = true;  ///< there is no Trace On, so execution was already there
};

/// Takes the packets after an A-sync until they have given a Trace Info, a context and an address.
class SyncReader {
public:
    explicit SyncReader(const Config& config) : packets_(config) {}

    template <class P>
    void operator()(const P& p) {
        if constexpr (std::is_same_v<P, TraceInfo>) {
            if (info_) wrong = true;
            info_ = true;
            sync.info = p;
        } else if constexpr (std::is_same_v<P, TraceOn>) {
            sync.continues = false;
        } else if constexpr (!AddressPacket<P> && !CycleCountPacket<P> &&
                             !OneOf<P, Event, Instrumentation, Ignore, Timestamp, TimestampMarker, Context,
                                    AddressWithContext>) {
            wrong = true;
        }
        if (!info_ && !OneOf<P, Event, Instrumentation>) wrong = true;
        if constexpr (std::is_same_v<P, Context>) {
            if (p.has_payload) sync.context = p, context_ = true;
        } else if constexpr (std::is_same_v<P, AddressWithContext>) {
            sync.context = p;
            context_ = true;
        }
        if (const auto address = packets_(p).address) address_ = address;
    }
    [[nodiscard]] bool done() {
        if (!context_ || !address_) return false;
        sync.place = Committed<follow::ReferenceFollower, flow::BatchWriter>::place_of(*address_, sync.context.sf);
        return true;
    }
    FirstSync sync;
    bool wrong = false;

private:
    PacketState packets_;
    bool info_ = false, context_ = false;
    std::optional<KnownAddress> address_;
};

/// The first A-sync at or after `at`: the offset of its last byte, and the zeros before it.
std::optional<std::pair<std::size_t, std::size_t>> find_async(Bytes stream, std::size_t at) {
    for (std::size_t zeros = 0; at < stream.size(); ++at) {
        if (stream[at] == 0x80 && zeros >= async_zeros) return std::pair{at, zeros};
        zeros = stream[at] == 0 ? zeros + 1 : 0;
    }
    return {};
}

/// Units also send syncs while nothing is traced, with an address and no context: then execution begins after a later
/// sync.
std::optional<FirstSync> find_sync(const Config& config, Bytes stream) {
    const auto first = find_async(stream, 0);
    bool idle = false;
    for (auto sync = first; sync; idle = true) {
        SyncReader reader(config);
        std::size_t at = sync->first + 1;
        while (at < stream.size() && stream[at] != 0) {
            const Parsed parsed =
                parse_one(stream.subspan(at), config, [&](const auto& packet, std::size_t) { reader(packet); });
            if (parsed.step != Step::ok || reader.wrong) return {};
            at += parsed.bytes;
            if (!reader.done()) continue;
            reader.sync.mark = first->first;
            reader.sync.zeros = first->first - first->second;
            if (idle) reader.sync.continues = false;
            return reader.sync;
        }
        sync = find_async(stream, at);
    }
    return {};
}

/// Size of a packet of a head; 0 if none begins there. A Trace Info comes after an A-sync only.
template <class Take>
std::size_t head_packet(Bytes bytes, const Config& config, Take&& take) {
    Parsed parsed{Step::bad, 0, false};
    if (bytes[0] == 0) {
        if (bytes.size() > 1 && bytes[1] != 0) parsed = ParserRules::parse_after_zero(bytes[1], config, take);
    } else if (!is_header<TraceInfo>(bytes[0])) {
        parsed = parse_one(bytes, config, take);
    }
    return parsed.step == Step::ok ? parsed.bytes : 0;
}

std::size_t longest_packet(const Config& config) {
    std::size_t longest = 0;
    Packets::for_each([&]<class P>() {
        if constexpr (!std::is_same_v<P, ASync> && !std::is_same_v<P, TraceInfo>)
            if (is_allowed<P>(config)) longest = std::max<std::size_t>(longest, P::info.max_bytes);
    });
    return longest;
}

follow::HeadRules head_rules(const Config& config, const ContextFields& context) {
    const follow::Rules rules = etm4::rules(config);
    follow::HeadRules out{.decode = rules.walk.decode,
                          .space = to_flow(context, {}, config).space(),
                          .isas = {isa::Isa::a64, isa::Isa::a32, isa::Isa::t32},
                          .return_stack = rules.return_stack,
                          .indirect = rules.indirect,
                          .history = 3};
    out.space.context_id.reset();
    out.space.vmid.reset();
    if (config.profile == CoreProfile::m) out.isas = {isa::Isa::t32};
    return out;
}

}  // namespace

HeadRecovery recover_head(const Config& config, const isa::CodeReader& code,
                          std::span<const follow::CodeExtent> extents, Bytes stream,
                          const follow::RecoverLimits& limits) {
    HeadRecovery out;
    const auto without = [&](HeadOutcome why) {
        out.outcome = why;
        return out;
    };
    if (const auto async = find_async(stream, 0); async && async->first == async_zeros)
        return without(HeadOutcome::no_head);
    const auto sync = find_sync(config, stream);
    if (!sync) return without(HeadOutcome::no_sync);
    const std::size_t last_end = sync->mark - async_zeros;
    out.sync = out.first = out.async = {last_end};
    if (extents.empty()) return without(HeadOutcome::no_code);
    if (config.p0_loads || config.p0_stores || config.conditional != 0) return without(HeadOutcome::unsupported);

    const std::size_t base = last_end > limits.head_bytes ? last_end - limits.head_bytes : 0;
    const Bytes head = stream.subspan(base, last_end - base);
    const std::size_t end = sync->zeros - std::min(sync->zeros, base);
    const follow::HeadChains chains(head.size(), end, longest_packet(config), [&](std::size_t at) {
        return head_packet(head.subspan(at), config, [](const auto&, std::size_t) {});
    });
    const auto begin = chains.joined();
    if (!begin) return without(HeadOutcome::no_parse);
    HeadPackets packets(config);
    for (std::size_t at = *begin; at < end; at += chains.length(at))
        (void)head_packet(head.subspan(at), config,
                          [&](const auto& packet, std::size_t) { packets(packet, Offset{base + at}); });

    const std::uint64_t depth = sync->info.speculation;
    const bool lost = packets.lost().has_value();
    if (lost) ++out.obstacles.lost;
    if (!packets.depth().solve(lost ? 0 : depth, lost ? config.max_speculation : depth))
        return without(HeadOutcome::speculation);
    std::vector<follow::Observation> observations = packets.observations();
    observations.push_back(
        {packets.lost().value_or(out.async), follow::seen::Sync{sync->place, sync->continues && !lost}});
    const double unseen = follow::unseen_share(stream.subspan(last_end), [&](Bytes bytes, flow::BatchWriter& to) {
        ReferenceDecoder decoder(config, code, to);
        decoder.feed(bytes);
        decoder.finish();
    });
    follow::search_head(head_rules(config, sync->context), code, extents, observations, unseen, limits, out);
    for (follow::HeadStretch& stretch : out.stretches)
        stretch.standing.uncommitted = packets.depth().before(stretch.first);
    return out;
}

void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out) {
    const auto sync = find_sync(config, stream);
    follow::decode_head(head, out, [&](const follow::HeadStretch& stretch, flow::BatchWriter& to) {
        ReferenceDecoder decoder(config, code, to);
        decoder.begin_at(stretch.first, stretch.standing, sync ? sync->info.threshold : 0);
        decoder.feed(stream.subspan(stretch.first.value, stretch.end - stretch.first));
        decoder.finish();
    });
}

}  // namespace waymark::etm4
