/// The stacks of calls, one for each Context ID, and the call tree of each: which frames are on a stack, and in which
/// frame flow continues when it arrives at a place. flow_calls.h has the rules.
///
/// An open set of stacks (in a fork) does not know the earlier part of the stream. It stores an operation that needs
/// frames below its own, and `join` applies these operations to the stacks of the earlier part. So a single pass and
/// any division into parts have the same result.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "waymark/analysis/call_tree.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/analysis/kept_calls.h"
#include "waymark/analysis/known_repeats.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// Observes frames as they come and go, and events between them. `now`: work done so far. Depth 0 is the bottom of the
/// stack.
class CallObserver {
public:
    virtual ~CallObserver() = default;
    /// Otherwise calls and returns inside of repeats (flow::Repeat), and ordinary returns, are not reported: counting
    /// then takes no longer than without an observer.
    [[nodiscard]] virtual bool wants_each_call() const { return true; }
    virtual void enter(const Work& now, std::uint32_t depth, FunctionId function) = 0;
    /// All frames from this depth on are gone.
    virtual void leave(const Work& now, std::uint32_t depth) = 0;
    /// Another stack is in use; its frames are reported again with `enter`.
    virtual void switch_to(const Work& now, std::optional<std::uint32_t> context_id) = 0;
    virtual void happened(const Work& now, const flow::Event& event) = 0;
    /// Flow was lost, and is known again from here on; frames that change because of this are reported after this call.
    virtual void regained(const Work& now) = 0;
};

/// The stacks of one stream of program flow, and their call trees. One stack is in use at a time.
class CallStacks {
public:
    /// Maximum number of frames on a stack; the lowest frames beyond are forgotten.
    static constexpr std::size_t most_frames = 4096;
    /// Maximum number of consecutive tail calls; each further one replaces the last.
    static constexpr std::size_t most_tails = 16;
    /// Maximum number of nodes in the tree of the first Context ID. The tree of the n-th Context ID may have an n-th
    /// part of them, but at least `fewest_nodes`.
    static constexpr std::size_t most_nodes = std::size_t{1} << 18, fewest_nodes = 4096;
    /// Context IDs beyond these share one stack.
    static constexpr std::size_t most_stacks = 256;

    /// Maximum number of frames kept aside for each stack. Beyond it, the frames that were kept longest are given up.
    static constexpr std::size_t most_aside = 1024;

    struct Limits {
        std::size_t frames = most_frames, nodes = most_nodes, stacks = most_stacks;
        RepeatMemory repeats{};
    };

    /// How flow continues at a place, or what ended there.
    enum class Go : std::uint8_t {
        begin,             ///< the frame on top continues
        function_return,   ///< after a return
        exception_return,  ///< after an exception return
        resume,            ///< after lost flow
        take_up,           ///< after a change of context
        jump,              ///< an indirect branch into the middle of another function
        enter,             ///< tracing is on again, at the beginning of a function
        tail,              ///< into another function
        leave,             ///< a return to an address at which no frame waits
        chained            ///< an exception return that leads into another exception
    };
    struct Operation {
        Go go{};
        Arrival place;
        std::optional<Loss> loss;
        std::uint32_t edge = CallFrame::no_edge;  ///< for a tail call, the edge of its branch
        bool goes_on =
            false;  ///< after a loss: continue in the most recent call of this place, if nothing has run in it
    };

    static constexpr std::uint64_t nothing = CallFrame::nothing;
    static constexpr std::uint32_t no_edge = CallFrame::no_edge;

    /// `code` is borrowed. `open`: the earlier flow is not known yet, but will be (a fork).
    CallStacks(FlowCode& code, bool open, const Limits& limits)
        : code_(code), open_(open), limits_(limits), repeats_(limits.repeats) {}

    void observe(CallObserver* observer) {
        observer_ = observer;
        reports_each_ = observer != nullptr && observer->wants_each_call();
    }
    /// From here on, everything is counted in `counts`.
    void count_in(const FlowCounts& counts) {
        if (counts_ != &counts) forget_ways();
        counts_ = &counts;
    }
    [[nodiscard]] CallObserver* observer() const { return observer_; }

    [[nodiscard]] StackKey key() const { return key_; }
    /// From here on, that stack is in use; its frames do not change.
    void use(StackKey key);
    /// Another stack is in use: its frames are reported to the observer.
    void report_frames();

    /// Adds the work of the topmost entries.
    void run(const Work& work) {
        Stack& stack = current();
        stack.tree.node(stack.frames.back().node).self += work;
        stack.clock += work;
        total_ += work;
        if (open_) stack.segments.back().work += work;
        if (watched_) [[unlikely]]
            watched_->ran(stack.frames.back().node, work);
    }
    /// Adds work outside of known code.
    void add_stray(const Work& work) { stray_ += work; }
    /// Instructions and cycles so far, of all stacks and of lost flow.
    [[nodiscard]] Work now() const { return total_ + stray_; }

    // Operations on the stack in use.
    /// Flow continues at the operation's place: removes or adds frames.
    void go(Operation operation, FlowCounts& counts);
    /// An open stack begins again with the operation, which is applied when the stack is joined.
    void keep(const Operation& operation);
    /// A call of the function at the place. With `nothing` and `no_edge`: the handler of an exception begins there.
    void call(const Arrival& place, std::uint64_t waits_for, std::uint32_t edge);
    /// The usual case of a return: flow arrives where the topmost frame waits. Otherwise returns false and does
    /// nothing.
    [[nodiscard]] bool returns(const Arrival& place, FlowCounts& counts) {
        Stack& stack = current();
        if (reports_each_ || stack.frames.size() < stack.bottom + 2) return false;
        const Frame& frame = stack.frames.back();
        if (frame.waits_for != place.address || frame.exception != nullptr || frame.returns_twice) return false;
        for (bool tail = true; tail;) {
            const Frame& left = stack.frames.back();
            tail = left.tail && stack.frames.size() > stack.bottom + 2;
            if (left.edge != no_edge) count_return(left, counts);
            if (watched_) [[unlikely]]
                watch_return(left);
            stack.frames.pop_back();
        }
        stack.frames.back().function = place.home;
        stack.frames.back().named = place.entry == place.home;
        return true;
    }
    /// An exception, whose type is in static storage, interrupts the topmost frame and returns to `waits_for`. `falls`:
    /// `waits_for` is in the next function, which execution would enter without a branch. That function is entered when
    /// flow arrives there.
    void interrupt(const flow::ExceptionType& exception, std::uint64_t waits_for, bool falls, FlowCounts& counts);
    /// Whether flow is in the function or section.
    [[nodiscard]] bool is_in(FunctionId function) {
        const Stack& stack = current();
        return !stack.empty() && stack.frames.back().function == function;
    }

    // Repeats (flow::Repeat), for stacks that are not open, if nobody observes each call.
    [[nodiscard]] bool remembers_repeats() const { return !open_ && !reports_each_ && !repeats_.none(); }
    /// Applies the known effects of these consecutive repeats, as far as they are known for this state of the stack.
    /// `behind`: the edge of the branch that is applied before the first repeat, and then before the flow that follows;
    /// or `no_edge`. Returns the number of repeats applied.
    [[nodiscard]] std::size_t repeat(std::span<const flow::Repeat> repeats, std::uint32_t& behind, FlowCounts& counts);
    /// Whether the next repeat is to be remembered.
    [[nodiscard]] bool is_watching() const { return watched_ != nullptr; }
    /// An indirect branch led to an address.
    void watch_way(std::uint32_t edge, std::uint64_t to) {
        if (watched_) [[unlikely]]
            watched_->went({edge, to});
    }
    /// Number of repeats whose effects were applied from memory.
    [[nodiscard]] std::uint64_t repeated() const { return repeats_.hits(); }
    /// Remembers that the whole repeat was applied. It consists of these ranges, without the branch of the edge
    /// `behind`, if there is one.
    void remember(std::span<const flow::Range> ranges, std::uint32_t behind, FlowCounts& counts);

    /// Joins what an open set of stacks stored, which began with the stack in use.
    void join(const CallStacks& fork, FlowCounts& counts);
    /// All calls end. Not for open stacks.
    void finish(FlowCounts& counts);
    /// All stacks continue in `next`, which belongs to the next source of the thread.
    void hand_over(CallStacks& next, FlowCounts& counts);
    /// A copy of all stacks, for `take_up`. Not for open stacks.
    [[nodiscard]] KeptStacks keep() const;
    /// Replaces all stacks by the kept ones; all counts begin at zero. No frame is reported.
    void take_up(const KeptStacks& kept);
    /// Reports the frames of the stack in use to the observer, without a change of stacks if it is the first one.
    void report_first_frames() {
        if (key_ == StackKey{})
            report_entered();
        else
            report_frames();
    }
    /// Calls that earlier streams made and handed over: FlowCounts::carried has their costs until they returned.
    [[nodiscard]] const std::vector<CarriedCall>& carried() const { return carried_; }

    struct Tree {
        StackKey key;
        const CallTree& tree;  ///< node 0 is the root
    };
    /// After `finish`: by Context ID, in order of first occurrence.
    [[nodiscard]] std::vector<Tree> trees() const;
    /// Numbers of what was left out, because there was no room.
    struct LeftOut {
        std::uint64_t frames{};    ///< forgotten
        std::uint64_t calls{};     ///< calls counted as part of their caller
        std::uint64_t contexts{};  ///< changes to a Context ID beyond the limit
    };
    [[nodiscard]] const LeftOut& left_out() const { return left_out_; }

private:
    using Frame = CallFrame;
    /// A stack of frames.
    class Frames {
    public:
        [[nodiscard]] std::size_t size() const { return size_; }
        [[nodiscard]] Frame& operator[](std::size_t i) { return all_[i]; }
        [[nodiscard]] const Frame& operator[](std::size_t i) const { return all_[i]; }
        [[nodiscard]] Frame& front() { return all_.front(); }
        [[nodiscard]] Frame& back() { return all_[size_ - 1]; }
        [[nodiscard]] const Frame& back() const { return all_[size_ - 1]; }
        Frame& push_back(const Frame& frame) {
            make_room(1);
            return all_[size_++] = frame;
        }
        Frame& emplace_back() {
            make_room(1);
            // A copy with few moves: clearing a frame in place takes an instruction that is slow to start.
            static const Frame empty{};
            return all_[size_++] = empty;
        }
        void pop_back() { --size_; }
        void clear() { size_ = 0; }
        void erase_first(std::size_t count) {
            std::move(all_.begin() + static_cast<std::ptrdiff_t>(count),
                      all_.begin() + static_cast<std::ptrdiff_t>(size_), all_.begin());
            size_ -= count;
        }
        /// Makes room for `more` entries above the topmost one. The caller may write them, and then counts them with
        /// `set_size`.
        void make_room(std::size_t more) {
            if (size_ + more > all_.size()) [[unlikely]]
                all_.resize(std::max(2 * all_.size(), size_ + more));
        }
        void set_size(std::size_t size) { size_ = size; }

    private:
        std::vector<Frame> all_ = std::vector<Frame>(16);
        std::size_t size_ = 0;
    };
    /// A frame that is kept aside.
    struct AsideFrame {
        Frame frame;                     ///< `at`: the work done since entering the frame
        FunctionId entry = no_function;  ///< its node's
        Entered how{};                   ///< its node's
    };
    /// Frames that were left together, the lowest first.
    using Aside = std::vector<AsideFrame>;
    /// Everything that happened above one base of an open stack.
    struct Segment {
        Operation operation;
        std::uint32_t node{};  ///< of the base
        Work work;
        std::size_t peak = 1;  ///< number of frames, including the base
        /// Number of times that each exception occurred while the fork had no frames of its own, by exception and by
        /// peak so far.
        std::map<std::pair<std::size_t, flow::ExceptionType>, std::uint64_t> first_exceptions;
        // Values at the end of the segment:
        std::uint64_t again = nothing;  ///< of the base
        std::vector<Frame> above;       ///< frames left within the segment
        std::vector<Aside> aside;       ///< number of frames left within it
        bool aside_given_up = false;    ///< frames left within the segment were dropped
    };
    /// Work done so far. Its members are stored apart: one load of both members would wait for the store of a single
    /// one.
    struct Clock {
        std::uint64_t instructions = 0, apart = 0, cycles = 0;
        operator Work() const { return {instructions, cycles}; }
        Clock& operator+=(const Work& work) {
            instructions += work.instructions;
            if (work.cycles != 0) cycles += work.cycles;
            return *this;
        }
    };
    struct Stack {
        std::size_t index{};     ///< in order of first occurrence
        std::uint64_t serial{};  ///< number of the present tree; settling makes a new one
        CallTree tree;           ///< of functions on the stack and their callees
        std::uint32_t root = 0;
        CallTree settled;  ///< of stacks that were given up
        Frames frames;
        std::size_t bottom = 0;  ///< frames below are forgotten
        std::size_t above = 0;   ///< forgotten frames that were also erased from `frames`
        bool cut = false;        ///< some are forgotten
        std::uint32_t interrupts = 0;
        Clock clock;
        std::uint64_t roots_found = 0;
        std::vector<Segment> segments;
        std::vector<Aside> aside;  ///< in the order in which they were left
        std::size_t frames_aside = 0;
        bool aside_given_up = false;  ///< frames were dropped for lack of room

        [[nodiscard]] bool empty() const { return frames.size() == bottom; }
        [[nodiscard]] std::uint32_t depth(std::size_t frame) const { return static_cast<std::uint32_t>(above + frame); }
    };

    [[nodiscard]] bool is_just_called(const Arrival& place) const;
    [[nodiscard]] bool go_inside(Operation& operation, FlowCounts& counts);
    [[nodiscard]] bool find_frame(const Operation& operation, FlowCounts& counts);
    [[nodiscard]] std::size_t frame_to_jump_back_to(const Arrival& place) const;
    [[nodiscard]] std::size_t nameless_frame_of(const Operation& operation) const;
    [[nodiscard]] bool is_waited_for_aside(std::uint64_t address) const;
    void go_on_in(std::size_t frame, const Operation& operation, FlowCounts& counts);
    void go_below(const Operation& operation, FlowCounts& counts);
    Frame& push(FunctionId function, const flow::ExceptionType* exception = nullptr, Entered how = Entered::by_call,
                std::uint64_t calls = 1);
    void count_return(const Frame& frame, FlowCounts& counts) {
        if (WaySum* way = frame.way != 0 ? &counts.sum(frame.way) : counts.way(frame.edge, frame.to)) {
            ++way->returns;
            way->inclusive += stack_->clock - frame.at;
        } else {
            ++counts.ways_left_out;  // counted as a return, and with its cost
        }
    }
    void pop_to(std::size_t size, FlowCounts& counts);
    void return_from(std::size_t frame, bool lost, FlowCounts& counts);
    [[nodiscard]] Aside put_aside(std::size_t from);
    void keep_aside(Aside frames, FlowCounts& counts);
    void give_up(const Aside& frames, FlowCounts& counts) const;
    [[nodiscard]] bool take_back(const Arrival& place, FlowCounts& counts);
    void drop_bottom(std::size_t count);
    void find_caller(const Arrival& place, FlowCounts& counts);
    void start_anew(const Arrival& place, bool entered, FlowCounts& counts);
    void tail(const Operation& operation, FlowCounts& counts);
    void replace(const Arrival& place);
    /// The lowest of the frames that return together with this one.
    [[nodiscard]] std::size_t chain_of(std::size_t frame) const {
        while (frame > stack_->bottom && stack_->frames[frame].tail) --frame;
        return frame;
    }
    /// A tail call has left the frame: flow does not return to it.
    [[nodiscard]] bool is_left(std::size_t frame) const {
        return frame + 1 < stack_->frames.size() && stack_->frames[frame + 1].tail;
    }

    [[nodiscard]] WM_INLINE static bool fits(const Frame& frame, const KnownRepeat::Pop& pop) {
        return frame.waits_for == pop.waits_for && frame.caller == pop.caller && frame.exception == nullptr &&
               !frame.returns_twice && frame.tail == pop.tail;
    }
    /// Whether the frames that the repeat removes exist, and no frame would be forgotten.
    [[nodiscard]] WM_INLINE bool fits(const KnownRepeat& known) const {
        const Stack& stack = *stack_;
        const std::size_t depth = stack.frames.size() - stack.bottom;
        if (depth <= known.pops || depth + known.rise > limits_.frames) return false;
        if (known.pops == 0 && !known.replaced) return true;
        const Frame* frame = &stack.frames.back();
        if (known.pops != 0 && !fits(*frame--, known.popped)) return false;
        if (known.pops <= 1 && !known.replaced) return true;
        const KnownRepeat::Rest& rest = repeats_.rest(known);
        for (std::size_t i = 1; i < known.pops; ++i)
            if (!fits(*frame--, rest.popped[i - 1])) return false;
        return !known.replaced || frame->caller == rest.caller;
    }
    /// Applies the remembered effect to the frames, if they are in the same state as when it was remembered.
    [[nodiscard]] bool take(const KnownRepeat& known, FlowCounts& counts) {
        if (!fits(known)) return false;
        Stack& stack = *stack_;
        const Work before = stack.clock;
        if (known.pops != 0) {
            take_off(before, known.popped, counts);
            for (std::size_t i = 1; i < known.pops; ++i) take_off(before, repeats_.rest(known).popped[i - 1], counts);
        }
        Frame& top = stack.frames.back();
        top.function = known.function;
        top.named = known.named;
        if (known.replaced) [[unlikely]] {
            const KnownRepeat::Rest& rest = repeats_.rest(known);
            top.node = rest.node;
            top.entered = rest.entered;
            top.nameless = false;
            top.unwinds |= rest.unwinds;
        }
        if (known.pushes != 0) {
            put_on(before, known.pushed);
            for (std::size_t i = 1; i < known.pushes; ++i) put_on(before, repeats_.rest(known).pushed[i - 1]);
        }
        stack.clock.instructions = before.instructions + known.instructions;
        return true;
    }
    WM_INLINE void take_off(const Work& before, const KnownRepeat::Pop& pop, FlowCounts& counts) {
        Stack& stack = *stack_;
        stack.clock.instructions = before.instructions + pop.at;
        if (const Frame& frame = stack.frames.back(); frame.edge != no_edge) count_return(frame, counts);
        stack.frames.pop_back();
    }
    WM_INLINE void put_on(const Work& before, const Frame& known) {
        Frame& frame = stack_->frames.push_back(known);
        frame.at.instructions = before.instructions + known.at.instructions;
        frame.at.cycles = before.cycles;
        if (frame.tail) take_on(frame, stack_->frames[stack_->frames.size() - 2]);
    }
    /// Copies the members that a tail call keeps.
    WM_INLINE static void take_on(Frame& frame, const Frame& below) {
        frame.waits_for = below.waits_for;
        frame.returns_twice = below.returns_twice;
        frame.unwinds = below.unwinds;
    }
    void add(const KnownRepeat& known, const KnownRepeat::Rest& rest, FlowCounts& counts);
    void watch_return(const Frame& frame);
    void forget_ways();

    void settle(Stack& stack, FlowCounts& counts);
    [[nodiscard]] Stack& current() {
        if (stack_ == nullptr) [[unlikely]]
            stack_ = &stack_of(key_);
        return *stack_;
    }
    [[nodiscard]] Stack& stack_of(StackKey key);
    [[nodiscard]] std::size_t room(const Stack& stack) const;
    [[nodiscard]] std::uint32_t child(std::uint32_t parent, FunctionId function, Entered how, std::uint64_t calls);
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
    bool reports_each_ = false;
    Work total_, stray_;  // `stray_`: work outside of known code
    LeftOut left_out_;
    std::vector<CarriedCall> carried_;
    std::set<flow::ExceptionType> kept_exceptions_;  // exceptions to which frames taken up from other stacks point
    std::uint64_t serials_ = 0;
    const FlowCounts* counts_ = nullptr;  // the counts in which ways of frames are numbered
    KnownRepeats repeats_;
    std::unique_ptr<WatchedRepeat> watched_;  // set while a repeat is to be remembered
};

}  // namespace waymark::analysis
