/// What both decoders do with everything that is not program flow: synchronisation, timestamps, contexts, gaps. How
/// instructions are walked is each decoder's own.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/flow/blocks.h"
#include "waymark/follow/walk.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

/// A core's state as the trace gives it: LastState and CurrentState of section 4.1 are of this type.
struct CoreState {
    Address address{};
    Isa isa = Isa::a32;
    bool alt_isa{};  ///< the last AltISA flag; kept while the core is in ARM state
    bool ns{}, hyp{};
    std::optional<std::uint32_t> context_id, vmid;  ///< absent: undefined

    [[nodiscard]] isa::Space space() const { return {ns, hyp, context_id, vmid}; }
    [[nodiscard]] flow::Context context() const { return {ns, hyp, context_id, vmid}; }
    [[nodiscard]] Place place() const { return {address, isa}; }
    friend bool operator==(const CoreState&, const CoreState&) = default;
};

/// AArch32 addresses wrap.
[[nodiscard]] WM_INLINE Address advance(Address address, std::uint64_t bytes) {
    return {(address.value + bytes) & 0xffffffffU};
}

[[nodiscard]] inline follow::WalkRules walk_rules(const Config& config) {
    return {{.dmb_dsb_waypoints = config.barrier_waypoints}, config.max_walk_bytes};
}

/// The state a branch packet leads to (section 2.5), completed with `last`.
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

/// The state an I-sync names (section 2.6). The VMID is not in it: what was known stays known.
[[nodiscard]] inline CoreState isync_state(const ISync& p, const CoreState& last, const Config& config) {
    CoreState to;
    to.address = p.address();
    to.isa = p.isa();
    to.alt_isa = p.alt_isa;
    to.ns = p.ns;
    to.hyp = p.hyp;
    if (config.context_id_bytes != 0) to.context_id = p.context_id;
    to.vmid = last.vmid;
    return to;
}

/// Puts events into the output, each in its place. `Out` is flow::BatchWriter or flow::CountWriter.
template <class Out>
class Elements {
public:
    Elements(const Config& config, Out& out) : config_(config), out_(out) {}

    /// A packet's cycle count as elements carry it. The largest of all means "none" there, and so is told as one less.
    [[nodiscard]] std::uint32_t cycles(std::uint32_t count) const {
        return config_.cycle_accurate ? std::min(count, flow::no_cycles - 1) : flow::no_cycles;
    }
    void event(Offset at, flow::What what) {
        tell_unplaced();
        out_.event(at, std::move(what));
    }

    /// Atoms from number `from` on that cannot be placed (section 4.4). Those of packets in a row become one event.
    void unplaced(Offset at, const pft::Atoms& atoms, unsigned from) {
        if (!any_unplaced()) unplaced_first_ = at;
        for (unsigned i = from; i < atoms.count; ++i) ++(atoms.e(i) ? unplaced_.taken : unplaced_.not_taken);
    }
    /// Offset of the first packet whose atoms are not yet delivered.
    [[nodiscard]] std::optional<Offset> unplaced_first() const {
        return any_unplaced() ? std::optional(unplaced_first_) : std::nullopt;
    }

    /// A cycle count whose range cannot be told.
    void stray_cycles(Offset at, std::uint32_t count) {
        if (config_.cycle_accurate) event(at, flow::Cycles{count});
    }

    void trace_on(Offset at, const ISync& p) {
        constexpr flow::TraceOnReason reasons[] = {flow::TraceOnReason::begin, flow::TraceOnReason::enabled,
                                                   flow::TraceOnReason::overflow, flow::TraceOnReason::debug_restart};
        const bool counted = p.reason != ISyncReason::periodic;
        event(at,
              flow::TraceOn{reasons[static_cast<unsigned>(p.reason)], counted ? cycles(p.cycles) : flow::no_cycles});
    }

    /// Reports the context if it is news.
    void context(Offset at, const CoreState& state) {
        tell_unplaced();
        const flow::Context now = state.context();
        if (told_ == now) return;
        told_ = now;
        event(at, now);
    }

    void timestamp(Offset at, const Timestamp& p) {
        timestamps_.update(p.value, config_);
        if (timestamps_.known()) begun_inside_ = false;
        if (begun_inside_) early_.push_back(p.value);
        event(at,
              flow::Timestamp{timestamps_.value(config_), timestamps_.known(), p.frequency_changed, cycles(p.cycles)});
    }
    /// A timestamp before the first I-sync: only later ones need it.
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
    /// What was told before does not hold for what comes.
    void forget() {
        tell_unplaced();
        told_.reset();
        timestamps_.forget();
        begun_inside_ = false;
    }

    /// What elements are told against.
    struct State {
        TimestampState timestamps;
        std::optional<flow::Context> told;
        flow::Atoms unplaced{};
        Offset unplaced_first{};
    };
    [[nodiscard]] State state() const { return {timestamps_, told_, unplaced_, unplaced_first_}; }
    void resume(const State& state) {
        timestamps_ = state.timestamps;
        told_ = state.told;
        unplaced_ = state.unplaced;
        unplaced_first_ = state.unplaced_first;
        begun_inside_ = false;
        early_.clear();
    }
    /// Begins somewhere inside a stream, where this was the last context told, and the last timestamp is not known:
    /// `early` keeps the values that were told without it.
    void begin_inside(const flow::Context& told) {
        resume({{}, told, {}, {}});
        begun_inside_ = true;
    }
    /// The last timestamp still depends on what came before.
    [[nodiscard]] bool begun_inside() const { return begun_inside_; }
    [[nodiscard]] const std::vector<TimestampValue>& early() const { return early_; }

private:
    [[nodiscard]] bool any_unplaced() const { return (unplaced_.taken | unplaced_.not_taken) != 0; }
    void tell_unplaced() {
        if (!any_unplaced()) [[likely]]
            return;
        out_.event(unplaced_first_, std::exchange(unplaced_, {}));
    }

    const Config& config_;
    Out& out_;
    TimestampState timestamps_;
    std::optional<flow::Context> told_;
    flow::Atoms unplaced_;
    Offset unplaced_first_{};
    bool begun_inside_ = false;
    std::vector<TimestampValue> early_;
};

/// The section 4.5 stack: deeper than any macrocell's, the oldest entry is discarded.
class ReturnStack {
public:
    static constexpr std::size_t depth = 16;
    struct Entry {
        Address address;
        Isa isa{};
        bool ns{};
    };

    void push(const Entry& entry) {
        top_ = (top_ + 1) % depth;
        entries_[top_] = entry;
        if (size_ < depth) ++size_;
    }
    /// Precondition: not empty.
    Entry pop() {
        const Entry entry = entries_[top_];
        top_ = (top_ + depth - 1) % depth;
        --size_;
        return entry;
    }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    void clear() { size_ = 0; }

private:
    std::array<Entry, depth> entries_{};
    std::size_t top_ = 0, size_ = 0;
};

/// The flags of flow::Block for a block's last instruction.
[[nodiscard]] inline std::uint8_t block_flags(const isa::Instruction& i) {
    using flow::Block;
    return static_cast<std::uint8_t>((i.link ? Block::link : 0) | (i.conditional ? Block::conditional : 0) |
                                     (i.function_return ? Block::function_return : 0) |
                                     (i.exception_return ? Block::exception_return : 0) |
                                     (i.undefined ? Block::undefined : 0));
}
[[nodiscard]] inline flow::End block_end(isa::Waypoint waypoint) {
    switch (waypoint) {
        case isa::Waypoint::direct: return flow::End::direct;
        case isa::Waypoint::indirect: return flow::End::indirect;
        case isa::Waypoint::barrier: return flow::End::barrier;
        case isa::Waypoint::none: break;
    }
    return flow::End::not_a_waypoint;
}

}  // namespace waymark::pft
