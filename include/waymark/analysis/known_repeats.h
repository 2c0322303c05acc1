/// Remembers the effects of repeats (flow::Repeat) on a stack of calls: the frames that they remove and add, and their
/// additions to sums. If a repeat occurs again with the stack in the same state, it costs one addition; the sums are
/// computed later. CallStacks learns the effect of a repeat while it performs the repeat step by step.
///
/// The place where a repeat begins decides its whole effect, together with the frames that it removes: the addresses
/// for which they wait, and their callers. So a repeat is remembered by its number, the node and the function of the
/// topmost frame, and the branch that leads into it, if that branch is not applied yet. Frames below are compared.
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
    static constexpr std::uint64_t nothing = ~std::uint64_t{0};  ///< stands for an unknown address
    static constexpr std::uint32_t no_edge = ~std::uint32_t{0};

    std::uint64_t waits_for = nothing;       ///< return address; `nothing` if not known
    std::uint32_t node{}, caller{};          ///< `caller`: the node of its caller
    FunctionId function = no_function;       ///< or section in which flow is
    std::uint32_t edge = no_edge;            ///< of the call
    std::uint32_t way = 0;                   ///< way of the call (FlowCounts::known_way); 0: not known
    bool named{};                            ///< `function` is a function
    bool returns_twice{}, unwinds{};         ///< as Arrival
    bool tail{};                             ///< entered by a tail call of the frame below, with which it returns
    bool falls{};                            ///< interrupted before it ran on, without a branch, into another function
    bool nameless{};                         ///< its function is not known: the root's frame, at the bottom
    std::uint64_t entered = nothing;         ///< where flow entered the function
    std::uint64_t to{};                      ///< the call's
    const flow::ExceptionType* exception{};  ///< for an interrupt; otherwise null
    Work at{};                               ///< time of entry on the stack's clock
    std::uint64_t again = nothing;           ///< where setjmp or the like last returned to in this frame
};

/// How repeats are remembered.
struct RepeatMemory {
    unsigned log2_size = 10;  ///< 1 to 14: the logarithm of the number of remembered repeats
    bool eager = false;       ///< remember at first occurrence, and always look up
    bool none = false;
};

/// The effect of a repeat that starts in one state of a stack. It can express what nearly all repeats do: calls,
/// returns to where the topmost frame waits, and functions that replace another.
struct alignas(64) KnownRepeat {
    static constexpr std::size_t most_pops = 4, most_pushes = 4, most_visits = 8, most_turns = 8, most_edges = 24;
    struct Begin {
        std::uint64_t number = 0;  ///< the repeat's
        std::uint64_t tree = 0;    ///< serial number of the tree that nodes belong to; 0: empty
        std::uint32_t behind{};    ///< the edge whose branch led to the repeat, if it is not applied yet
        std::uint32_t node{};      ///< node of the topmost frame
        FunctionId function{};     ///< function in which flow is
        /// One comparison.
        friend bool operator==(const Begin& a, const Begin& b) {
            return ((a.number ^ b.number) | (a.tree ^ b.tree) | (a.behind ^ b.behind) | (a.node ^ b.node) |
                    (a.function ^ b.function)) == 0;
        }
    };
    /// A frame from before the repeat that returns.
    struct Pop {
        std::uint64_t waits_for{};
        std::uint32_t caller{};
        std::uint32_t at{};  ///< number of instructions before the return
        bool tail{};
    };
    /// The addition of the repeat to a node.
    struct Visit {
        std::uint32_t node{}, calls{};
        std::uint64_t instructions{};
    };
    /// The repeat's addition to the count of a way.
    struct Turn {
        Way way;
        std::uint32_t times{}, returns{};
        std::uint64_t inclusive{};
    };

    Begin begin;
    std::uint64_t times = 0;       ///< repetitions that are not in the sums yet
    std::uint32_t instructions{};  ///< instructions of all its ranges
    FunctionId function{};         ///< where flow is at the end in the topmost of the earlier frames
    std::uint32_t leads{};         ///< the repeat's last edge, if its branch is still to be applied; or none
    std::uint32_t last_node{};     ///< node of the topmost frame at the end
    FunctionId last_function{};    ///< function in which flow is there
    bool named{}, replaced{};      ///< for that frame: `function` is a function, and has replaced the frame's own
    bool simple{};                 ///< at most one pop and one push, and no replacement
    bool listed = false;
    std::uint8_t rise{};  ///< highest stack height inside the repeat, relative to its start
    std::uint8_t pops{}, pushes{};
    Pop popped{};        ///< the first one
    CallFrame pushed{};  ///< the first frame that is left at the end; `at`: number of instructions before its push

    /// Members that are not read at each repetition.
    struct Rest {
        std::array<Pop, most_pops - 1> popped{};
        std::array<CallFrame, most_pushes - 1> pushed{};
        // For the frame in which `function` has replaced the original one.
        std::uint32_t node{}, caller{};
        std::uint64_t entered{};
        bool unwinds{};  ///< a function that replaced it unwinds
        std::uint8_t visits{}, turns{}, edges{};
        std::uint8_t left_out{};  ///< number of calls that did not fit into the tree
        std::array<std::uint32_t, most_edges> edge{};
        std::array<Visit, most_visits> visit{};
        std::array<Turn, most_turns> turn{};
        CallTree* tree{};
    };
};

/// A fixed number of remembered repeats. The beginning of a repeat determines its slot; a new repeat evicts the old one
/// from its slot.
class KnownRepeats {
public:
    explicit KnownRepeats(const RepeatMemory& options) : options_(options) {}

    [[nodiscard]] bool none() const { return options_.none; }
    /// Whether to look up now: if few lookups succeed, they are suspended for a while.
    [[nodiscard]] bool asks() {
        if (rest_ == 0) return true;
        --rest_;
        return false;
    }
    /// The repeat remembered for the beginning; null if there is none.
    [[nodiscard]] WM_INLINE KnownRepeat* find(const KnownRepeat::Begin& begin) {
        KnownRepeat* const known = known_.data() + (hash(begin) >> shift_);
        return known->begin == begin ? known : nullptr;
    }
    /// Counts another repetition.
    WM_INLINE void count(KnownRepeat& known) {
        if (known.times++ == 0 && !known.listed) [[unlikely]] {
            known.listed = true;
            counted_.push_back(slot(known));
        }
    }
    void add_hits(std::uint64_t hits) { hits_ += hits; }
    /// Ways are renumbered from here on.
    void forget_ways() {
        for (KnownRepeat& known : known_) known.pushed.way = 0;
        for (KnownRepeat::Rest& rest : rests_)
            for (CallFrame& frame : rest.pushed) frame.way = 0;
    }
    /// Number of repeats whose effect was applied from memory.
    [[nodiscard]] std::uint64_t hits() const { return hits_; }
    [[nodiscard]] KnownRepeat::Rest& rest(const KnownRepeat& known) { return rests_[slot(known)]; }
    [[nodiscard]] const KnownRepeat::Rest& rest(const KnownRepeat& known) const { return rests_[slot(known)]; }
    /// Call it after `find` found nothing. Returns whether the repeat should be remembered.
    [[nodiscard]] bool missed(const KnownRepeat::Begin& begin);
    /// Remembers a repeat. Calls add(known, rest) for the one that it evicts, if that one has repetitions that are not
    /// in the sums.
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
    /// Calls add(known, rest) for repeats of the tree that have repetitions since the last call.
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
    /// After `misses_judged` misses the lookups are judged: if fewer than a third were hits, the next `least_rest` to
    /// `most_rest` repeats are not looked up.
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
    std::vector<std::uint16_t> missed_;   // tags of recent misses, four for each slot
    std::vector<std::uint32_t> counted_;  // slots whose times are or were not 0
    unsigned shift_ = 63;
    std::uint64_t hits_ = 0, hits_judged_ = 0;  // all hits; hits up to the last judgement
    std::size_t misses_ = 0, rest_ = 0, next_rest_ = 0;
};

/// Learns the effect of a repeat step by step.
class WatchedRepeat {
public:
    /// `frames`: number of frames on the stack when it started, at `clock` instructions.
    WatchedRepeat(const KnownRepeat::Begin& begin, CallTree& tree, std::size_t frames, std::uint64_t clock)
        : first_(frames), base_(frames), clock_(clock) {
        known_.begin = begin;
        rest_.tree = &tree;
    }
    /// The repeat does something that cannot be remembered.
    void give_up() { given_up_ = true; }
    [[nodiscard]] bool given_up() const { return given_up_; }

    void ran(std::uint32_t node, const Work& work);
    void called(std::uint32_t node);
    void left_out() { ++rest_.left_out; }
    /// `frames`: number of frames on the stack, including the new one.
    void pushed(std::size_t frames) {
        if (frames > first_ && frames - first_ > known_.rise) known_.rise = static_cast<std::uint8_t>(frames - first_);
    }
    /// A call within the repeat returned.
    void returned(const Way& way, std::uint64_t instructions) {
        KnownRepeat::Turn& t = turn(way);
        ++t.returns;
        t.inclusive += instructions;
    }
    /// A frame from before the repeat returned; `frames` remain on the stack.
    void popped(std::size_t frames, const KnownRepeat::Pop& pop);
    /// A function has replaced the function of the topmost of `frames` frames.
    void replaced(std::size_t frames, const Arrival& by) {
        if (by.returns_twice) return give_up();
        if (frames > base_) return;
        known_.replaced = true;
        rest_.unwinds |= by.unwinds;
    }
    /// A branch took this way.
    void went(const Way& way) { turn(way).times += 1; }

    /// Number of lowest frames that still exist at the end.
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
