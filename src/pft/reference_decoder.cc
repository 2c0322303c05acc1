#include "waymark/pft/reference_decoder.h"

#include <optional>
#include <utility>

#include "elements.h"
#include "waymark/follow/reference_follower.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

class ReferenceDecoder::Machine {
public:
    Machine(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config),
          out_(out),
          elements_(config_, out),
          follower_(rules(config_), code, elements_),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void begin_at(Offset at, const Standing& standing) {
        parser_.resume_at(at);
        at_ = at;
        elements_.event(at, flow::TraceOn{flow::TraceOnReason::recovered, flow::no_cycles});
        CoreState state;
        state.ns = standing.ns;
        state.hyp = standing.hyp;
        state.address = standing.current.address;
        state.isa = standing.current.isa;
        state.alt_isa = state.isa == Isa::tee;
        synced_ = true;
        set_both_states(state);
        last_state_.address = standing.last.address;
        last_state_.isa = standing.last.isa;
        for (const Place& place : standing.returns) follower_.push({place, standing.ns});
    }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        if (!synced_ && async_seen_) elements_.waited_for_isync(async_end_, parser_.offset());
        forget();
        elements_.forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        return {parser_.pending(), async_seen_ ? async_end_ : elements_.unplaced_first().value_or(parser_.pending())};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- packets, dispatched as in section 4.1

    void operator()(const Gap& gap) {
        if (!synced_ && async_seen_) elements_.waited_for_isync(async_end_, gap.first);
        forget();
        elements_.gap(gap);
    }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (synced_ || async_seen_) return;
        async_seen_ = true;
        async_end_ = at.end();
    }
    void operator()(const ISync& p, Extent at) {
        ++packets_;
        at_ = at.first;
        if (!synced_) elements_.waited_for_isync(async_end_, at.first);
        analyze_isync(p);
    }
    void operator()(const Timestamp& p, Extent at) {
        ++packets_;
        if (synced_)
            elements_.timestamp(at.first, p);
        else
            elements_.timestamp_unsynced(p);
    }
    void operator()(const BranchAddress& p, Extent at) {
        if (!begin(at)) return;
        check_vmid();
        if (p.exception() == 0)
            branch_no_excp(p);
        else
            branch_with_excp(p);
    }
    void operator()(const Atom& p, Extent at) {
        if (!begin(at)) return;
        check_vmid();
        analyze_atomheader(p);
    }
    void operator()(const WaypointUpdate& p, Extent at) {
        if (begin(at)) analyze_waypoint_update(p);
    }
    void operator()(const ContextId& p, Extent at) {
        if (begin(at)) analyze_cid(p);
    }
    void operator()(const Vmid& p, Extent at) {
        if (begin(at)) analyze_vmid(p);
    }
    void operator()(const ExceptionReturn&, Extent at) {
        if (begin(at)) analyze_eret();
    }
    void operator()(const Trigger&, Extent at) {
        if (begin(at)) elements_.event(at_, flow::Trigger{});
    }
    void operator()(const Ignore&, Extent) { ++packets_; }

private:
    /// Counts the packet. Returns false if no I-sync has come yet, so that the packet cannot be interpreted.
    bool begin(Extent at) {
        ++packets_;
        at_ = at.first;
        end_ = at.end();
        return synced_;
    }

    /// Checks that, if VMIDs are traced, one follows each I-sync before the next atom or branch packet (2.6).
    void check_vmid() {
        if (!std::exchange(vmid_due_, false)) return;
        const Address here = follower_.known() ? follower_.place().address : Address{};
        elements_.event(at_, flow::Inconsistency{flow::Conflict::vmid_missing, here, {}});
    }

    /// Resets to the state before the first byte: nothing is known of the core.
    void forget() {
        synced_ = async_seen_ = vmid_due_ = false;
        follower_.forget();  // the VMID too is unknown until its packet comes
        last_state_ = {};
    }

    // ---- the operations of section 4.2, under their own names

    void branch_no_excp(const BranchAddress& p) {
        // Step 1, corrected: the target is stored separately, because the walk starts from the old CurrentState. The
        // packet may belong to a direct branch (4.6, 4.8), and then gives the same target as the instruction; if not,
        // the code was modified or the image is wrong. In both cases the packet takes precedence.
        const CoreState target = branch_target(p, last_state_, config_);
        const std::uint32_t cycles = elements_.cycles(at_, p.cycles);
        const auto branch = follower_.known() ? follower_.next_branch() : std::nullopt;
        if (!follower_.known() || !follower_.branch(target.place(), at_, cycles))  // steps 2 to 5, and 6b
            elements_.stray_cycles(at_, p.cycles);
        else if (branch)
            returning_.branch_until(end_, branch->address, branch->exception_return);
        set_both_states(target);  // step 6a
    }

    void branch_with_excp(const BranchAddress& p) {
        const CoreState target = branch_target(p, last_state_, config_);
        flow::Exception exception{&exception_type(p.exception()), {}, {}, elements_.cycles(at_, p.cycles)};
        const bool debug_entry = p.exception() == 1;
        if (!debug_entry) exception.vector = target.address;
        follower_.exception(exception, at_);  // which adds the preferred return address (4.7)
        if (!debug_entry) return set_both_states(target);
        // Address and state in this packet have no meaning (4.7); an I-sync follows when the core leaves Debug state.
        last_state_ = target;
        follower_.lose();
    }

    void analyze_atomheader(const Atom& p) {
        returning_.atoms_until(end_);
        const std::uint32_t cycles = elements_.cycles(at_, p.outcome.cycles);
        for (unsigned i = 0; i < p.outcome.atoms.count; ++i)
            if (!follower_.known() || !follower_.atom(p.outcome.atoms.e(i), at_, cycles)) {
                // The rest of the packet cannot be placed (4.4).
                elements_.unplaced(at_, p.outcome.atoms, i);
                return elements_.stray_cycles(at_, p.outcome.cycles);
            }
    }

    void analyze_cid(const ContextId& p) {
        flow::Context context = follower_.context();
        last_state_.context_id = context.context_id = p.context_id;
        follower_.set_context(context, at_);
    }

    void analyze_vmid(const Vmid& p) {
        vmid_due_ = false;
        flow::Context context = follower_.context();
        last_state_.vmid = context.vmid = p.vmid;
        follower_.set_context(context, at_);
    }

    void analyze_waypoint_update(const WaypointUpdate& p) {
        const Place place = complete(p.target, last_state_.place());  // step 1
        if (config_.update_is_compression_base) {                     // OQ1
            if (p.target.information) last_state_.alt_isa = p.alt_isa;
            last_state_.address = place.address;
            last_state_.isa = with_alt_isa(place.isa, last_state_.alt_isa);
        }
        // Steps 2 to 6, corrected: a waypoint instruction still gets its own atom or branch packet.
        follower_.walk_to(place.address, follow::Stop::after, at_);
    }

    void analyze_eret() {
        if (follower_.known())
            if (const auto other = returning_.contradicts(at_, follower_.place().address, config_))
                elements_.event(at_, flow::Inconsistency{flow::Conflict::no_exception_return, *other, {}});
        elements_.event(at_, flow::ExceptionReturn{});
    }

    /// Takes an I-sync (section 4.3).
    void analyze_isync(const ISync& p) {
        const CoreState state = isync_state(p, follower_.context().vmid, config_);
        if (!synced_ || p.reason != ISyncReason::periodic)
            elements_.trace_on(at_, p);
        else
            follower_.confirm(state.place(), state.context(), at_);
        synced_ = true;
        async_seen_ = false;
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has no VMIDs (2.8)
        follower_.clear_return_stack();
        set_both_states(state);
    }

    void set_both_states(const CoreState& state) {
        last_state_ = state;
        follower_.go(state.place(), state.context(), at_);
    }

    const Config config_;
    flow::BatchWriter& out_;
    Elements<flow::BatchWriter> elements_;
    follow::ReferenceFollower follower_;  // CurrentState, and the rules of walking the program
    FastParser<Machine> parser_;

    CoreState last_state_;
    bool synced_ = false;
    bool vmid_due_ = false;    // an I-sync came, and no VMID since then, although VMIDs are traced
    bool async_seen_ = false;  // while not synced: an A-sync has come, its I-sync has not
    Offset async_end_{};
    Offset at_{}, end_{};  // of the current packet
    ReturningPacket returning_;
    std::uint64_t packets_ = 0;
};

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : machine_(hold<Machine>(config, code, out)) {}
void ReferenceDecoder::begin_at(Offset at, const Standing& standing) { machine_.begin_at(at, standing); }

}  // namespace waymark::pft
