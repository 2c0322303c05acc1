/// Follows execution through a program by the information in a trace: outcomes of waypoint instructions, addresses,
/// exceptions, contexts. A protocol's decoder turns packets into these calls; ranges and events go to its output.
///
/// Follower is the fast one, with a cache of blocks. ReferenceFollower (reference_follower.h) has the same calls, walks
/// the program again each time, and gives the same elements.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "waymark/follow/block_caches.h"
#include "waymark/follow/elements.h"
#include "waymark/follow/return_stack.h"

namespace waymark::follow {

/// Why flow is unknown after a walk that reached no waypoint. Precondition: the walk reached none.
[[nodiscard]] flow::What why_lost(WalkEnd end, Address after);

/// The known state of execution.
struct FollowerState {
    flow::Context context{};
    Place place{};       ///< where execution is, if `known`
    bool known = false;  ///< the place is known
    bool pop_due =
        false;  ///< Rules::Indirect::waits: an indirect branch was taken, and no packet has named its target yet
    bool may_push = true;  ///< see Follower::forbid_pushes
    ReturnStack stack{};
};

/// A waypoint instruction that is about to be reported.
struct BranchInstruction {
    Address address{};
    bool exception_return{};
};

template <class Out>
class Follower {
public:
    using State = FollowerState;

    /// `code` and `elements` are borrowed and must outlive it. `logs`: shared by several followers of the same stream.
    Follower(const Rules& rules, const isa::CodeReader& code, Elements<Out>& elements,
             std::shared_ptr<BlockLogs> logs = {})
        : rules_(rules),
          code_(code),
          elements_(elements),
          out_(elements.out()),
          caches_(rules, code, std::move(logs)) {}

    // ---- state

    /// Whether the place of execution is known.
    [[nodiscard]] WM_INLINE bool known() const { return state_.known; }
    /// Whether the place of execution is known, or follows from the return stack: call it before an outcome or an
    /// exception with Rules::Indirect::waits.
    [[nodiscard]] bool ready(Offset at) {
        if (state_.pop_due) [[unlikely]]
            pop(at);
        return state_.known;
    }
    /// The last taken indirect branch, if no packet has given its target yet (Rules::Indirect::waits).
    [[nodiscard]] std::optional<Place> branch_that_waits() const {
        return state_.pop_due ? std::optional(state_.place) : std::nullopt;
    }
    /// Whether an indirect branch was taken, no packet has given its target, and the return stack has one.
    [[nodiscard]] bool returns() const { return state_.pop_due && !state_.stack.empty(); }
    /// The place of execution. Precondition: known().
    [[nodiscard]] Place place() const { return at_ < 0 ? state_.place : cache_->node(at_).start(); }
    [[nodiscard]] const flow::Context& context() const { return state_.context; }

    // ---- reports of the trace

    /// The next waypoint instruction has executed (`e`: taken, or a barrier that executed) or not. Returns false if it
    /// cannot be placed; then flow is unknown. Precondition: known().
    WM_INLINE bool atom(bool e, Offset at, std::uint32_t cycles = flow::no_cycles) {
        const Node& node = here();
        if (!node.passable()) [[unlikely]] {
            give_up(node, at);
            return false;
        }
        if (!e && node.always_taken) [[unlikely]] {
            elements_.event(at, flow::Inconsistency{flow::Conflict::always_taken, node.last().address, {}});
            lose();
            return false;
        }
        out_.range(node.edge | (e ? 1U : 0U), at, cycles);
        if (e && (node.end == flow::End::indirect || (node.link && rules_.return_stack)))
            take_with_return_stack(node, at);
        else
            follow(node, e);
        return true;
    }

    /// The next waypoint instruction was taken, to the given place; `go` or a context comes next. Returns false if it
    /// cannot be placed. `may_push`: a branch with link is pushed on the return stack. Precondition: known().
    bool branch(const Place& to, Offset at, std::uint32_t cycles = flow::no_cycles, bool may_push = true) {
        const Node& node = here();
        if (!node.passable()) {
            give_up(node, at);
            return false;
        }
        out_.range(node.edge | 1U, at, cycles);
        if (node.end != flow::End::indirect && node.target() != to)
            elements_.event(at, flow::Inconsistency{flow::Conflict::branch_disagrees, node.target_address, to.address});
        if (node.link && may_push && state_.may_push) push({node.after(), state_.context.ns});
        return true;
    }

    /// The waypoint instruction at `source` was taken, and all waypoint instructions between the present place and
    /// `source` were not. Returns false if the path there cannot be followed, which is reported; then flow is unknown.
    /// Precondition: known().
    bool source(Address source, Offset at) {
        const Address from = place().address;
        for (;;) {
            const Node& node = here();
            if (!node.passable()) {
                give_up(node, at);
                return false;
            }
            const Address last = node.last().address;
            if (last == source) return atom(true, at);
            if (last > source || last < from || source.value - from.value > rules_.walk.most_bytes) {
                elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, last, source});
                lose();
                return false;
            }
            if (!atom(false, at)) return false;
        }
    }

    /// The next waypoint instruction, if the path to it is known. Precondition: known().
    [[nodiscard]] std::optional<BranchInstruction> next_branch() {
        const Node& node = here();
        if (!node.passable()) return {};
        return BranchInstruction{node.last().address, node.exception_return};
    }

    /// Execution continues there, in this context.
    void go(const Place& to, const flow::Context& context, Offset at) {
        const bool moved = cache_ == nullptr || context != state_.context;
        state_.context = context;
        state_.known = state_.may_push = true;
        state_.pop_due = false;
        set_place(to);
        if (moved) enter_space();
        elements_.context(at, context);
        if (to.isa == Isa::jazelle) lose();  // units do not trace bytecodes
    }
    /// The place stays; the context changes.
    void set_context(const flow::Context& context, Offset at) {
        if (context != state_.context) {
            if (state_.known) set_place(place());
            state_.context = context;
            enter_space();
        }
        elements_.context(at, context);
    }

    /// An exception interrupted execution: adds the address at which execution would have continued. `go` gives the
    /// handler's place.
    void exception(flow::Exception e, Offset at) {
        if (state_.known) e.preferred_return = place().address;
        if (e.preferred_return) interrupted(*e.preferred_return);
        elements_.event(at, e);
    }
    /// An exception is about to be reported that came before the instruction at this place. If this is the place of
    /// execution, the last branch went there, although nothing ran there.
    void interrupted(Address there) {
        if (!out_.branch_waits() || !state_.known || place().address != there) return;
        const Node& node = here();
        out_.arrived(node.instructions == 0 ? flow::EdgeWay::no_block : node.edge / 2);
    }

    /// Execution has reached `to`, or, with Stop::after, has passed the instruction there, without a waypoint
    /// instruction before it. Without a known place, only reports this.
    void walk_to(Address to, Stop stop, Offset at) {
        if (!state_.known) return elements_.event(at, flow::Reached{to});
        const Place from = place();
        if (to < from.address)
            return elements_.event(at, flow::Inconsistency{flow::Conflict::update_behind, from.address, to});
        // The walk ends at an address, not at a waypoint, so it gets no node.
        const Walk w = follow::walk_to(code_, state_.context.space(), from, to, stop, rules_.walk);
        if (w.instructions != 0) out_.range(out_.table().intern(w.block()) * 2, at);
        if (w.end == WalkEnd::arrived || w.end == WalkEnd::passed) {
            if (w.end == WalkEnd::passed)
                elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, w.last, to});
            return set_place({w.after, from.isa});
        }
        elements_.event(at, why_lost(w.end, w.after));
        lose();
        if (stop == Stop::after) elements_.event(at, flow::Reached{to});
    }

    /// A synchronisation point gives the place and context of execution: reports a difference. The synchronisation
    /// point is assumed to be right; `go` comes next. If nothing was known, nothing is compared.
    void confirm(const Place& to, const flow::Context& context, Offset at) {
        if (!state_.known) return;
        const Place reached = place();
        if (to != reached || (state_.context.context_id && context.context_id != state_.context.context_id))
            elements_.event(at, flow::Inconsistency{flow::Conflict::sync_disagrees, reached.address, to.address});
    }

    /// An address packet gives the place of execution, although no earlier packet leads away from the known place. A
    /// difference is reported, and the flow before it and after it does not belong together; `go` comes next. The
    /// return stack stays: if code was changed while it ran, the unit's own stack stays too.
    void expect(const Place& to, Offset at) {
        if (!state_.known || place() == to) return;
        elements_.event(at, flow::Inconsistency{flow::Conflict::address_disagrees, place().address, to.address});
        leave();
    }

    /// The unit's return stack is empty from here on.
    void clear_return_stack() { state_.stack.clear(); }
    /// Nothing is pushed until `go` gives the place of execution (ETMv4: Trace Info).
    void forbid_pushes() { state_.may_push = false; }
    /// Pushes an entry that is known from elsewhere on the return stack.
    void push(const ReturnStack::Entry& entry) {
        if (rules_.return_stack) state_.stack.push(entry);
    }

    /// The place of execution becomes unknown, and so does the return stack, since a branch with link may be missed.
    void lose() {
        state_.known = state_.pop_due = false;
        at_ = nowhere;
        state_.stack.clear();
    }
    /// Execution has moved to a place that the trace has not given yet; the return stack stays.
    void leave() {
        state_.known = state_.pop_due = false;
        at_ = nowhere;
    }
    /// Resets to the state before the first byte: nothing is known about the core. Keeps the blocks.
    void forget() {
        lose();
        state_ = {};
        cache_ = nullptr;
    }

    // ---- state from which another follower can continue

    [[nodiscard]] State snapshot() const {
        State state = state_;
        if (state.known) state.place = place();
        return state;
    }
    void resume(const State& state) {
        state_ = state;
        at_ = nowhere;
        cache_ = nullptr;
        if (state.known || state.pop_due) enter_space();
    }

    // ---- for inner loops that parse packets themselves, starting at a position

    /// The position from which links can be followed. If it is negative, there is none, and the calls above have to be
    /// used.
    [[nodiscard]] WM_INLINE Position position() const { return at_; }
    /// The same, after looking up the block at the place of execution. If each packet ends with an indirect branch,
    /// this is the only way back to an inner loop.
    [[nodiscard]] WM_INLINE Position find_position() {
        if (at_ < 0 && state_.known)
            if (const Position found = cache_->peek(state_.place); found >= 0) at_ = found;
        return at_;
    }
    /// Precondition: position() >= 0.
    [[nodiscard]] WM_INLINE const BlockCache& cache() const { return *cache_; }
    /// The branch with link at the end of this block was taken: its return address is pushed. Precondition: there is a
    /// return stack, and pushes are not forbidden.
    WM_INLINE void push_call(Position at) { state_.stack.push(return_of(cache_->node(at), at)); }
    /// A taken indirect branch has no address in the trace: returns the position to which it returns. Negative, without
    /// effect, if only `atom` can decide.
    WM_INLINE Position pop_return() {
        const Position called = caller(0);
        if (called < 0) [[unlikely]]
            return nowhere;
        Position to = cache_->return_target(called);
        if (to < 0) [[unlikely]] {
            to = cache_->peek(state_.stack.top().place);
            if (to < 0) return nowhere;
            cache_->link(called, false, to);
        }
        state_.stack.pop();
        return to;
    }
    /// Block of the caller `below` entries under the top of the return stack; negative: the entry belongs to another
    /// memory space, or does not exist.
    [[nodiscard]] WM_INLINE Position caller(std::size_t below) const {
        if (below >= state_.stack.size()) return nowhere;
        const ReturnStack::Entry& entry = state_.stack.top(below);
        return entry.cache == cache_->serial() && entry.ns == state_.context.ns ? entry.call : nowhere;
    }
    /// Whether these calls pushed the newest entries, the newest call first, and the stack has room for `more` entries.
    [[nodiscard]] bool returns_to(std::span<const Position> calls, std::size_t more) const {
        if (state_.stack.size() + more > ReturnStack::depth) return false;
        for (std::size_t i = 0; i < calls.size(); ++i)
            if (caller(i) != calls[i]) return false;
        return true;
    }
    /// Pops `pops` entries, and pushes the entries of these calls.
    void replace_returns(std::size_t pops, std::span<const Position> calls) {
        for (std::size_t i = 0; i < pops; ++i) state_.stack.pop();
        for (const Position at : calls) push_call(at);
    }
    /// Links were followed to a block.
    WM_INLINE void set_position(Position at) { at_ = at; }
    /// Links were followed, and then a packet gave this place, in the same context.
    void set_place(const Place& place) {
        at_ = nowhere;
        state_.place = place;
    }

private:
    [[nodiscard]] const Node& here() {
        return at_ >= 0 ? cache_->node(at_) : cache_->find(state_.place, out_, at_, others());
    }

    /// Continues after a node with an outcome. The first time, it stores the place to which the outcome leads.
    void follow(const Node& from, bool e) {
        Position known = cache_->links()[at_ + (e ? 1 : 0)];
        if (known == call) known = cache_->call_target(at_);
        if (known >= 0) {
            at_ = known;
            return;
        }
        state_.place = e ? from.target() : from.after();
        const Position before = at_;
        cache_->find(state_.place, out_, at_, others());
        if (at_ >= 0) cache_->link(before, e, at_);
    }

    [[nodiscard]] WM_INLINE ReturnStack::Entry return_of(const Node& node, Position at) const {
        return {node.after(), state_.context.ns, at >= 0 ? cache_->serial() : 0, at};
    }

    /// A taken waypoint instruction whose target, or whose own address, concerns the return stack.
    void take_with_return_stack(const Node& node, Offset at) {
        // Following a link may move the nodes.
        const ReturnStack::Entry back = return_of(node, at_);
        const bool pushes = node.link && state_.may_push;
        if (node.end != flow::End::indirect) {
            follow(node, true);
        } else {
            const bool returns = node.exception_return && rules_.report_exception_returns;
            set_place(node.last());
            if (returns) elements_.event(at, flow::ExceptionReturn{});
            if (rules_.indirect == Rules::Indirect::waits) {
                state_.known = false;
                state_.pop_due = true;
            } else if (!pop(at)) {
                return;
            }
        }
        // If a target is awaited, it is also compared with the entry pushed here.
        if (pushes) push(back);
    }
    /// Execution went to the topmost entry of the return stack, from the indirect branch in `place`. Returns false if
    /// there is no entry.
    bool pop(Offset at) {
        state_.pop_due = false;
        if (!rules_.return_stack || state_.stack.empty()) {
            elements_.event(at, flow::Inconsistency{flow::Conflict::no_return_address, state_.place.address, {}});
            lose();
            return false;
        }
        const ReturnStack::Entry entry = state_.stack.pop();
        state_.known = true;
        set_place(entry.place);
        if (entry.ns != state_.context.ns && rules_.indirect == Rules::Indirect::pops) {
            state_.context.ns = entry.ns;
            enter_space();
        }
        elements_.context(at, state_.context);
        return true;
    }

    /// A node that cannot be passed: reports the instructions before the failure, and the failure; flow is unknown.
    void give_up(const Node& at_node, Offset at) {
        const Node node = at_node;
        if (node.instructions != 0) out_.range(node.edge, at);
        elements_.event(at, why_lost(node.walk_end, node.after().address));
        lose();
    }

    void enter_space() {
        cache_ = &caches_.of(code_.view(state_.context.space()));
        cache_->exchange(out_, others());
    }
    [[nodiscard]] auto others() {
        return
            [this](std::uint32_t number) { return cache_->space().number == number ? cache_ : caches_.known(number); };
    }

    const Rules rules_;
    const isa::CodeReader& code_;
    Elements<Out>& elements_;
    Out& out_;
    BlockCaches caches_;

    State state_;
    BlockCache* cache_ = nullptr;  // cache of the context's memory space
    Position at_ = nowhere;        // where execution is, or, if negative, see state_.place
};

}  // namespace waymark::follow
