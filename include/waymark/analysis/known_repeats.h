/// What repeats (flow::Repeat) do to a stack of calls, remembered: which frames they take off and put on, and all they
/// add to sums. One that comes again where the stack is as it was then costs one addition; the sums are made of that
/// later. CallStacks learns what a repeat does while it is done step by step.
///
/// Where a repeat begins decides all it does, together with the frames that it takes off: what these wait for, and who
/// called them. So it is remembered by its number, the node and the function of the frame on top, and the branch that
/// leads into it where what that does is not done yet; frames below are compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "waymark/analysis/call_tree.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/core/types.h"

namespace waymark::analysis {

/// A call, or an exception, that is on a stack.
struct CallFrame {
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};  ///< an address that is not known
    static constexpr std::uint32_t no_edge = ~std::uint32_t{0};

    std::uint64_t waits_for = nothing;       ///< return address; `nothing`: not known
    std::uint32_t node{}, caller{};          ///< `caller`: the node that called it
    FunctionId function = no_function;       ///< or the section: where flow is
    std::uint32_t edge = no_edge;            ///< of the call
    std::uint32_t way = 0;                   ///< the call's (FlowCounts::known_way); 0: not known
    bool named{};                            ///< `function` is a function
    bool returns_twice{}, unwinds{};         ///< as Arrival
    bool tail{};                             ///< by a tail call of the frame below, which it returns with
    bool nameless{};                         ///< whose frame it is, is not known: the root's, at the bottom
    std::uint64_t entered = nothing;         ///< where flow entered the function
    std::uint64_t to{};                      ///< the call's
    const flow::ExceptionType* exception{};  ///< of an interrupt; else null
    Work at{};                               ///< on the stack's clock
    std::uint64_t again = nothing;           ///< where setjmp or the like last returned to in it
};

/// How repeats are kept.
struct RepeatMemory {
    unsigned log2_size = 10;  ///< 1 to 14: the logarithm of how many
    bool eager = false;       ///< remember at first sight, and never give up asking
    bool none = false;
};

/// A repeat from one state of a stack on. Only what nearly all do has a place here: calls, returns to where the frame
/// on top waits, and functions that replace another.
struct alignas(64) KnownRepeat {
    static constexpr std::size_t most_pops = 4, most_pushes = 4, most_visits = 8, most_turns = 8, most_edges = 24;
    struct Begin {
        std::uint64_t number = 0;  ///< the repeat's
        std::uint64_t tree = 0;    ///< serial number of the tree that nodes are of; 0: nothing is remembered
        std::uint32_t behind{};    ///< an edge whose branch led to the repeat, which is not done yet; or none
        std::uint32_t node{};      ///< of the frame on top
        FunctionId function{};     ///< where flow is in it
        /// One comparison.
        friend bool operator==(const Begin& a, const Begin& b) {
            return ((a.number ^ b.number) | (a.tree ^ b.tree) | (a.behind ^ b.behind) | (a.node ^ b.node) |
                    (a.function ^ b.function)) == 0;
        }
    };
    /// A frame that was there and is returned from.
    struct Pop {
        std::uint64_t waits_for{};
        std::uint32_t caller{};
        std::uint32_t at{};  ///< number of instructions before it
        bool tail{};
    };
    /// What is added to a node.
    struct Visit {
        std::uint32_t node{}, calls{};
        std::uint64_t instructions{};
    };
    /// What is added to a way.
    struct Turn {
        Way way;
        std::uint32_t times{}, returns{};
        std::uint64_t inclusive{};
    };

    Begin begin;
    std::uint64_t times = 0;       ///< that are not in the sums yet
    std::uint32_t instructions{};  ///< of all its ranges
    FunctionId function{};         ///< where flow is at the end in the topmost of the frames that were there
    std::uint32_t leads{};         ///< its last edge, if the branch of that is still to be done; or none
    std::uint32_t last_node{};     ///< of the frame on top at the end
    FunctionId last_function{};    ///< where flow is in it
    bool named{}, replaced{};      ///< of that frame: `function` is one, and has replaced its own
    bool simple{};                 ///< no more than one pop and push each, and nothing is replaced
    bool listed = false;
    std::uint8_t rise{};  ///< highest stack height inside the repeat, relative to its start
    std::uint8_t pops{}, pushes{};
    Pop popped{};        ///< the first one
    CallFrame pushed{};  ///< the first one that is there at the end; `at`: number of instructions before its push

    /// What is not read each time.
    struct Rest {
        std::array<Pop, most_pops - 1> popped{};
        std::array<CallFrame, most_pushes - 1> pushed{};
        // Of the frame where `function` has replaced its own.
        std::uint32_t node{}, caller{};
        std::uint64_t entered{};
        bool unwinds{};  ///< one that replaced it does
        std::uint8_t visits{}, turns{}, edges{};
        std::uint8_t left_out{};  ///< calls for which the tree has no room
        std::array<std::uint32_t, most_edges> edge{};
        std::array<Visit, most_visits> visit{};
        std::array<Turn, most_turns> turn{};
        CallTree* tree{};
    };
};

/// A number of them that does not grow: each in the slot of its beginning, where it displaces another.
class KnownRepeats {
public:
    explicit KnownRepeats(const RepeatMemory& options) : options_(options) {}

    [[nodiscard]] bool none() const { return options_.none; }
    /// Whether to ask now: where few are known, asking is given up for a while.
    [[nodiscard]] bool asks() {
        if (rest_ == 0) return true;
        --rest_;
        return false;
    }
    /// What is remembered of the beginning; null: nothing.
    [[nodiscard]] WM_INLINE KnownRepeat* find(const KnownRepeat::Begin& begin) {
        KnownRepeat* const known = known_.data() + (hash(begin) >> shift_);
        return known->begin == begin ? known : nullptr;
    }
    /// It is done once more.
    WM_INLINE void count(KnownRepeat& known) {
        if (known.times++ == 0 && !known.listed) [[unlikely]] {
            known.listed = true;
            counted_.push_back(slot(known));
        }
    }
    void add_hits(std::uint64_t hits) { hits_ += hits; }
    /// Numbers of ways are others from here on.
    void forget_ways() {
        for (KnownRepeat& known : known_) known.pushed.way = 0;
        for (KnownRepeat::Rest& rest : rests_)
            for (CallFrame& frame : rest.pushed) frame.way = 0;
    }
    /// Repeats that were done as before.
    [[nodiscard]] std::uint64_t hits() const { return hits_; }
    [[nodiscard]] KnownRepeat::Rest& rest(const KnownRepeat& known) { return rests_[slot(known)]; }
    [[nodiscard]] const KnownRepeat::Rest& rest(const KnownRepeat& known) const { return rests_[slot(known)]; }
    /// Find found none that fits. Whether the repeat is to be remembered.
    [[nodiscard]] bool missed(const KnownRepeat::Begin& begin);
    /// Remembers it. Calls add(known, rest) for the one that it displaces, if that was done since its times were taken.
    template <class Add>
    void put(const KnownRepeat& known, const KnownRepeat::Rest& rest, const Add& add) {
        const std::size_t i = hash(known.begin) >> shift_;
        KnownRepeat& slot = known_[i];
        if (slot.times != 0) add(slot, rests_[i]);
        const bool listed = slot.listed;
        slot = known;
        slot.listed = listed;
        rests_[i] = rest;
    }
    /// Calls add(known, rest) for the tree's repeats that were done since the last call.
    template <class Add>
    void take_counted(std::uint64_t tree, const Add& add) {
        std::size_t kept = 0;
        for (const std::uint32_t i : counted_) {
            KnownRepeat& known = known_[i];
            if (known.begin.tree != tree && known.times != 0) {
                counted_[kept++] = i;
                continue;
            }
            known.listed = false;
            if (known.times != 0) add(known, rests_[i]);
            known.times = 0;
        }
        counted_.resize(kept);
    }

private:
    /// After `misses_judged` misses the tries are judged: if fewer than a third of them were hits, the next
    /// `least_rest` to `most_rest` repeats are not looked up.
    static constexpr std::size_t misses_judged = 1024, least_rest = 4096, most_rest = std::size_t{1} << 18;

    [[nodiscard]] static std::uint64_t hash(const KnownRepeat::Begin& begin) {
        return begin.number * 0xd6e8feb86659fd93U +
               (std::uint64_t{begin.node} << 32 | begin.behind) * 0x9e3779b97f4a7c15U;
    }

    [[nodiscard]] std::uint32_t slot(const KnownRepeat& known) const {
        return static_cast<std::uint32_t>(&known - known_.data());
    }

    const RepeatMemory options_;
    std::vector<KnownRepeat> known_ = std::vector<KnownRepeat>(2);
    std::vector<KnownRepeat::Rest> rests_;
    std::vector<std::uint16_t> missed_;   // tags of those missed last, four for each slot
    std::vector<std::uint32_t> counted_;  // where times are not 0, or were not
    unsigned shift_ = 63;
    std::uint64_t hits_ = 0, hits_judged_ = 0;  // all; up to when tries were judged last
    std::size_t misses_ = 0, rest_ = 0, next_rest_ = 0;
};

/// What a repeat does, as it is learnt step by step.
class WatchedRepeat {
public:
    /// `frames`: on the stack, when `clock` instructions were done there.
    WatchedRepeat(const KnownRepeat::Begin& begin, CallTree& tree, std::size_t frames, std::uint64_t clock)
        : first_(frames), base_(frames), clock_(clock) {
        known_.begin = begin;
        rest_.tree = &tree;
    }
    /// It does something that is not remembered.
    void give_up() { given_up_ = true; }
    [[nodiscard]] bool given_up() const { return given_up_; }

    void ran(std::uint32_t node, const Work& work);
    void called(std::uint32_t node);
    void left_out() { ++rest_.left_out; }
    /// `frames` are on the stack with it.
    void pushed(std::size_t frames) {
        if (frames > first_ && frames - first_ > known_.rise) known_.rise = static_cast<std::uint8_t>(frames - first_);
    }
    /// A call within the repeat returned.
    void returned(const Way& way, std::uint64_t instructions) {
        KnownRepeat::Turn& t = turn(way);
        ++t.returns;
        t.inclusive += instructions;
    }
    /// A frame that was there before the repeat returns; `frames` are left.
    void popped(std::size_t frames, const KnownRepeat::Pop& pop);
    /// A function has replaced the function of the topmost of `frames` frames.
    void replaced(std::size_t frames, const Arrival& by) {
        if (by.returns_twice) return give_up();
        if (frames > base_) return;
        known_.replaced = true;
        rest_.unwinds |= by.unwinds;
    }
    /// A branch went there.
    void went(const Way& way) { turn(way).times += 1; }

    /// Number of the first frames that are still there at the end.
    [[nodiscard]] std::size_t base() const { return base_; }
    [[nodiscard]] std::uint64_t clock() const { return clock_; }
    [[nodiscard]] KnownRepeat& known() { return known_; }
    [[nodiscard]] KnownRepeat::Rest& rest() { return rest_; }

private:
    KnownRepeat::Turn& turn(const Way& way);
    KnownRepeat::Visit& visit(std::uint32_t node);

    KnownRepeat known_;
    KnownRepeat::Rest rest_;
    std::size_t first_, base_;
    std::uint64_t clock_;
    bool given_up_ = false;
};

}  // namespace waymark::analysis
