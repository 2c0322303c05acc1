/// Builds the call tree from program flow: a stack of calls for each Context ID, and the tree of all calls on it.
///
/// The rules for flow that arrives at an address A:
///
/// - After a taken branch that stores a return address: a call. Its frame waits for that address.
/// - After a return: the topmost frame that waits for A is left, with all frames above it. But if A lies in the
///   function of a frame above that one, flow continues in that frame. So longjmp and returns that were not traced
///   unwind several frames. Among several frames of one function, longjmp continues in the topmost one in which setjmp
///   (or a similar function, by name) returned to A; a frame that has called _Unwind_Resume is finished. If no symbol
///   names A, A belongs to the function of the frame with the nearest known address up to A (where it was entered, or
///   where it called). If no frame fits, A is in the caller of all known frames: the tree so far becomes a child of
///   that caller. But if a function begins at A, the return counts as another branch.
/// - An indirect branch into the middle of a function that has a frame, but not the topmost one, continues in that
///   frame by the same rules: handlers of C++ exceptions are entered like this.
/// - A return that leaves several frames may be the switch of a coroutine. The frames above the lowest one that was
///   left are kept aside, together with that one. A return, or a branch into the middle of a function, may lead to an
///   address for which only a frame kept aside waits. It brings these frames back, and they replace the function that
///   switched. If several frames wait for one address, the one that has waited longest is taken.
/// - After any other branch into another function, and where execution enters another function without a branch, even
///   in the middle of a block: a tail call. Its frame is put on top of the frame of the function that jumped, and waits
///   for the same address: one return leaves both, and flow never comes back to the lower one. If flow arrives in the
///   middle of a function that has reached this place only by tail calls, that function continues. At most
///   CallStacks::most_tails tail calls are stacked; after that, each replaces the last.
/// - An exception pushes a frame that waits for the preferred return address, and the frame of the handler above it. If
///   that address is in the next function, as after a system call, the function is entered when flow returns there.
///   After an exception return, the topmost such frame is left; if it does not wait for A, flow resumes as after a
///   loss. If another exception is chained to the one that ended, its frame takes the place of the first.
/// - A change of Context ID switches to the other stack, and flow resumes there.
/// - After lost flow, it resumes in the topmost frame that waits for A or whose function contains A. If there is none,
///   the stack is cleared and begins with a function whose caller is not known. But if tracing was only switched off
///   for a while (TraceOn, enabled) and a function begins at A, the topmost frame called that function; this also
///   applies to the first flow of a stream. On top of an exception, it is a signal handler, or a handler whose vector
///   is not traced.
///
/// A fork does not know the stack with which its part begins (call_stacks.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "waymark/analysis/call_stacks.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/analysis/flow_levels.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// Tracks the place of flow, and applies branches, events and losses to the stacks of calls.
class FlowCalls {
public:
    using Limits = CallStacks::Limits;
    using Tree = CallStacks::Tree;
    using LeftOut = CallStacks::LeftOut;

    /// `code` is borrowed. `open`: the earlier flow is not known yet, but will be (a fork).
    FlowCalls(FlowCode& code, bool open, const Limits& limits);
    explicit FlowCalls(FlowCode& code, bool open = false) : FlowCalls(code, open, Limits{}) {}

    /// A fork's first.
    void begin_at(const flow::Context& context) { stacks_.use({context.context_id, context.vmid}); }
    void consume(const flow::Batch& batch, FlowCounts& counts);
    /// Joins the flow that follows. `fork` cannot be used afterwards.
    void join(FlowCalls& fork, FlowCounts& counts);
    /// The end of the stream: all calls end. Not for forks.
    void finish(FlowCounts& counts);
    /// The stream ends, but its thread continues in `next`, which will decode the thread's next stream. All stacks
    /// continue there, as after tracing was switched off. Call it before `finish`, and before any other use of `next`.
    void hand_over(FlowCalls& next, FlowCounts& counts);
    /// The contents of the stacks, for `begin_from`; nullopt if flow is not inside a function.
    [[nodiscard]] std::optional<KeptCalls> keep(const FlowCounts& counts);
    /// Continues from the place where `keep` was called, in this context. Call it before anything is consumed. `last`:
    /// the number that the block KeptCalls::last has in the stream to come, which `counts` has reached; or nothing.
    void begin_from(const KeptCalls& kept, std::optional<std::uint32_t> last, const flow::Context& context,
                    FlowCounts& counts);
    /// Clears all counts and the calls that have ended; the stacks stay. `context`: the current one.
    void count_anew(const flow::Context& context, FlowCounts& counts);
    /// Calls that earlier streams made and handed over: FlowCounts::carried has their costs until they returned.
    [[nodiscard]] const std::vector<CarriedCall>& carried() const { return stacks_.carried(); }

    /// After `finish`: by Context ID, in order of first occurrence.
    [[nodiscard]] std::vector<Tree> trees() const { return stacks_.trees(); }
    /// After `finish`: work at each exception level.
    [[nodiscard]] const FlowLevels& levels() const { return levels_; }

    /// Numbers of what was left out, because there was no room.
    [[nodiscard]] const LeftOut& left_out() const { return stacks_.left_out(); }
    /// Number of repeats (flow::Repeat) that were applied in one step.
    [[nodiscard]] std::uint64_t repeated() const { return stacks_.repeated(); }
    void observe(CallObserver* observer) { stacks_.observe(observer); }
    /// Instructions and cycles so far, of all stacks and of lost flow.
    [[nodiscard]] Work now() const { return stacks_.now() + run_; }

private:
    using Go = CallStacks::Go;
    /// The effect of the last range or event.
    enum class Wait : std::uint8_t { no, call, function_return, exception_return, jump, leaves, vector };

    static constexpr std::uint64_t nothing = CallStacks::nothing;
    static constexpr std::uint32_t no_edge = CallStacks::no_edge;

    void ranges(const flow::Batch& batch, std::size_t from, std::size_t to, FlowCounts& counts);
    void cross(const flow::Range& range, FlowCounts& counts);
    void repeat(const flow::Batch& batch, std::span<const flow::Repeat> repeats, FlowCounts& counts);
    [[nodiscard]] static Wait wait_of(Effect effect);
    void event(const flow::What& what, FlowCounts& counts);
    void exception(const flow::Exception& e, FlowCounts& counts);
    [[nodiscard]] bool is_chained(const flow::Exception& e) const;
    void lose(bool switched_off, FlowCounts& counts, bool amid = false);
    void change_context(const flow::Context& context, FlowCounts& counts);
    Wait end_wait(bool lost, FlowCounts& counts);
    void go_on_anywhere();
    void wait_behind(std::uint32_t edge, Effect effect, const flow::Block& block);
    /// Flow continues after the last executed instruction.
    [[nodiscard]] bool is_ordinary() const {
        return !(lost_ | switched_off_ | switched_stack_ | handed_over_) && (!open_ || first_);
    }
    void arrive(const Arrival& place, FlowCounts& counts);
    void arrive_anew(const Arrival& place, FlowCounts& counts);
    Wait take_wait(const Arrival& place, FlowCounts& counts);
    void arrive_behind(Wait wait, const Arrival& place, FlowCounts& counts);
    void add_stray_cycles(std::uint64_t cycles, FlowCounts& counts);
    void add_event_cycles(std::uint32_t cycles, FlowCounts& counts);
    void flush();
    [[nodiscard]] std::uint32_t taken_edge(const FlowCounts& counts) const;
    [[nodiscard]] bool falls_on(const FlowCounts& counts) const;

    FlowCode& code_;
    bool open_;
    CallStacks stacks_;

    // The state of flow.
    bool plain_ = false;  // only counting is needed: the state below is unused
    Wait wait_ = Wait::no;
    std::uint32_t wait_edge_ = no_edge;    // the edge after which calls wait
    std::uint64_t wait_return_ = nothing;  // return address of a call
    std::uint64_t wait_to_ = nothing;      // its target, if known; a vector
    bool indirect_ = false;
    bool lost_ = true, switched_off_ = false, switched_stack_ = false;
    bool untouched_ = true;                   // nothing has been traced or lost yet
    bool handed_over_ = false;                // nothing has arrived since an earlier source handed its stacks over
    Loss loss_;                               // while lost
    bool fell_ = false;                       // it began where the next function would have begun without a branch
    std::uint64_t interrupted_at_ = nothing;  // where flow continues after the lost handler
    std::uint32_t last_edge_ = no_edge;       // edge of the last range, if no event followed
    Work run_;                                // work not yet assigned to a stack
    FlowLevels levels_;

    // The beginning of a fork, up to its first range.
    std::vector<flow::What> early_;
    std::optional<Arrival> first_;
};

}  // namespace waymark::analysis
