/// Inserts events into a decoder's output, each in its place: the part that all protocols share.
#pragma once

#include <optional>
#include <utility>

#include "waymark/flow/blocks.h"

namespace waymark::follow {

/// `Out` is flow::BatchWriter or flow::CountWriter, borrowed.
template <class Out>
class Elements {
public:
    explicit Elements(Out& out) : out_(out) {}

    [[nodiscard]] Out& out() { return out_; }

    void event(Offset at, flow::What what) {
        report_unplaced();
        out_.event(at, std::move(what));
    }

    /// Adds outcomes that cannot be placed. Consecutive packets with such outcomes become one event.
    void unplaced(Offset at, const flow::Atoms& atoms) {
        if (!any_unplaced()) state_.unplaced_first = at;
        state_.unplaced.taken += atoms.taken;
        state_.unplaced.not_taken += atoms.not_taken;
    }
    /// Offset of the first packet whose outcomes are not yet delivered.
    [[nodiscard]] std::optional<Offset> unplaced_first() const {
        return any_unplaced() ? std::optional(state_.unplaced_first) : std::nullopt;
    }

    /// Reports the context if it has changed.
    void context(Offset at, const flow::Context& now) {
        report_unplaced();
        if (state_.context == now) return;
        state_.context = now;
        event(at, now);
    }

    /// The reported context is not valid for the elements that follow.
    void forget() {
        report_unplaced();
        state_.context.reset();
    }

    /// The reported state, as far as later elements depend on it.
    struct State {
        std::optional<flow::Context> context;
        flow::Atoms unplaced{};
        Offset unplaced_first{};
    };
    [[nodiscard]] const State& state() const { return state_; }
    void resume(const State& state) { state_ = state; }

private:
    [[nodiscard]] bool any_unplaced() const { return (state_.unplaced.taken | state_.unplaced.not_taken) != 0; }
    void report_unplaced() {
        if (!any_unplaced()) [[likely]]
            return;
        out_.event(state_.unplaced_first, std::exchange(state_.unplaced, {}));
    }

    Out& out_;
    State state_;
};

}  // namespace waymark::follow
