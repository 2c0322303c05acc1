/// Who called whom, from program flow. A stack of calls for each Context ID, and the tree of all that was on it.
///
/// The rules, for flow that arrives at an address A:
///
/// - Behind a taken branch that leaves a return address: a call. Its frame waits for that address.
/// - Behind a return: the topmost frame that waits for A is left, with all above it; but one above that whose function
///   A lies in is where flow goes on instead. So longjmp and returns that were not traced unwind several frames. Of
///   several frames of one function, longjmp goes to the topmost one in which setjmp (or the like, by name) returned to
///   A; a frame that has called _Unwind_Resume is done. Where no symbol names A, the function of the frame of which
///   the nearest address up to A is known (where it was entered, where it called from) is the one that A lies in. Where
///   no frame fits, A is in the caller of all that is known: the tree so far hangs below it. But if a function begins
///   at A, it is a branch like any other.
/// - An indirect branch into the middle of a function that has a frame, other than on top, goes on in that frame in the
///   same way: that is how handlers of C++ exceptions are entered.
/// - A return that leaves more than the topmost frame may be one of a coroutine that gives way. The frames above the
///   lowest one that was left are kept aside with it. A return, or a branch into the middle of a function, to where no
///   frame waits, but one kept aside does, takes them up again: they replace the function that switched.
///   Of several that wait for one address, that is the one that has waited longest.
/// - After any other branch into another function: a tail call. Its frame lies on that of the function that jumped, and
///   waits for what that waits for: both are left by one return, and nothing else comes back to the lower one. Amid a
///   function that has led here by tail calls alone, that function goes on. Of more than CallStacks::most_tails on one
///   another, each replaces the last.
/// - An exception puts a frame on the stack that waits for the preferred return address, and the handler above it.
///   Behind an exception return, the topmost such frame is left; if A is not what it waits for, flow resumes as below.
/// - A change of Context ID parks the stack and takes up the other's; flow resumes there.
/// - Behind lost flow it resumes: in the topmost frame that waits for A or whose function A lies in; where there is
///   none, the stack starts anew with a function whose caller is not known. Where tracing was only switched off for a
///   while (TraceOn, enabled) and A is where a function begins, that was called by whatever is on top: also at the
///   first time, where nothing was traced before. On top of an exception it is a signal handler, or a handler whose
///   vector is not traced.
///
/// A fork does not know the stack its part begins with (call_stacks.h).
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

/// Where flow is, and what branches, events and losses mean for the stacks of calls.
class FlowCalls {
public:
    using Limits = CallStacks::Limits;
    using Tree = CallStacks::Tree;
    using LeftOut = CallStacks::LeftOut;

    /// `code` is borrowed. `open`: what came before is not known, and will be (a fork).
    FlowCalls(FlowCode& code, bool open, const Limits& limits);
    explicit FlowCalls(FlowCode& code, bool open = false) : FlowCalls(code, open, Limits{}) {}

    /// A fork's first.
    void begin_at(const flow::Context& context) { stacks_.use({context.context_id, context.vmid}); }
    void consume(const flow::Batch& batch, FlowCounts& counts);
    /// Takes in what came next. `fork` is of no use after it.
    void join(FlowCalls& fork, FlowCounts& counts);
    /// The end of the stream: all calls end. Not for forks.
    void finish(FlowCounts& counts);
    /// The end of the stream, but not of the thread, whose next stream `next` is to decode: all stacks go on there, as
    /// after tracing was switched off. Before `finish`, and before anything else of `next`.
    void hand_over(FlowCalls& next, FlowCounts& counts);
    /// Calls that streams before this one made and handed over: FlowCounts::carried has what passed until they
    /// returned.
    [[nodiscard]] const std::vector<CarriedCall>& carried() const { return stacks_.carried(); }

    /// After `finish`: by Context ID, in the order of their first sight.
    [[nodiscard]] std::vector<Tree> trees() const { return stacks_.trees(); }
    /// After `finish`: what ran at each exception level.
    [[nodiscard]] const FlowLevels& levels() const { return levels_; }

    /// What there was no room for.
    [[nodiscard]] const LeftOut& left_out() const { return stacks_.left_out(); }
    /// Number of repeats (flow::Repeat) that were taken as one.
    [[nodiscard]] std::uint64_t repeated() const { return stacks_.repeated(); }
    void observe(CallObserver* observer) { stacks_.observe(observer); }
    /// Instructions and cycles so far, of all stacks and of lost flow.
    [[nodiscard]] Work now() const { return stacks_.now() + run_; }

private:
    using Go = CallStacks::Go;
    /// What the last range or event leads to.
    enum class Wait : std::uint8_t { no, call, function_return, exception_return, jump, leaves, vector };

    static constexpr std::uint64_t nothing = CallStacks::nothing;
    static constexpr std::uint32_t no_edge = CallStacks::no_edge;

    void ranges(const flow::Batch& batch, std::size_t from, std::size_t to, FlowCounts& counts);
    void repeat(const flow::Batch& batch, std::span<const flow::Repeat> repeats, FlowCounts& counts);
    [[nodiscard]] static Wait wait_of(Effect effect);
    void event(const flow::What& what, FlowCounts& counts);
    void exception(const flow::Exception& e, FlowCounts& counts);
    void lose(bool switched_off, FlowCounts& counts, bool amid = false);
    void change_context(const flow::Context& context, FlowCounts& counts);
    Wait end_wait(bool lost, FlowCounts& counts);
    void go_on_anywhere();
    void wait_behind(std::uint32_t edge, Effect effect, const flow::Block& block);
    /// Flow goes on behind what ran last.
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

    FlowCode& code_;
    bool open_;
    CallStacks stacks_;

    // Where flow is.
    bool plain_ = false;  // nothing to do but count: all below is as if it were not there
    Wait wait_ = Wait::no;
    std::uint32_t wait_edge_ = no_edge;    // the edge after which calls wait
    std::uint64_t wait_return_ = nothing;  // a call's return address
    std::uint64_t wait_to_ = nothing;      // where it leads, if that is known; a vector
    bool indirect_ = false;
    bool lost_ = true, switched_off_ = false, switched_stack_ = false;
    bool untouched_ = true;              // nothing has been traced, and nothing lost
    bool handed_over_ = false;           // nothing has arrived since a source before handed its stacks over
    Loss loss_;                          // while lost
    std::uint32_t last_edge_ = no_edge;  // of the last range, while nothing came between
    Work run_;                           // not yet on a stack
    FlowLevels levels_;

    // A fork's beginning, up to its first range.
    std::vector<flow::What> early_;
    std::optional<Arrival> first_;
};

}  // namespace waymark::analysis
