/// The stacks of calls, one for each Context ID, and the tree of all that was on each: what is on them, and where flow
/// goes on in them when it arrives somewhere. The rules are those of flow_calls.h.
///
/// An open set of stacks (a fork's) does not know what came before. What would look below its own frames is kept as an
/// operation; `join` does these on the stacks before, so that one pass and any division into parts give the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/analysis/call_tree.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
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

/// The stacks of one stream of program flow, and the call trees they leave. One stack is in use at a time.
class CallStacks {
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

    /// Where flow goes on, or what ended there.
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

    static constexpr std::uint64_t nothing = ~std::uint64_t{0};  ///< an address that is not known
    static constexpr std::uint32_t no_edge = ~std::uint32_t{0};

    /// `code` is borrowed. `open`: what came before is not known, and will be (a fork).
    CallStacks(FlowCode& code, bool open, Limits limits) : code_(code), open_(open), limits_(limits) {}

    void observe(CallObserver* observer) { observer_ = observer; }
    [[nodiscard]] CallObserver* observer() const { return observer_; }

    [[nodiscard]] StackKey key() const { return key_; }
    /// From here on, that stack is in use; no frame changes by it.
    void use(StackKey key);
    /// Another stack is in use: its frames are reported to the observer.
    void report_frames();

    /// Work of the entries on top.
    void run(Work work);
    /// Cycles of no code that is known.
    void add_stray_cycles(std::uint32_t cycles) { stray_.cycles += cycles; }
    /// Instructions and cycles so far, of all stacks and of lost flow.
    [[nodiscard]] Work now() const { return total_ + stray_; }

    // On the stack in use.
    /// Flow goes on at the operation's place: leaves or adds frames.
    void go(Operation operation, FlowCounts& counts);
    /// An open stack begins anew at the operation, which is done when it is joined.
    void keep(const Operation& operation);
    /// A call of the function at the place; or, with `nothing` and `no_edge`, the handler of an exception begins there.
    void call(const Arrival& place, std::uint64_t waits_for, std::uint32_t edge);
    /// An exception, whose type is in static storage, interrupts what is on top; it returns to `waits_for`.
    void interrupt(const flow::ExceptionType& exception, std::uint64_t waits_for, FlowCounts& counts);
    /// The topmost frame is that of a call of this place, and nothing has run in it.
    [[nodiscard]] bool is_just_called(const Arrival& place);
    /// Flow is in the function or section.
    [[nodiscard]] bool is_in(FunctionId function);

    /// Takes in what an open set of stacks kept, which began with the stack in use.
    void join(const CallStacks& fork, FlowCounts& counts);
    /// All calls end. Not for open stacks.
    void finish(FlowCounts& counts);
    /// All stacks go on in `next`, of the next source of the thread.
    void hand_over(CallStacks& next, FlowCounts& counts);
    /// Calls that streams before this one made and handed over: FlowCounts::carried has what passed until they
    /// returned.
    [[nodiscard]] const std::vector<CarriedCall>& carried() const { return carried_; }

    struct Tree {
        StackKey key;
        const CallTree& tree;  ///< node 0 called all others
    };
    /// After `finish`: by Context ID, in the order of their first sight.
    [[nodiscard]] std::vector<Tree> trees() const;
    /// What there was no room for.
    struct LeftOut {
        std::uint64_t frames{};    ///< forgotten
        std::uint64_t calls{};     ///< counted as part of their caller
        std::uint64_t contexts{};  ///< changes to a Context ID beyond the limit
    };
    [[nodiscard]] const LeftOut& left_out() const { return left_out_; }

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
        CallTree tree;        ///< of the functions on the stack and their callees
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

    [[nodiscard]] bool go_inside(Operation& operation, FlowCounts& counts);
    [[nodiscard]] bool find_frame(const Operation& operation, FlowCounts& counts);
    [[nodiscard]] std::size_t frame_to_jump_back_to(const Arrival& place) const;
    [[nodiscard]] std::size_t nameless_frame_of(const Operation& operation) const;
    [[nodiscard]] bool is_waited_for_aside(std::uint64_t address) const;
    void go_on_in(std::size_t frame, const Operation& operation, FlowCounts& counts);
    void go_below(const Operation& operation, FlowCounts& counts);
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

    void settle(Stack& stack) const;
    [[nodiscard]] Stack& current();
    [[nodiscard]] Stack& stack_of(StackKey key);
    [[nodiscard]] std::size_t room(const Stack& stack) const;
    [[nodiscard]] std::uint32_t child(std::uint32_t parent, FunctionId function, std::uint64_t calls);
    void join_stack(Stack& mine, const Stack& other, bool first, FlowCounts& counts);
    void report_entered();
    void take_over(const CallStacks& from, StackKey key, const Stack& stack, const FlowCounts& counts);

    FlowCode& code_;
    bool open_;
    Limits limits_;
    StackKey key_;
    std::map<StackKey, std::unique_ptr<Stack>> stacks_;
    std::vector<std::pair<StackKey, Stack*>> order_;
    Stack* stack_ = nullptr;
    CallObserver* observer_ = nullptr;
    Work total_, stray_;  // `stray_`: of no code that is known
    LeftOut left_out_;
    std::vector<CarriedCall> carried_;
};

}  // namespace waymark::analysis
