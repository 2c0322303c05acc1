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
/// - After any other branch into another function: a tail call. The new function replaces the old one.
/// - An exception puts a frame on the stack that waits for the preferred return address, and the handler above it.
///   Behind an exception return, the topmost such frame is left; if A is not what it waits for, flow resumes as below.
/// - A change of Context ID parks the stack and takes up the other's; flow resumes there.
/// - Behind lost flow it resumes: in the topmost frame that waits for A or whose function A lies in; where there is
///   none, the stack starts anew with a function whose caller is not known. Where tracing was only switched off for a
///   while (TraceOn, enabled) and A is where a function begins, that was called by whatever is on top.
///
/// A fork does not know the stack its part begins with. What would look below its own frames is kept as an operation;
/// `join` does these on the stack before, so that one pass and any division into parts give the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/analysis/call_tree.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/analysis/flow_levels.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// Learns of frames as they come and go, and of events in their places among them. `now`: what was done so far. Depth 0
/// is the bottom of the stack.
class CallObserver {
public:
    virtual ~CallObserver() = default;
    virtual void enter(const Work& now, std::uint32_t depth, FunctionId function) = 0;
    /// All frames from this depth on are gone.
    virtual void leave(const Work& now, std::uint32_t depth) = 0;
    /// Another stack is in use; its frames are reported anew with `enter`.
    virtual void switch_to(const Work& now, std::optional<std::uint32_t> context_id) = 0;
    virtual void happened(const Work& now, const flow::Event& event) = 0;
    /// Flow was lost, and is known again from here on; frames that change by it are reported after this.
    virtual void regained(const Work& now) = 0;
};

/// Whose stack: Context ID and VMID.
struct StackKey {
    std::optional<std::uint32_t> context_id, vmid;
    friend auto operator<=>(const StackKey&, const StackKey&) = default;
};

class FlowCalls {
public:
    /// Frames of a stack; below more than these, the lowest are forgotten.
    static constexpr std::size_t most_frames = 4096;
    /// Nodes of the tree of the first Context ID; the n-th may have an n-th part of them, but at least `fewest_nodes`.
    static constexpr std::size_t most_nodes = std::size_t{1} << 18, fewest_nodes = 4096;
    /// Context IDs beyond these share one stack.
    static constexpr std::size_t most_stacks = 256;

    /// Frames that are kept aside, of each stack; beyond, those kept longest are given up.
    static constexpr std::size_t most_aside = 1024;

    struct Limits {
        std::size_t frames = most_frames, nodes = most_nodes, stacks = most_stacks;
    };

    /// `code` is borrowed. `open`: what came before is not known, and will be (a fork).
    FlowCalls(FlowCode& code, bool open, Limits limits);
    explicit FlowCalls(FlowCode& code, bool open = false) : FlowCalls(code, open, Limits{}) {}

    /// A fork's first.
    void begin_at(const flow::Context& context) { context_ = {context.context_id, context.vmid}; }
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
    [[nodiscard]] const std::vector<CarriedCall>& carried() const { return carried_; }

    struct Tree {
        StackKey key;
        const CallTree& tree;  ///< node 0 called all others
    };
    /// After `finish`: by Context ID, in the order of their first sight.
    [[nodiscard]] std::vector<Tree> trees() const;
    /// After `finish`: what ran at each exception level.
    [[nodiscard]] const FlowLevels& levels() const { return levels_; }

    /// What there was no room for.
    struct LeftOut {
        std::uint64_t frames{};    ///< forgotten
        std::uint64_t calls{};     ///< counted as part of their caller
        std::uint64_t contexts{};  ///< changes to a Context ID beyond the limit
    };
    [[nodiscard]] const LeftOut& left_out() const { return left_out_; }
    void observe(CallObserver* observer) { observer_ = observer; }
    /// Instructions and cycles so far, of all stacks and of lost flow.
    [[nodiscard]] Work now() const { return total_ + run_ + stray_; }

private:
    struct Frame {
        std::uint64_t waits_for = nothing;       ///< return address; `nothing`: not known
        std::uint32_t node{}, caller{};          ///< `caller`: the node that called it
        FunctionId function = no_function;       ///< or the section: where flow is
        bool named{};                            ///< it is a function
        std::uint64_t entered = nothing;         ///< where flow entered the function
        std::uint32_t edge = no_edge;            ///< of the call
        std::uint64_t to{};                      ///< the call's
        const flow::ExceptionType* exception{};  ///< of an interrupt; else null
        Work at{};                               ///< on the stack's clock
        std::uint64_t again = nothing;           ///< where setjmp or the like last returned to in it
        bool returns_twice{}, unwinds{};         ///< as Arrival
    };
    /// A frame that is kept aside.
    struct AsideFrame {
        Frame frame;                     ///< `at`: the work done since it was entered
        FunctionId entry = no_function;  ///< its node's
    };
    /// Frames that were left together, the lowest first.
    using Aside = std::vector<AsideFrame>;
    enum class Go : std::uint8_t {
        begin,             ///< whatever is on top goes on
        function_return,   ///< after a return
        exception_return,  ///< after an exception return
        resume,            ///< after lost flow
        take_up,           ///< after a change of context
        jump,              ///< an indirect branch into the middle of another function
        enter,             ///< tracing is on again, at the beginning of a function
        tail,              ///< into another function
        leave              ///< a return to where nobody looked
    };
    struct Operation {
        Go go{};
        Arrival place;
        std::optional<Loss> loss;
    };
    /// What happened above one base of an open stack.
    struct Segment {
        Operation operation;
        std::uint32_t node{};  ///< of the base
        Work work;
        std::size_t peak = 1;  ///< frames, with the base
        /// By peak so far and exception: how often one came when there was no other in the fork's own frames.
        std::map<std::pair<std::size_t, flow::ExceptionType>, std::uint64_t> first_exceptions;
        // At its end:
        std::uint64_t again = nothing;  ///< of the base
        std::vector<Frame> above;       ///< frames above the base
        std::vector<Aside> aside;       ///< what was left within it
        bool aside_given_up = false;    ///< the frames left within it were dropped
    };
    struct Stack {
        std::size_t index{};  ///< in the order of first sight
        CallTree tree;        ///< of what is on the stack and what that called
        std::uint32_t root = 0;
        CallTree settled;  ///< of stacks that were given up
        std::vector<Frame> frames;
        std::size_t bottom = 0;  ///< frames below are forgotten
        std::size_t above = 0;   ///< so many that are forgotten are no longer there
        bool cut = false;        ///< some are forgotten
        std::uint32_t interrupts = 0;
        Work clock;
        std::uint64_t roots_found = 0;
        std::vector<Segment> segments;
        std::vector<Aside> aside;  ///< the one that was left first first
        std::size_t frames_aside = 0;
        bool aside_given_up = false;  ///< some, for lack of room

        [[nodiscard]] bool empty() const { return frames.size() == bottom; }
        [[nodiscard]] std::uint32_t depth(std::size_t frame) const { return static_cast<std::uint32_t>(above + frame); }
    };
    /// What the last range or event leads to.
    enum class Wait : std::uint8_t { no, call, function_return, exception_return, jump, leaves, vector };

    static constexpr std::uint64_t nothing = ~std::uint64_t{0};
    static constexpr std::uint32_t no_edge = ~std::uint32_t{0};

    void ranges(const flow::Batch& batch, std::size_t from, std::size_t to, FlowCounts& counts);
    void event(const flow::What& what, FlowCounts& counts);
    void exception(const flow::Exception& e, FlowCounts& counts);
    void lose(bool switched_off, FlowCounts& counts);
    void change_context(const flow::Context& context, FlowCounts& counts);
    Wait end_wait(bool lost, FlowCounts& counts);
    void go_on_anywhere();
    void wait_behind(std::uint32_t edge, Effect effect, const flow::Block& block);
    void arrive(const Arrival& place, FlowCounts& counts);
    void arrive_behind(Wait wait, const Arrival& place, FlowCounts& counts);
    void add_stray_cycles(std::uint32_t cycles, FlowCounts& counts);
    void add_event_cycles(std::uint32_t cycles, FlowCounts& counts);

    // On the current stack.
    void go(Operation operation, FlowCounts& counts);
    [[nodiscard]] bool go_inside(Operation& operation, FlowCounts& counts);
    [[nodiscard]] bool find_frame(const Operation& operation, FlowCounts& counts);
    [[nodiscard]] std::size_t frame_to_jump_back_to(const Arrival& place) const;
    [[nodiscard]] std::size_t nameless_frame_of(const Operation& operation) const;
    [[nodiscard]] bool is_waited_for_aside(std::uint64_t address) const;
    void go_on_in(std::size_t frame, const Operation& operation, FlowCounts& counts);
    void go_below(const Operation& operation, FlowCounts& counts);
    void keep(const Operation& operation);
    void push(Frame frame, FunctionId function);
    void pop_to(std::size_t size, FlowCounts& counts);
    void return_from(std::size_t frame, FlowCounts& counts);
    [[nodiscard]] Aside put_aside(std::size_t from);
    void keep_aside(Aside frames, FlowCounts& counts);
    void give_up(const Aside& frames, FlowCounts& counts) const;
    [[nodiscard]] bool take_back(const Arrival& place, FlowCounts& counts);
    void drop_bottom(std::size_t count);
    void find_caller(const Arrival& place, FlowCounts& counts);
    void start_anew(const Arrival& place, bool entered, FlowCounts& counts);
    void tail(const Arrival& place);
    void flush();

    void settle(Stack& stack) const;
    [[nodiscard]] Stack& current();
    [[nodiscard]] Stack& stack_of(StackKey key);
    [[nodiscard]] std::size_t room(const Stack& stack) const;
    [[nodiscard]] std::uint32_t child(std::uint32_t parent, FunctionId function, std::uint64_t calls);
    void join_stack(Stack& mine, const Stack& other, bool first, FlowCounts& counts);
    void report_frames();
    void report_entered();
    [[nodiscard]] bool is_just_called(const Arrival& place);
    void take_over(const FlowCalls& from, StackKey key, const Stack& stack, const FlowCounts& counts);

    FlowCode& code_;
    bool open_;
    Limits limits_;
    StackKey context_;
    std::map<StackKey, std::unique_ptr<Stack>> stacks_;
    std::vector<std::pair<StackKey, Stack*>> order_;
    Stack* stack_ = nullptr;
    CallObserver* observer_ = nullptr;

    // Where flow is.
    bool plain_ = false;  // nothing to do but count: all below is as if it were not there
    Wait wait_ = Wait::no;
    std::uint32_t wait_edge_ = no_edge;    // the edge after which calls wait
    std::uint64_t wait_return_ = nothing;  // a call's return address
    std::uint64_t wait_to_ = nothing;      // where it leads, if that is known; a vector
    bool indirect_ = false;
    bool lost_ = true, switched_off_ = false, switched_stack_ = false;
    bool handed_over_ = false;           // nothing has arrived since a source before handed its stacks over
    Loss loss_;                          // while lost
    std::uint32_t last_edge_ = no_edge;  // of the last range, while nothing came between
    Work run_;                           // not yet in a node
    Work total_, stray_;                 // `stray_`: of no code that is known
    FlowLevels levels_;

    // A fork's beginning, up to its first range.
    std::vector<flow::What> early_;
    std::optional<Arrival> first_;
    LeftOut left_out_;
    std::vector<CarriedCall> carried_;
};

}  // namespace waymark::analysis
