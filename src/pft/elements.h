/// The common part of both decoders for everything other than program flow: synchronisation, timestamps, cycle counts,
/// gaps. The layer `follow` follows program flow.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/follow/block_cache.h"
#include "waymark/follow/elements.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/time_order.h"
#include "waymark/pft/late_timestamps.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

/// The state of a core in the trace. LastState and CurrentState of section 4.1 have this type.
struct CoreState {
    Address address{};
    Isa isa = Isa::a32;
    bool alt_isa{};  ///< the last AltISA flag; kept while the core is in ARM state
    bool ns{}, hyp{};
    std::optional<std::uint32_t> context_id, vmid;  ///< absent: undefined

    [[nodiscard]] flow::Context context() const {
        return {.ns = ns, .hyp = hyp, .context_id = context_id, .vmid = vmid};
    }
    /// An I-sync carries no VMID: the earlier one stays.
    void carry(std::optional<std::uint32_t> last_vmid) { vmid = last_vmid; }
    [[nodiscard]] Place place() const { return {address, isa}; }
    friend bool operator==(const CoreState&, const CoreState&) = default;
};

[[nodiscard]] inline follow::Rules rules(const Config& config) {
    return {.walk = {{.dmb_dsb_waypoints = config.barrier_waypoints}, config.max_walk_bytes},
            .return_stack = config.return_stack};
}

/// The state after a branch packet (section 2.5), completed with `last`.
[[nodiscard]] inline CoreState branch_target(const BranchAddress& p, const CoreState& last, const Config& config) {
    CoreState to = last;
    const Place place = complete(p.target, last.place());
    if (p.target.information) {
        to.ns = p.ns;
        to.alt_isa = p.alt_isa;
        if (p.more)
            to.hyp = p.hyp;
        else if (!config.hyp_kept_without_info_1)
            to.hyp = false;
    }
    to.address = place.address;
    to.isa = with_alt_isa(place.isa, to.alt_isa);
    return to;
}

/// The state in an I-sync (section 2.6). It does not include the VMID: a known VMID stays known.
[[nodiscard]] inline CoreState isync_state(const ISync& p, std::optional<std::uint32_t> vmid, const Config& config) {
    CoreState to;
    to.address = p.address();
    to.isa = p.isa();
    to.alt_isa = p.alt_isa;
    to.ns = p.ns;
    to.hyp = p.hyp;
    if (config.context_id_bytes != 0) to.context_id = p.context_id;
    to.vmid = vmid;
    return to;
}

/// The packet before an exception return packet, if both belong together: the return is the branch that this packet
/// reports.
struct ReturningPacket {
    Offset end{};  ///< of the packet
    enum class Is : std::uint8_t {
        other,
        atoms,   ///< atoms of waypoint instructions, none of which is an exception return
        branch,  ///< a branch packet whose instruction is an exception return
        no_return
    } is = Is::other;
    Address branch{};  ///< Is::no_return: the instruction that is not a return

    void atoms_until(Offset until) { *this = {until, Is::atoms, {}}; }
    void branch_until(Offset until, Address at, bool returns) {
        *this = {until, returns ? Is::branch : Is::no_return, at};
    }
    /// The address of an instruction that cannot be a return, if an exception return packet at `at`, with execution at
    /// `here`, does not belong to the code before it.
    [[nodiscard]] std::optional<Address> contradicts(Offset at, Address here, const Config& config) const {
        if (at != end) return {};
        if (is == Is::no_return) return branch;
        // A branch that matches the return stack has no branch packet.
        return is == Is::atoms && !config.return_stack ? std::optional(here) : std::nullopt;
    }
};

/// Puts events into the output, each in its place. `Out` is flow::BatchWriter or flow::CountWriter.
template <class Out>
class Elements : public follow::Elements<Out> {
    using Base = follow::Elements<Out>;

public:
    using Base::event;

    Elements(const Config& config, Out& out) : Base(out), config_(config) {}

    /// A packet's cycle count in the form of elements. There, the largest count means "none", so it is delivered as an
    /// event of its own.
    [[nodiscard]] std::uint32_t cycles(Offset at, std::uint32_t count) {
        if (!config_.cycle_accurate) return flow::no_cycles;
        if (count == flow::no_cycles) [[unlikely]]
            event(at, flow::Cycles{.cycles = count});
        return count;
    }

    /// Reports that atoms from number `from` on cannot be placed (section 4.4).
    void unplaced(Offset at, const pft::Atoms& atoms, unsigned from) {
        flow::Atoms count;
        for (unsigned i = from; i < atoms.count; ++i) ++(atoms.e(i) ? count.taken : count.not_taken);
        Base::unplaced(at, count);
    }

    /// A cycle count whose range is not known. `cycles` delivers the largest count itself.
    void stray_cycles(Offset at, std::uint32_t count) {
        if (config_.cycle_accurate && count != flow::no_cycles) event(at, flow::Cycles{.cycles = count});
    }

    void trace_on(Offset at, const ISync& p) {
        constexpr flow::TraceOnReason reasons[] = {flow::TraceOnReason::begin, flow::TraceOnReason::enabled,
                                                   flow::TraceOnReason::overflow, flow::TraceOnReason::debug_restart};
        const bool counted = p.reason != ISyncReason::periodic;
        event(at, flow::TraceOn{reasons[static_cast<unsigned>(p.reason)],
                                counted ? cycles(at, p.cycles) : flow::no_cycles});
    }

    void timestamp(Offset at, const Timestamp& p) {
        const flow::Timestamp now = complete(p);
        if (const auto before = times_.take(now))
            event(at, flow::Inconsistency{flow::Conflict::time_goes_back, {*before}, {now.value}});
        static_cast<void>(cycles(at, p.cycles));
        event(at, now);
    }
    /// For inner loops: records a timestamp that needs no more than delivery, which the caller does. Returns false,
    /// without effect, otherwise; the timestamp has all its bits.
    [[nodiscard]] WM_INLINE bool plain(const flow::Timestamp& timestamp) { return times_.plain(timestamp); }
    /// Converts a timestamp to an element, completed with earlier bits.
    [[nodiscard]] WM_INLINE flow::Timestamp complete(const Timestamp& p) {
        timestamps_.update(p.value, config_);
        late_.see(p.value, timestamps_);
        return {timestamps_.value(config_), timestamps_.known(), p.frequency_changed,
                config_.cycle_accurate ? p.cycles : flow::no_cycles};
    }
    /// A timestamp before the first I-sync: it is only used to complete later ones.
    void timestamp_unsynced(const Timestamp& p) { timestamps_.update(p.value, config_); }

    /// Packets between an A-sync and the first I-sync give no flow (section 2.11): [first, end) counts as
    /// unsynchronised.
    void waited_for_isync(Offset first, Offset end) {
        if (first < end) event(end, Gap{first, end, GapReason::unsynchronised});
    }

    void gap(const Gap& gap) {
        event(gap.first, gap);
        forget();
    }
    /// Forgets earlier state, which does not apply to later packets.
    void forget() {
        Base::forget();
        timestamps_.forget();
        times_.forget();
        late_.to_the_end = false;
    }

    /// The state to which elements are relative.
    struct State {
        typename Base::State base;
        TimestampState timestamps;
        follow::TimeOrder times;
    };
    [[nodiscard]] State state() const { return {Base::state(), timestamps_, times_}; }
    void resume(const State& state) {
        Base::resume(state.base);
        timestamps_ = state.timestamps;
        times_ = state.times;
        late_.to_the_end = false;
        late_.sent.clear();
    }
    /// For a beginning inside a stream: `context` is the last reported context, and the last timestamp is not known.
    void begin_inside(const flow::Context& context) {
        resume({{.context = context}, {}, {}});
        times_.begin_inside();
        late_.to_the_end = true;
    }
    [[nodiscard]] LateTimestamps late() const { return {late_.sent, late_.to_the_end, times_}; }

private:
    const Config& config_;
    TimestampState timestamps_;
    follow::TimeOrder times_;
    LateTimestamps late_;
};

}  // namespace waymark::pft
