/// Follows execution like Follower, without a cache: each block is walked when it is executed. Simple, not fast: tests
/// compare the two. The comments on Follower's calls apply here too.
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/flow/blocks.h"
#include "waymark/follow/follower.h"

namespace waymark::follow {

class ReferenceFollower {
public:
    using State = FollowerState;

    /// Everything is borrowed and must outlive it.
    ReferenceFollower(const Rules& rules, const isa::CodeReader& code, Elements<flow::BatchWriter>& elements)
        : rules_(rules), code_(code), elements_(elements), out_(elements.out()) {}

    [[nodiscard]] bool known() const { return state_.known; }
    [[nodiscard]] bool ready(Offset at);
    [[nodiscard]] std::optional<Place> branch_that_waits() const {
        return state_.pop_due ? std::optional(state_.place) : std::nullopt;
    }
    [[nodiscard]] bool returns() const { return state_.pop_due && !state_.stack.empty(); }
    [[nodiscard]] Place place() const { return state_.place; }
    [[nodiscard]] const flow::Context& context() const { return state_.context; }

    bool atom(bool e, Offset at, std::uint32_t cycles = flow::no_cycles);
    bool branch(const Place& to, Offset at, std::uint32_t cycles = flow::no_cycles, bool may_push = true);
    [[nodiscard]] std::optional<BranchInstruction> next_branch() const;
    bool source(Address source, Offset at);
    void go(const Place& to, const flow::Context& context, Offset at);
    void set_context(const flow::Context& context, Offset at);
    void exception(flow::Exception e, Offset at);
    void walk_to(Address to, Stop stop, Offset at);
    void expect(const Place& to, Offset at);
    void confirm(const Place& to, const flow::Context& context, Offset at);

    void clear_return_stack() { state_.stack.clear(); }
    void forbid_pushes() { state_.may_push = false; }
    void interrupted(Address) {}
    void push(const ReturnStack::Entry& entry);
    void lose();
    void leave() { state_.known = state_.pop_due = false; }
    void forget() { state_ = {}; }

    [[nodiscard]] State snapshot() const { return state_; }
    void resume(const State& state) { state_ = state; }

private:
    /// The walk to the next waypoint instruction. If there is none, this is reported, and flow is unknown.
    [[nodiscard]] Walk walk_to_waypoint(Offset at);
    bool pop(Offset at);

    const Rules rules_;
    const isa::CodeReader& code_;
    Elements<flow::BatchWriter>& elements_;
    flow::BatchWriter& out_;
    State state_;
};

}  // namespace waymark::follow
