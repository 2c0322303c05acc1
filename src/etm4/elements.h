/// Parts of the fast decoder: the elements that a packet adds (docs/spec/etm4.md, 14, step 4), which the recovery of
/// heads uses too; the effect of each element when it is committed (steps 6 to 8, sections 9 to 11); and
/// synchronisation (steps 1 to 3). The reference decoder has its own code for all of these.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>

#include "waymark/etm4/config.h"
#include "waymark/etm4/exceptions.h"
#include "waymark/etm4/parser.h"
#include "waymark/etm4/state.h"
#include "waymark/follow/elements.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/time_order.h"
#include "waymark/follow/waiting.h"
#include "waymark/follow/walk.h"

namespace waymark::etm4 {

// ---- elements, as section 14 names them; atoms are follow::Outcomes

namespace element {

/// The address at which execution continues.
struct Address {
    KnownAddress place;
};
struct Context {
    ContextFields fields;
};
struct TraceOn {};
/// A Trace Info packet other than the first: the return stack is empty there.
struct TraceInfo {};
/// An exception, with the address and context from the packets after it.
struct Exception {
    std::uint16_t type{};
    bool at_branch_target{};
    std::optional<KnownAddress> address{};
    std::optional<ContextFields> context{};
};
struct ExceptionReturn {};
struct FunctionReturn {};
struct Timestamp {
    flow::Timestamp timestamp;
};
/// A cycle count. It belongs to the youngest P0 element that is already committed when the count arrives.
struct CycleCount {
    std::optional<std::uint32_t> cycles{};  ///< nullopt: the unit does not know the count
    std::uint32_t threshold{};
};
struct Q {
    std::optional<std::uint32_t> count{};
    std::optional<KnownAddress> address{};
    std::optional<ContextFields> context{};
};
/// ETE: the P0 instruction at this address was taken.
struct SourceAddress {
    KnownAddress place;
};
struct Mark {
    flow::Mark mark;
};

}  // namespace element

using Element = std::variant<element::Address, element::Context, element::TraceOn, element::TraceInfo,
                             element::Exception, element::ExceptionReturn, element::FunctionReturn, element::Timestamp,
                             element::CycleCount, element::Q, element::SourceAddress, element::Mark>;
using ElementKind = follow::WaitingKind;

/// The effects of a packet on waiting elements (section 8), in the order of execution.
struct Request {
    std::uint64_t commit{}, cancel{};
    std::optional<element::CycleCount> count{};  ///< placed after committed elements, before all waiting ones
    bool mispredict{};
    bool impossible{};  ///< the packet is impossible here: an exception, or a Q, has no address
};

// ---- the one place where packets' values become values of `flow`

[[nodiscard]] inline flow::Context to_flow(const ContextFields& fields, const flow::Context& before,
                                           const Config& config) {
    flow::Context out;
    out.ns = fields.ns;
    out.nse = fields.nse;
    out.hyp = fields.el == 2 && config.profile != CoreProfile::m;
    out.aarch64 = fields.sf;
    out.el = fields.el;
    // Identifiers that are not sent keep their values.
    out.context_id = fields.has_context_id && config.context_id_bytes != 0 ? fields.context_id : before.context_id;
    out.vmid = fields.has_vmid && config.vmid_bytes != 0 ? fields.vmid : before.vmid;
    return out;
}
[[nodiscard]] inline flow::Exception to_flow(const element::Exception& e, const Config& config) {
    return {&exception_type(e.type, config), {}, {}, flow::no_cycles};
}

[[nodiscard]] inline flow::Cycles flow_of(const element::CycleCount& e) {
    return {.cycles = e.cycles, .of = flow::Cycles::Of::flow, .threshold = e.threshold};
}

[[nodiscard]] inline flow::Mark mark_of(const Event& p) { return {flow::Mark::Kind::unit_events, p.events, 0}; }
[[nodiscard]] inline flow::Mark mark_of(const Instrumentation& p) {
    return {flow::Mark::Kind::instrumentation, p.value, p.el};
}

/// The return address of an M profile exception without one: it was tail-chained (section 9).
inline constexpr std::uint64_t no_return_address = 0xffff'fffe;

[[nodiscard]] inline follow::Rules rules(const Config& config) {
    follow::Rules rules;
    rules.walk.most_bytes = config.max_walk_bytes;
    rules.walk.decode.wait_waypoints = config.wfx_p0;
    rules.walk.decode.transaction_start_waypoints = config.ete();
    rules.return_stack = config.return_stack;
    rules.indirect = follow::Rules::Indirect::waits;
    rules.report_exception_returns = config.ete();
    return rules;
}

// ---- step 4: packets → elements

/// Adds the elements of each packet to `queue`, which has add(at, outcomes) and add(at, kind, element), and returns the
/// packet's effects on waiting elements. Takes the packets of a stream in order, beginning with the first Trace Info;
/// that packet, Discard and Overflow are handled by the decoder itself.
class Assembler {
public:
    explicit Assembler(const Config& config) : config_(config), state_(config) {}

    /// The first Trace Info after a loss of synchronisation.
    void begin(const TraceInfo& p) { state_(p); }
    void forget() {
        state_(Gap{});
        pending_.reset();
    }

    /// The offset of the packet of an exception or a Q that waits for its address; nullopt if none waits.
    [[nodiscard]] std::optional<Offset> pending() const {
        return pending_ ? std::optional(pending_->at) : std::nullopt;
    }

    template <class Queue>
    Request operator()(const Atom& p, Offset at, Queue& queue) {
        return add_atoms(p.atoms, at, queue);
    }
    template <class Queue>
    Request operator()(const AddressPacket auto& p, Offset at, Queue& queue) {
        return address(*state_(p).address, nullptr, at, queue);
    }
    template <class Queue>
    Request operator()(const AddressWithContext& p, Offset at, Queue& queue) {
        return address(*state_(p).address, &p, at, queue);
    }
    template <class Queue>
    Request operator()(const Context& p, Offset at, Queue& queue) {
        if (!p.has_payload) return {};
        if (pending_)
            std::visit([&](auto& waits) { waits.context = p; }, pending_->element);
        else
            queue.add(at, ElementKind::dropped, element::Context{p});
        return {};
    }
    template <class Queue>
    Request operator()(const SourceAddressPacket auto& p, Offset at, Queue& queue) {
        return add_p0(element::SourceAddress{*state_(p).address}, at, queue);
    }
    template <class Queue>
    Request operator()(const Q& p, Offset at, Queue& queue) {
        element::Q q;
        if (p.has_count()) q.count = p.count;
        q.address = state_(p).address;
        if (q.address) return add_p0(q, at, queue);
        if (pending_) return {.impossible = true};
        pending_ = Pending{at, q};
        return {};
    }
    template <class Queue>
    Request operator()(const Exception& p, Offset at, Queue& queue) {
        state_(p);
        if (pending_) return {.impossible = true};
        if (p.is_transaction_failure(config_))
            return add(ElementKind::dropped, mark(flow::Mark::Kind::transaction_failed), at, queue);
        element::Exception e{.type = static_cast<std::uint16_t>(p.type()), .at_branch_target = p.at_branch_target()};
        if (p.is_pe_reset(config_)) return add_p0(e, at, queue);
        pending_ = Pending{at, e};
        return {};
    }
    template <class Queue>
    Request operator()(const ExceptionReturn&, Offset at, Queue& queue) {
        // An exception is a P0 element in all cores of the M profile (section 9).
        const bool p0 = config_.profile == CoreProfile::m;
        if (pending_) return {.impossible = true};
        return add(p0 ? ElementKind::p0 : ElementKind::dropped, element::ExceptionReturn{}, at, queue);
    }
    template <class Queue>
    Request operator()(const FunctionReturn&, Offset at, Queue& queue) {
        return add_p0(element::FunctionReturn{}, at, queue);
    }
    template <class Queue>
    Request operator()(const TraceOn&, Offset at, Queue& queue) {
        if (pending_) return {.impossible = true};
        return add(ElementKind::dropped, element::TraceOn{}, at, queue);
    }
    template <class Queue>
    Request operator()(const TraceInfo& p, Offset at, Queue& queue) {
        state_(p);
        return add(ElementKind::kept, element::TraceInfo{}, at, queue);
    }
    template <class Queue>
    Request operator()(const Timestamp& p, Offset at, Queue& queue) {
        return add(ElementKind::kept, element::Timestamp{timestamp(p)}, at, queue);
    }
    template <class Queue>
    Request operator()(const TimestampMarker&, Offset at, Queue& queue) {
        return add(ElementKind::kept, mark(flow::Mark::Kind::timestamp_marker), at, queue);
    }
    template <class Queue>
    Request operator()(const CycleCountPacket auto& p, Offset, Queue&) {
        return cycle_count(state_.count(p));
    }
    template <class Queue>
    Request operator()(const OneOf<Event, Instrumentation> auto& p, Offset at, Queue& queue) {
        return add(ElementKind::kept, element::Mark{mark_of(p)}, at, queue);
    }
    template <class Queue>
    Request operator()(const TransactionStart&, Offset at, Queue& queue) {
        if (pending_) return {.impossible = true};
        return add(config_.transaction_start_p0 ? ElementKind::p0 : ElementKind::dropped,
                   mark(flow::Mark::Kind::transaction_started), at, queue);
    }
    template <class Queue>
    Request operator()(const TransactionCommit&, Offset at, Queue& queue) {
        if (pending_) return {.impossible = true};
        return add(ElementKind::dropped, mark(flow::Mark::Kind::transaction_committed), at, queue);
    }

    // Section 8: first the atoms, then the other effects.
    template <class Queue>
    Request operator()(const Commit& p, Offset, Queue&) {
        return {.commit = p.count};
    }
    template <class Queue>
    Request operator()(const CancelF1& p, Offset, Queue&) {
        return {.cancel = p.count, .mispredict = p.mispredict, .impossible = pending_.has_value()};
    }
    template <class Queue>
    Request operator()(const CancelF2& p, Offset at, Queue& queue) {
        Request r = add_atoms(speculation_atoms(p.atoms), at, queue);
        r.cancel = 1;
        r.mispredict = true;
        return r;
    }
    template <class Queue>
    Request operator()(const CancelF3& p, Offset at, Queue& queue) {
        Request r = add_atoms(Atoms{static_cast<std::uint8_t>(p.atom ? 1 : 0), 1}, at, queue);
        r.cancel = p.count + std::uint64_t{2};
        r.mispredict = true;
        return r;
    }
    template <class Queue>
    Request operator()(const Mispredict& p, Offset at, Queue& queue) {
        Request r = add_atoms(speculation_atoms(p.atoms), at, queue);
        r.mispredict = true;
        return r;
    }
    /// Ignore, and packets of data and conditional trace, give no elements.
    template <class Queue>
    Request operator()(const auto&, Offset, Queue&) {
        return {};
    }

    /// The address history, for inner loops that read packets themselves.
    [[nodiscard]] AddressHistory& addresses() { return state_.addresses(); }
    [[nodiscard]] const PacketState& packets() const { return state_; }
    [[nodiscard]] WM_INLINE flow::Timestamp timestamp(const Timestamp& p) {
        const std::uint64_t value = state_.timestamps().take(p.value);
        // 0 means that the unit did not know the time.
        return {.value = value,
                .known = state_.timestamps().known() && value != 0,
                .cycles = p.has_cycles ? state_.cycles(p) : flow::no_cycles,
                .counted_again = true};
    }

    struct Pending {
        Offset at;
        std::variant<element::Exception, element::Q> element;
    };
    struct State {
        PacketState packets;
        std::optional<Pending> pending;
    };
    [[nodiscard]] State snapshot() const { return {state_, pending_}; }
    void resume(const State& state) {
        state_ = state.packets;
        pending_ = state.pending;
    }

private:
    static element::Mark mark(flow::Mark::Kind kind, std::uint64_t value = 0) {
        return {{.kind = kind, .value = value, .level = 0}};
    }
    template <class Queue>
    Request add(ElementKind kind, Element element, Offset at, Queue& queue) {
        queue.add(at, kind, std::move(element));
        return {};
    }
    template <class Queue>
    Request add_p0(Element element, Offset at, Queue& queue) {
        if (pending_) return {.impossible = true};
        return add(ElementKind::p0, std::move(element), at, queue);
    }
    template <class Queue>
    Request add_atoms(const Atoms& atoms, Offset at, Queue& queue) {
        if (pending_) return {.impossible = true};
        if (atoms.count != 0) queue.add(at, follow::Outcomes{atoms.e, atoms.count});
        return {};
    }
    template <class Queue>
    Request address(const KnownAddress& place, const ContextFields* context, Offset at, Queue& queue) {
        if (!pending_) [[likely]] {
            if (context != nullptr) queue.add(at, ElementKind::dropped, element::Context{*context});
            queue.add(at, ElementKind::address, element::Address{place});
            return {};
        }
        Pending complete = std::move(*pending_);
        pending_.reset();
        std::visit(
            [&](auto& waits) {
                waits.address = place;
                if (context != nullptr) waits.context = *context;
                queue.add(complete.at, ElementKind::p0, waits);
            },
            complete.element);
        return {};
    }
    [[nodiscard]] Request cycle_count(const CycleCount& count) const {
        Request r;
        // Without speculation no element waits to be committed, even if the packet says otherwise.
        if (count.commit && config_.max_speculation != 0) r.commit = *count.commit;
        r.count = element::CycleCount{count.cycles, state_.threshold()};
        return r;
    }

    const Config& config_;
    PacketState state_;
    std::optional<Pending> pending_;
};

/// A Trace Info in a stream that seemed intact can show that it was damaged: an element waits for an address that
/// should have come before, or the number of uncommitted elements differs. Decoding then starts again there.
[[nodiscard]] inline bool contradicts(const TraceInfo& p, const Assembler& assembler, std::uint64_t depth) {
    return assembler.pending() || (p.has_speculation() && p.speculation != depth);
}

// ---- steps 6 to 8: committed elements → flow

/// The state of the core that the follower does not keep.
struct CommittedState {
    flow::Context context;
    KnownAddress last;           ///< the last address
    bool context_known = false;  ///< !need_ctxt
    bool address_waits = false;  ///< `last` came, but not yet the context in which it is to be interpreted
    bool sf = false;             ///< the context is AArch64
    bool overflowed = false;     ///< prev_overflow: the next Trace On follows an overflow
    bool begins = false;         ///< synchronised, and neither a Trace On nor an address came since
    bool may_push = true;        ///< the follower's
    follow::TimeOrder times;
};

/// `Follower`: follow::Follower<Out>.
template <class Follower, class Out>
class Committed : private CommittedState {
public:
    using State = CommittedState;

    /// Everything is borrowed.
    Committed(const Config& config, const isa::CodeReader& code, follow::Elements<Out>& elements, Follower& follower)
        : config_(config), rules_(rules(config)), code_(code), elements_(elements), follower_(follower) {}

    [[nodiscard]] const State& state() const { return *this; }
    void resume(const State& state) { State::operator=(state); }

    /// The first Trace Info after a loss of synchronisation has come.
    void synchronised() { begins = true; }
    /// Waiting elements will never be committed, and the place of execution is unknown. An overflow stays recorded
    /// until the next Trace On.
    void forget() {
        const bool overflow = overflowed;
        State::operator=({});
        overflowed = overflow;
        follower_.forget();
        elements_.forget();
    }
    [[nodiscard]] bool overflow_pending() const { return overflowed; }
    void set_overflow(bool overflow) { overflowed = overflow; }

    WM_INLINE void operator()(Offset at, const follow::Outcomes& outcomes) {
        for (unsigned i = 0; i < outcomes.count; ++i)
            if (!ready(at) || !follower_.atom((outcomes.e >> i & 1U) != 0, at)) [[unlikely]]
                return unplaced(at, outcomes, i);
    }
    void operator()(Offset at, const Element& element) {
        std::visit([&](const auto& e) { commit(at, e); }, element);
    }

    void commit(Offset at, const element::Address& e) {
        last = e.place;
        address_waits = !context_known;
        if (!context_known) return;
        follower_.expect(place_of(last, sf), at);
        go(at);
    }
    void commit(Offset at, const element::Context& e) { set_context(at, e.fields); }
    void commit(Offset at, const element::TraceOn&) {
        begins = address_waits = false;
        follower_.lose();
        elements_.event(at, flow::TraceOn{std::exchange(overflowed, false) ? flow::TraceOnReason::overflow
                                                                           : flow::TraceOnReason::enabled,
                                          flow::no_cycles});
    }
    void commit(Offset, const element::TraceInfo&) {
        follower_.clear_return_stack();
        follower_.forbid_pushes();
        may_push = false;
    }
    void commit(Offset at, const element::ExceptionReturn&) {
        if (const std::optional<Address> other = no_exception_return())
            elements_.event(at, flow::Inconsistency{flow::Conflict::no_exception_return, *other, {}});
        elements_.event(at, flow::ExceptionReturn{});
    }
    void commit(Offset, const element::FunctionReturn&) {}
    void commit(Offset at, const element::Timestamp& e) {
        if (const auto before = times.take(e.timestamp))
            elements_.event(at, flow::Inconsistency{flow::Conflict::time_goes_back, {*before}, {e.timestamp.value}});
        elements_.event(at, e.timestamp);
    }
    /// For inner loops: records a timestamp that needs no more than delivery, which the caller does. Returns false,
    /// without effect, otherwise.
    [[nodiscard]] WM_INLINE bool plain(const flow::Timestamp& timestamp) { return times.plain(timestamp); }
    void commit(Offset at, const element::CycleCount& e) { elements_.event(at, flow_of(e)); }
    void commit(Offset at, const element::Mark& e) {
        if (e.mark.kind == flow::Mark::Kind::transaction_failed) {
            address_waits = false;
            follower_.leave();
        }
        elements_.event(at, e.mark);
    }

    /// Step 8.
    void commit(Offset at, const element::Exception& e) {
        flow::Exception out = to_flow(e, config_);
        if (!e.address) {  // PE reset
            elements_.event(at, out);
            address_waits = false;
            return follower_.lose();
        }
        if (!e.at_branch_target) (void)ready(at);
        if (e.context) set_context(at, *e.context);
        if (config_.profile != CoreProfile::m || e.address->address.value != no_return_address) {
            last = e.address.value();
            const follow::Place to = place_of(last, sf);
            out.preferred_return = whole(last);
            if (e.at_branch_target) {
                if (context_known) {
                    follower_.expect(to, at);
                    go(at);
                }
            } else if (follower_.known()) {
                const Address reached = instruction_of(to);
                if (follower_.place().address != reached) follower_.walk_to(reached, follow::Stop::before, at);
            }
        }
        if (out.preferred_return) follower_.interrupted(*out.preferred_return);
        elements_.event(at, out);
        // The handler's address comes in a separate packet.
        address_waits = false;
        follower_.leave();
    }

    /// Section 10. The path to this element is known only if it needs no outcome.
    void commit(Offset at, const element::Q& e) {
        // The return stack gives the target of an indirect branch before it. Otherwise the target is in the untraced
        // part.
        if (follower_.returns()) (void)follower_.ready(at);
        const bool known = follower_.known();
        last = *e.address;
        const follow::Place to = place_of(last, sf);
        if (!known || !e.count || !follow_count(*e.count, to, at)) {
            const std::uint64_t count = e.count.value_or(0);
            if (known)
                elements_.event(at, flow::Untraced{follower_.place().address, whole(last), count, true});
            else
                elements_.event(at, flow::Untraced{{}, whole(last), count, false});
        }
        follower_.leave();
        if (e.context) set_context(at, *e.context);
        commit(at, element::Address{*e.address});
    }

    /// Section 11. All earlier conditional branches were not taken.
    void commit(Offset at, const element::SourceAddress& e) {
        last = e.place;
        if (!context_known) return elements_.unplaced(at, {.taken = 1, .not_taken = 0});
        const bool known = ready(at);
        follow::Place source = place_of(e.place, sf);
        // IS shows how the address is packed, not the instruction set, which is the same as for the code before.
        if (known) source.isa = follower_.place().isa;
        const isa::Space space = context.space();
        if (isa::fetch(code_, space, source.address, source.isa).bytes == 0) {
            elements_.event(at, flow::NoMemory{source.address});
            return follower_.lose();
        }
        if (known) {
            const Address here = follower_.place().address;
            if (here > source.address)
                elements_.event(at, flow::Inconsistency{flow::Conflict::update_behind, here, source.address});
            else if (follower_.source(source.address, at))
                return;
        }
        // The trace takes precedence: this one instruction was executed.
        begin(at);
        go_to(source, at);
        const follow::Walk one = follow::walk(code_, space, source, rules_.walk);
        if (one.end == follow::WalkEnd::waypoint && one.instructions == 1) {
            follower_.atom(true, at);
            return;
        }
        elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, one.last, source.address});
        elements_.event(at, flow::Reached{source.address});
        follower_.lose();
    }

    /// Section 6: the instruction set follows from the context; IS distinguishes A32 and T32.
    [[nodiscard]] WM_INLINE static follow::Place place_of(const KnownAddress& place, bool a64) {
        if (a64) return {place.address, isa::Isa::a64};
        return {{place.address.value & 0xffff'ffffU}, place.is1 ? isa::Isa::t32 : isa::Isa::a32};
    }
    /// For inner loops: an address packet came, and the caller applies its effect to the follower.
    WM_INLINE follow::Place moved_to(const KnownAddress& place) {
        last = place;
        return place_of(place, sf);
    }

private:
    /// The place is known, or follows from the return stack. A unit that sends Q elements and has no return stack omits
    /// addresses before a Q element, which is not a contradiction.
    WM_INLINE bool ready(Offset at) {
        if (config_.q_elements && !config_.return_stack) return follower_.known();
        return follower_.ready(at);
    }
    void begin(Offset at) {
        if (std::exchange(begins, false))
            elements_.event(at, flow::TraceOn{flow::TraceOnReason::begin, flow::no_cycles});
    }
    /// Execution continues at `last`.
    void go(Offset at) {
        begin(at);
        may_push = true;
        // Loads and stores are not decoded: an atom may belong to any of them, and cannot be placed.
        if (config_.p0_loads || config_.p0_stores) [[unlikely]]
            return elements_.context(at, context);
        follower_.go(place_of(last, sf), context, at);
    }
    /// No address element confirms this place, so pushes stay forbidden if they are forbidden now.
    void go_to(const follow::Place& place, Offset at) {
        follower_.go(place, context, at);
        if (!may_push) follower_.forbid_pushes();
    }
    /// An address with all its bits, for a context in which the width of addresses is not known.
    [[nodiscard]] Address whole(const KnownAddress& place) const {
        return context_known ? place_of(place, sf).address : place.address;
    }
    void set_context(Offset at, const ContextFields& fields) {
        begin(at);
        const bool width_changes = context_known && fields.sf != sf;
        context = to_flow(fields, context, config_);
        context_known = true;
        sf = fields.sf;
        if (std::exchange(address_waits, false)) return go(at);
        follower_.set_context(context, at);
        // The place stays the same; IS of the last address distinguishes A32 and T32.
        if (width_changes && follower_.known())
            go_to(place_of({.address = follower_.place().address, .is1 = last.is1}, sf), at);
    }
    /// The last taken branch, unless it is an exception return. Units may send the target of a branch first; then the
    /// branch is not known here.
    [[nodiscard]] std::optional<Address> no_exception_return() const {
        const std::optional<follow::Place> branch = follower_.branch_that_waits();
        // In the M profile any branch to EXC_RETURN is an exception return.
        if (!branch || config_.profile == CoreProfile::m) return {};
        const auto i = isa::decode_at(code_, context.space(), branch->address, branch->isa, rules_.walk.decode);
        return i && !i->exception_return ? std::optional(branch->address) : std::nullopt;
    }
    void unplaced(Offset at, const follow::Outcomes& outcomes, unsigned from) {
        address_waits = false;  // execution has left the place
        flow::Atoms count;
        for (unsigned i = from; i < outcomes.count; ++i)
            ++((outcomes.e >> i & 1U) != 0 ? count.taken : count.not_taken);
        elements_.unplaced(at, count);
    }

    /// The beginning of the instruction that is executed again on return to `to`. A core of the M profile may interrupt
    /// a load or store of several registers, and gives an address within it: the rest of the instruction is executed on
    /// return.
    [[nodiscard]] Address instruction_of(const follow::Place& to) const {
        const follow::Place from = follower_.place();
        if (config_.profile != CoreProfile::m || to.isa != isa::Isa::t32 || to.address <= from.address)
            return to.address;
        const follow::Walk way =
            follow::walk_to(code_, context.space(), from, to.address, follow::Stop::before, rules_.walk);
        const bool within =
            way.end == follow::WalkEnd::passed && way.instruction.bytes == 4 && way.last.value + 2 == to.address.value;
        return within ? way.last : to.address;
    }

    /// Follows exactly `count` instructions to `to`, if only the last one may need an outcome. False: nothing was done.
    bool follow_count(std::uint64_t count, const follow::Place& to, Offset at) {
        const isa::Space space = context.space();
        // Barriers on the path, then a walk that ends with a branch or between two branches.
        unsigned barriers = 0;
        follow::Place from = follower_.place();
        follow::Walk walked;
        std::uint64_t bytes = 0;
        for (;; ++barriers) {
            if (count == 0 || bytes > rules_.walk.most_bytes) return false;
            walked = follow::walk(code_, space, from, rules_.walk);
            bytes += walked.bytes;
            if (walked.end != follow::WalkEnd::waypoint || walked.instructions >= count ||
                walked.instruction.waypoint != isa::Waypoint::barrier)
                break;
            count -= walked.instructions;
            from = {walked.after, from.isa};
        }
        const bool ends = walked.end == follow::WalkEnd::waypoint && walked.instructions == count;
        if (!ends) {
            if (walked.instructions < count || to.address < from.address || to.isa != from.isa) return false;
            const follow::Walk part =
                follow::walk_to(code_, space, from, to.address, follow::Stop::before, rules_.walk);
            if (part.end != follow::WalkEnd::arrived || part.instructions != count) return false;
        }
        // An instruction that is not a branch leads to the next instruction only.
        if (ends && walked.instruction.waypoint == isa::Waypoint::barrier &&
            to != follow::Place{walked.after, from.isa})
            return false;
        // If a branch leads to the next instruction, it cannot be seen whether it was taken.
        if (ends && walked.instruction.conditional && walked.instruction.target == walked.after) return false;
        for (unsigned i = 0; i < barriers; ++i) follower_.atom(true, at);
        const bool passes = ends && walked.instruction.conditional && walked.after == to.address;
        if (!ends)
            follower_.walk_to(to.address, follow::Stop::before, at);
        else if (walked.instruction.waypoint == isa::Waypoint::barrier || passes)
            follower_.atom(!passes, at);
        else
            // Within a Q element nothing is pushed on the return stack.
            follower_.branch(to, at, flow::no_cycles, false);
        return true;
    }

    const Config& config_;
    const follow::Rules rules_;
    const isa::CodeReader& code_;
    follow::Elements<Out>& elements_;
    Follower& follower_;
};

// ---- synchronisation (steps 1 to 3)

/// Tracks the bytes without results, because the stream is not synchronised: after a gap, Discard, Overflow or an
/// impossible packet, up to the next A-sync and Trace Info.
class Synchronisation {
public:
    enum class State : std::uint8_t { searching, waits_for_info, synchronised };  ///< WAIT_SYNC, WAIT_TINFO, DECODE

    [[nodiscard]] bool synchronised() const { return state_ == State::synchronised; }
    [[nodiscard]] bool waits_for_info() const { return state_ == State::waits_for_info; }
    /// The first byte that is not yet reported as lost.
    [[nodiscard]] std::optional<Offset> lost_first() const {
        return synchronised() ? std::nullopt : std::optional(first_);
    }

    void lose(Offset first, GapReason reason) {
        state_ = State::searching;
        first_ = first;
        reason_ = reason;
    }
    /// Reports the lost bytes before `end`, if there are any: `report(gap)`.
    template <class Report>
    void lost_until(Offset end, Report&& report) {
        if (!synchronised() && first_ < end) report(Gap{first_, end, reason_});
        first_ = end;
    }
    template <class Report>
    void async(Extent at, Report&& report) {
        if (state_ != State::searching) return;
        lost_until(at.first, report);
        state_ = State::waits_for_info;
        reason_ = GapReason::unsynchronised;
        first_ = at.end();
    }
    template <class Report>
    void info(Extent at, Report&& report) {
        lost_until(at.first, report);
        state_ = State::synchronised;
    }
    /// A packet that is delivered although the stream waits for a Trace Info.
    template <class Report>
    void taken(Extent at, Report&& report) {
        lost_until(at.first, report);
        first_ = at.end();
    }
    /// Begins inside a stream.
    void resume_synchronised() { state_ = State::synchronised; }

private:
    State state_ = State::searching;
    Offset first_{};
    GapReason reason_ = GapReason::unsynchronised;
};

}  // namespace waymark::etm4
