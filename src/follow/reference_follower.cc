#include "waymark/follow/reference_follower.h"

namespace waymark::follow {

using isa::Waypoint;

bool ReferenceFollower::ready(Offset at) {
    if (state_.pop_due) pop(at);
    return state_.known;
}

bool ReferenceFollower::atom(bool e, Offset at, std::uint32_t cycles) {
    const Walk walked = walk_to_waypoint(at);
    if (walked.end != WalkEnd::waypoint) return false;
    if (!e && always_taken(walked, code_, state_.context.space())) {
        elements_.event(at, flow::Inconsistency{flow::Conflict::always_taken, walked.last, {}});
        lose();
        return false;
    }
    out_.range(out_.table().intern(walked.block()) * 2 + (e ? 1U : 0U), at, cycles);
    const isa::Instruction& instruction = walked.instruction;
    const Place next{walked.after, walked.start.isa};
    if (!e) {
        state_.place = next;
        return true;
    }
    const ReturnStack::Entry back{next, state_.context.ns};
    const bool pushes = instruction.link && state_.may_push;
    if (instruction.waypoint != Waypoint::indirect) {
        state_.place = {instruction.target, instruction.target_isa};
        if (pushes) push(back);
        return true;
    }
    // Events that name the branch need its address.
    state_.place = {walked.last, walked.start.isa};
    if (instruction.exception_return && rules_.report_exception_returns) elements_.event(at, flow::ExceptionReturn{});
    if (rules_.indirect == Rules::Indirect::waits) {
        if (pushes) push(back);
        state_.known = false;
        state_.pop_due = true;
    } else if (pop(at) && pushes) {
        push(back);
    }
    return true;
}

bool ReferenceFollower::branch(const Place& to, Offset at, std::uint32_t cycles, bool may_push) {
    const Walk walked = walk_to_waypoint(at);
    if (walked.end != WalkEnd::waypoint) return false;
    out_.range(out_.table().intern(walked.block()) * 2 + 1, at, cycles);
    const isa::Instruction& instruction = walked.instruction;
    if (instruction.waypoint != Waypoint::indirect &&
        (instruction.target != to.address || instruction.target_isa != to.isa))
        elements_.event(at, flow::Inconsistency{flow::Conflict::branch_disagrees, instruction.target, to.address});
    if (instruction.link && may_push && state_.may_push) push({{walked.after, walked.start.isa}, state_.context.ns});
    return true;
}

std::optional<BranchInstruction> ReferenceFollower::next_branch() const {
    const Walk ahead = walk(code_, state_.context.space(), state_.place, rules_.walk);
    if (ahead.end != WalkEnd::waypoint) return {};
    return BranchInstruction{ahead.last, ahead.instruction.exception_return};
}

bool ReferenceFollower::source(Address source, Offset at) {
    const Address from = state_.place.address;
    for (;;) {
        const Walk ahead = walk(code_, state_.context.space(), state_.place, rules_.walk);
        if (ahead.end == WalkEnd::waypoint && ahead.last == source) return atom(true, at);
        if (ahead.end == WalkEnd::waypoint &&
            (ahead.last > source || ahead.last < from || source.value - from.value > rules_.walk.most_bytes)) {
            elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, ahead.last, source});
            lose();
            return false;
        }
        if (!atom(false, at)) return false;
    }
}

void ReferenceFollower::go(const Place& to, const flow::Context& context, Offset at) {
    state_.place = to;
    state_.context = context;
    state_.known = state_.may_push = true;
    state_.pop_due = false;
    elements_.context(at, context);
    if (to.isa == Isa::jazelle) lose();
}

void ReferenceFollower::set_context(const flow::Context& context, Offset at) {
    state_.context = context;
    elements_.context(at, context);
}

void ReferenceFollower::exception(flow::Exception e, Offset at) {
    if (state_.known) e.preferred_return = state_.place.address;
    elements_.event(at, e);
}

void ReferenceFollower::walk_to(Address to, Stop stop, Offset at) {
    if (!state_.known) return elements_.event(at, flow::Reached{to});
    if (to < state_.place.address)
        return elements_.event(at, flow::Inconsistency{flow::Conflict::update_behind, state_.place.address, to});
    const Walk w = follow::walk_to(code_, state_.context.space(), state_.place, to, stop, rules_.walk);
    if (w.instructions != 0) out_.range(out_.table().intern(w.block()) * 2, at);
    state_.place.address = w.after;
    if (w.end == WalkEnd::arrived) return;
    if (w.end == WalkEnd::passed)
        return elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, w.last, to});
    elements_.event(at, why_lost(w.end, w.after));
    lose();
    if (stop == Stop::after) elements_.event(at, flow::Reached{to});
}

void ReferenceFollower::confirm(const Place& to, const flow::Context& context, Offset at) {
    if (!state_.known) return;
    const flow::Context& now = state_.context;
    if (to != state_.place || (now.context_id && context.context_id != now.context_id))
        elements_.event(at, flow::Inconsistency{flow::Conflict::sync_disagrees, state_.place.address, to.address});
}

void ReferenceFollower::expect(const Place& to, Offset at) {
    if (!state_.known || to == state_.place) return;
    elements_.event(at, flow::Inconsistency{flow::Conflict::address_disagrees, state_.place.address, to.address});
    leave();
}

void ReferenceFollower::push(const ReturnStack::Entry& entry) {
    if (rules_.return_stack) state_.stack.push(entry);
}

void ReferenceFollower::lose() {
    state_.known = state_.pop_due = false;
    state_.stack.clear();
}

Walk ReferenceFollower::walk_to_waypoint(Offset at) {
    Walk walked = walk(code_, state_.context.space(), state_.place, rules_.walk);
    if (walked.end != WalkEnd::waypoint) {
        if (walked.instructions != 0) out_.range(out_.table().intern(walked.block()) * 2, at);
        elements_.event(at, why_lost(walked.end, walked.after));
        lose();
    }
    return walked;
}

bool ReferenceFollower::pop(Offset at) {
    state_.pop_due = false;
    if (!rules_.return_stack || state_.stack.empty()) {
        elements_.event(at, flow::Inconsistency{flow::Conflict::no_return_address, state_.place.address, {}});
        lose();
        return false;
    }
    const ReturnStack::Entry entry = state_.stack.pop();
    state_.known = true;
    state_.place = entry.place;
    if (rules_.indirect == Rules::Indirect::pops) state_.context.ns = entry.ns;
    elements_.context(at, state_.context);
    return true;
}

}  // namespace waymark::follow
