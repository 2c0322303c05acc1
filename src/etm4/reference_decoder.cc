#include "waymark/etm4/reference_decoder.h"

#include <algorithm>
#include <optional>

#include "elements.h"
#include "waymark/etm4/parser.h"
#include "waymark/follow/reference_follower.h"

namespace waymark::etm4 {

class ReferenceDecoder::Machine {
public:
    Machine(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config),
          out_(out),
          elements_(out),
          follower_(rules(config_), code, elements_),
          committed_(config_, code, elements_, follower_),
          assembler_(config_),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void begin_at(Offset at, const follow::Standing& standing, std::uint32_t threshold) {
        parser_.resume_at(at);
        elements_.event(at, flow::TraceOn{flow::TraceOnReason::recovered, flow::no_cycles});
        synchronisation_.resume_synchronised();
        const auto raw = [](const isa::Place& place) {
            return KnownAddress{.address = place.address, .is1 = place.isa == isa::Isa::t32};
        };
        AddressHistory addresses;
        for (const auto& place : {standing.earlier[1], standing.earlier[0]})
            if (place)
                addresses.push(raw(*place));
            else
                addresses.push({.address = {}, .is1 = false, .known = 0});
        CommittedState committed;
        committed.last = addresses.push(raw(standing.last));
        PacketState packets(config_);
        packets.begin_inside(addresses, threshold);
        assembler_.resume({packets, std::nullopt});
        committed.sf = standing.current.isa == isa::Isa::a64;
        committed.context = {
            .ns = standing.ns, .hyp = standing.hyp, .nse = standing.nse, .aarch64 = committed.sf, .el = {}};
        committed.context_known = true;
        committed_.resume(committed);
        follower_.go(standing.current, committed.context, at);
        for (const isa::Place& place : standing.returns) follower_.push({place, standing.ns});
        waiting_.add_unseen(at, standing.uncommitted);
    }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        if (committed_.overflow_pending())
            elements_.event(parser_.offset(), flow::Mark{flow::Mark::Kind::overflow_at_end, 0, 0});
        end_of_flow(parser_.offset(), false);
        synchronisation_.lost_until(parser_.offset(), report_);
        synchronisation_.lose(parser_.offset(), GapReason::unsynchronised);
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        Offset oldest = parser_.pending();
        const auto take = [&](std::optional<Offset> at) { oldest = at ? std::min(oldest, *at) : oldest; };
        take(synchronisation_.lost_first());
        take(assembler_.pending());
        if (!waiting_.empty()) take(waiting_.first());
        take(elements_.unplaced_first());
        return {parser_.pending(), oldest};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- packets: steps 1 to 3 of section 14, and 4 for those that follow a Trace Info

    void operator()(const Gap& gap) {
        end_of_flow(gap.first, false);
        synchronisation_.lost_until(gap.first, report_);
        report_(gap);
        elements_.forget();
        synchronisation_.lose(gap.end, GapReason::unsynchronised);
    }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        synchronisation_.async(at, report_);
    }
    void operator()(const TraceInfo& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) {
            if (!contradicts(p, assembler_, waiting_.depth())) return add(p, at);
            end_of_flow(at.first, false);
        } else {
            if (!synchronisation_.waits_for_info()) return;
            synchronisation_.info(at, report_);
        }
        assembler_.begin(p);
        committed_.synchronised();
        waiting_.add_unseen(at.first, p.speculation);
        if (p.in_transaction())
            waiting_.add(at.first, ElementKind::dropped, element::Mark{{flow::Mark::Kind::transaction_inside, 0, 0}});
        resolve({}, at);
    }
    void operator()(const Discard&, Extent at) { discard(at, false); }
    void operator()(const Overflow&, Extent at) { discard(at, true); }
    void operator()(const Event& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) return add(p, at);
        if (config_.ete()) mark_early(mark_of(p), at);
    }
    void operator()(const Instrumentation& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) return add(p, at);
        mark_early(mark_of(p), at);
    }
    void operator()(const auto& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) add(p, at);
    }

private:
    void add(const auto& p, Extent at) { resolve(assembler_(p, at.first, waiting_), at); }

    /// Step 5: commit, cancel, mispredict, in this order (section 8).
    void resolve(const Request& request, Extent at) {
        const std::uint64_t depth = waiting_.depth();
        const std::uint64_t excess = depth > config_.max_speculation ? depth - config_.max_speculation : 0;
        const std::uint64_t commit = std::max(request.commit, excess);
        if (waiting_.size() > most_waiting) waiting_.settle(committed_);
        if (request.impossible || waiting_.size() > most_waiting || !waiting_.commit(commit, committed_))
            return sequence_error(at);
        if (request.count) waiting_.add_before_waiting(at.first, *request.count);
        // A unit that does not speculate never mispredicts: what it committed is settled.
        const bool speculates = config_.max_speculation != 0;
        if (!waiting_.cancel(request.cancel) || (request.mispredict && !(speculates && waiting_.mispredict())))
            return sequence_error(at);
        if (speculates)
            waiting_.release(committed_);
        else
            waiting_.settle(committed_);
    }

    /// The packet cannot be here: nothing is known until the next A-sync and Trace Info.
    void sequence_error(Extent at) {
        end_of_flow(at.first, false);
        synchronisation_.lose(at.first, GapReason::malformed_packet);
    }

    /// An element that needs an A-sync and no Trace Info.
    void mark_early(const flow::Mark& mark, Extent at) {
        if (!synchronisation_.waits_for_info()) return;
        synchronisation_.taken(at, report_);
        elements_.event(at.first, mark);
    }
    /// Step 9.
    void discard(Extent at, bool overflow) {
        ++packets_;
        if (!synchronisation_.synchronised()) return;
        end_of_flow(at.first, overflow);
        synchronisation_.lose(at.end(), GapReason::unsynchronised);
    }

    /// What waits will never be committed, and nothing is known of the core.
    void end_of_flow(Offset at, bool overflow) {
        // An exception or a Q whose address did not come counts, too.
        const std::size_t lost = waiting_.discard(committed_) + (assembler_.pending() ? 1 : 0);
        if (lost != 0) elements_.event(at, flow::Mark{flow::Mark::Kind::uncommitted, lost, 0});
        assembler_.forget();
        committed_.forget(overflow);
    }

    const Config config_;
    flow::BatchWriter& out_;
    follow::Elements<flow::BatchWriter> elements_;
    follow::ReferenceFollower follower_;
    Committed<follow::ReferenceFollower, flow::BatchWriter> committed_;
    Assembler assembler_;
    Uncommitted waiting_;
    Synchronisation synchronisation_;
    FastParser<Machine> parser_;
    struct Report {
        follow::Elements<flow::BatchWriter>& elements;
        void operator()(const Gap& gap) const { elements.event(gap.first, gap); }
    } report_{elements_};
    std::uint64_t packets_ = 0;
};

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : machine_(hold<Machine>(config, code, out)) {}

void ReferenceDecoder::begin_at(Offset at, const follow::Standing& standing, std::uint32_t threshold) {
    machine_.begin_at(at, standing, threshold);
}

}  // namespace waymark::etm4
