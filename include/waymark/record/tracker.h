/// Turns the blocks that a thread executed into calls of its trace unit: the waypoints, their outcomes and targets, and
/// the places where execution left the recorded code.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "waymark/flow/unit.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/record/code.h"
#include "waymark/record/known_sequences.h"
#include "waymark/record/truth.h"

namespace waymark::record {

using flow::ExceptionClass, flow::Straight, isa::Place;

/// One cycle for each instruction, for all threads together: QEMU has no other clock.
struct Clock {
    std::uint64_t cycle = 0;
};

/// A place as one number: addresses are canonical, so all places differ.
[[nodiscard]] constexpr std::uint64_t key_of(Address address, isa::Isa isa) {
    return address.value ^ std::uint64_t{static_cast<std::uint8_t>(isa)} << 58;
}

/// An indirect branch behind which execution may continue because its condition failed; T32 has IT blocks.
[[nodiscard]] inline bool may_fail(const isa::Instruction& branch, isa::Isa isa) {
    return branch.conditional || (isa != isa::Isa::a32 && isa != isa::Isa::a64);
}

/// A block of the ordinary kind, as `Tracker::follow` needs it: code with nothing special in it, and no waypoint but a
/// branch at its end.
struct OrdinaryBlock {
    const isa::Instruction* instruction{};  ///< the branch, borrowed from the block's code; null: there is none
    std::uint32_t epoch = 0;                ///< the epoch in which its bytes were found to fit; 0: no ordinary block
    std::uint32_t branch_epoch = 0;         ///< the same epoch if there is a branch, else 0
    std::uint64_t address{}, branch{},
        end{};  ///< addresses of its beginning, of its branch, and of the next instruction
    std::uint32_t before_bytes{}, instructions{};  ///< bytes before the branch; all instructions
    isa::Isa isa{};
    std::uint8_t last_bytes{};  ///< bytes of the instruction before the branch; 0: there is none
    bool may_fail{};            ///< the branch is indirect, and execution may continue behind it
    bool direct{};              ///< it has one target
    /// Places: this one; the next one if the branch failed; the target of a direct branch.
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0} ^ std::uint64_t{1} << 57;
    std::uint64_t key{}, failed = nowhere, target = nowhere;
};

/// `epoch` 0 where it is not of the ordinary kind. Borrows from `code`.
[[nodiscard]] OrdinaryBlock row_of(const Code& code, std::uint32_t epoch);

class Tracker {
public:
    /// `system`: exception handlers belong to the recorded code, not to a kernel outside it. `undefined_executes`:
    /// flow::UnitFactory's. `each_instruction`: its units trace every instruction.
    explicit Tracker(Clock& clock, bool system = false, bool undefined_executes = true, bool each_instruction = false)
        : clock_(clock),
          system_(system),
          undefined_executes_(undefined_executes),
          each_instruction_(each_instruction) {}

    /// The tracker calls this unit from here on; both are borrowed until `detach`. `ranges` may be null. `signals`:
    /// permit(), power() or os_lock() may be called.
    void attach(flow::Unit& unit, SourceTruth& truth, RangeWriter* ranges, bool signals = false);
    /// Finishes the unit. Instructions behind the last waypoint stay untraced.
    void detach();
    [[nodiscard]] bool attached() const { return unit_ != nullptr; }

    /// A branch whose outcome is not known yet, with the instructions straight before it.
    struct Open {
        Place start;
        Straight straight;
        std::uint32_t straight_count{};
        Address address;
        isa::Instruction instruction;
        [[nodiscard]] Address end() const { return address + instruction.bytes; }
    };
    [[nodiscard]] std::optional<Open> open_branch() const;
    /// The current unit does not get that branch; the unit attached next gets it by `take_over`.
    void hand_over();
    void take_over(const Open& branch);

    /// The blocks that the unit traces; from here on the truth counts only these as traced. None: the unit itself
    /// decides, block by block, since more than addresses matters.
    void select(std::optional<flow::SelectedBlocks> blocks) {
        selected_ = std::move(blocks);
        filters_ = !selected_ || !selected_->all();
        forget_sequences();
    }
    /// What the unit's programming alone selects, where signals change too. None: addresses alone do not tell.
    void programmed(std::optional<flow::SelectedBlocks> blocks) { programmed_ = std::move(blocks); }
    /// Ranges that the programming selects, and that signals kept the unit from tracing; of all its units so far.
    [[nodiscard]] std::uint64_t not_permitted() const { return not_permitted_; }
    [[nodiscard]] std::uint64_t not_permitted_instructions() const { return not_permitted_instructions_; }
    /// Number of ranges that are not in the trace, where it is not known whether signals or the unit's program kept
    /// them out.
    [[nodiscard]] std::uint64_t perhaps_not_permitted() const { return perhaps_not_permitted_; }
    /// Programs the unit anew (flow::Unit::program).
    void program(const flow::UnitOptions& options);

    // Signals from outside change here, for later code. Losses of the unit by that count as not to be traced.
    void permit(const flow::TracePermission& permission);
    /// With power it is programmed again, as software does that saves and restores it.
    void power(bool on, const flow::UnitOptions& options);
    void os_lock(bool locked);

    /// The rows of blocks changed (`follow`).
    void forget_sequences() {
        known_.reset();
        followed_ = 0;
    }

    /// The instruction set at `address`, where the way by which execution came shows it.
    [[nodiscard]] std::optional<isa::Isa> arriving(Address address) const;

    /// Execution reaches `place`: settles the outcome of the last waypoint.
    void arrive(Place place);
    /// Instructions [first, end) of `code` completed, after `arrive` at the first of them. `stopped`: the next one
    /// began and did not complete.
    void run(const Code& code, std::uint32_t first, std::uint32_t end, bool stopped);
    /// The quick way through ordinary blocks: does for words of a chunk what `arrive` and `run` would do, and returns
    /// how many it took: up to the first that needs more. `held`: the block entered last, which is settled when it is
    /// known what follows. `rows`: by number of the block. Stops before the cycle `limit`.
    [[nodiscard]] std::size_t follow(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                                     std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held);
    /// The last completed instruction made a system call.
    void system_call();
    /// An exception was taken behind the last instruction. `back`: the instruction that would have come instead, where
    /// known; it shows the outcome of the last waypoint. `handler`: the next instruction; nothing: a kernel that is not
    /// recorded. `state`: the processor's state in the handler; nothing: unchanged.
    void exception(ExceptionClass kind, std::optional<Place> back, std::optional<Place> handler,
                   const std::optional<flow::Context>& state = {});
    /// Where a system's processors begin after reset.
    void resets_to(Address address) { reset_ = address; }
    /// The processor's state from here on.
    void context(const flow::Context& context);
    /// Where execution is, or the waypoint instruction it has just passed.
    [[nodiscard]] isa::Isa isa() const { return start_.isa; }
    /// More code than any program has ran without a waypoint, as in empty memory; decoders follow no farther (512 KiB,
    /// docs/spec/pft.md, 4.4).
    [[nodiscard]] bool lost_way() const { return straight_.bytes > longest_straight; }
    /// The vector by which execution reached a handler without a call of `exception`, if that ever happened.
    [[nodiscard]] std::optional<Address> unknown_vector() const { return unknown_vector_; }
    /// The code at the place just reached cannot be recorded, such as the kernel's helpers.
    void leave() { away_ = !pending_; }
    /// Execution continues at an unknown or unrecorded place until it arrives somewhere again: instructions since the
    /// last waypoint are not traced, and the truth counts them as unfinished.
    void lose_place();
    /// How often an AArch64 system's execution continued at a place to which nothing had led.
    [[nodiscard]] std::uint64_t jumps() const { return jumps_; }

private:
    void waypoint(bool passed, Place next);
    /// Gives the unit an instruction of `bytes` bytes that is no waypoint instruction.
    void ordinary(std::uint8_t bytes);
    void resolve(Place place);
    void wait();
    void unseen_exception(Place place);
    void interrupt(ExceptionClass kind, std::optional<Place> handler);
    /// `last`: address of its last instruction.
    void add(TruthRange range, Address last, std::uint64_t lost_before);
    void lose(std::uint64_t count);
    /// Calls the unit, which may give up waypoints that it has not sent.
    template <class F>
    void signal(F&& f);
    void commit(const TruthRange& range);
    template <class F>
    void tell_unit(F&& f);
    void begin(Place place);
    /// The truth needs only sums of the calls to the unit.
    [[nodiscard]] bool only_sums() const { return ranges_ == nullptr && !may_lose_ && !filters_; }
    template <bool sums>
    [[nodiscard]] std::size_t follow_rows(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                                          std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held);
    /// Reports what `blocks_` holds. `sums`: only_sums(); else `ran_` is filled, and the two numbers are not used.
    template <bool sums>
    void tell(Place from, std::size_t count, std::uint64_t instructions, std::uint64_t hash);
    /// Begins to remember sequences once enough code ran.
    void begin_to_learn();
    void report_sequences(std::size_t count, std::uint64_t instructions, std::uint64_t hash);
    void learn(const KnownSequence::Key& key, const OrdinaryBlock& before, std::span<const OrdinaryBlock> rows,
               std::span<const flow::RetiredBlock> blocks);
    [[nodiscard]] Place here() const { return {start_.address + straight_.bytes, start_.isa}; }

    static constexpr std::uint32_t longest_straight = 512 * 1024;

    Clock& clock_;
    const bool system_, undefined_executes_, each_instruction_;
    std::optional<Address> reset_;
    flow::Unit* unit_ = nullptr;
    flow::Context context_{.ns = true};
    SourceTruth* truth_ = nullptr;
    RangeWriter* ranges_ = nullptr;

    bool started_ = false;  ///< the unit knows where execution is
    bool away_ = true;      ///< execution left the recorded code
    Place start_{};         ///< after the last waypoint
    Straight straight_{};   ///< what ran since
    std::uint32_t straight_count_ = 0;
    bool pending_ = false;  ///< a waypoint instruction after it, whose outcome is not known yet
    Address pending_address_{};
    isa::Instruction pending_instruction_{};
    Special last_special_ = Special::none;
    bool stopped_ = false;          ///< the next instruction began and did not complete
    std::uint8_t stopped_bytes_{};  ///< its size
    std::optional<Address> unknown_vector_;
    std::uint64_t jumps_ = 0;
    /// The last calls of the unit, which it may still lose; without instructions where an exception had nothing before
    /// it.
    std::deque<TruthRange> recent_;
    bool may_lose_ = false, signals_ = false;
    std::optional<flow::SelectedBlocks> selected_ = flow::SelectedBlocks{};
    std::optional<flow::SelectedBlocks> programmed_{};
    std::uint64_t not_permitted_ = 0, not_permitted_instructions_ = 0, perhaps_not_permitted_ = 0;
    bool filters_ = false;
    std::uint64_t untraced_ = 0;  ///< the unit's own count, where the unit decides

    // A stretch that `follow` is about to report: the instructions up to a waypoint, and their start.
    struct Ran {
        std::uint64_t start;
        std::uint32_t instructions;
    };
    std::array<flow::RetiredBlock, 256> blocks_;
    std::array<flow::RetiredSequence, 32> sequences_;
    std::array<const KnownSequence*, 32> found_sequences_;  ///< the same
    std::unique_ptr<KnownSequences> known_;  ///< for the unit's current programming; null: not enough code ran yet
    std::uint64_t followed_ = 0;             ///< blocks since then
    std::array<Ran, 256> ran_;
};

}  // namespace waymark::record
