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

/// Whether execution may continue after an indirect branch because its condition failed; T32 has IT blocks.
[[nodiscard]] inline bool may_fail(const isa::Instruction& branch, isa::Isa isa) {
    return branch.conditional || (isa != isa::Isa::a32 && isa != isa::Isa::a64);
}

/// A block of the ordinary kind, in the form for `Tracker::follow`: code without special instructions, and without
/// waypoints except a branch at its end.
struct OrdinaryBlock {
    const isa::Instruction* instruction{};  ///< the branch, borrowed from the block's code; null: there is none
    std::uint32_t epoch = 0;                ///< the epoch in which its bytes were found to fit; 0: no ordinary block
    std::uint32_t branch_epoch = 0;         ///< the same epoch if there is a branch, else 0
    std::uint64_t address{}, branch{},
        end{};  ///< addresses of its beginning, of its branch, and of the next instruction
    std::uint32_t before_bytes{}, instructions{};  ///< bytes before the branch; all instructions
    isa::Isa isa{};
    std::uint8_t last_bytes{};  ///< bytes of the instruction before the branch; 0: there is none
    bool may_fail{};            ///< the branch is indirect, and execution may continue after it
    bool direct{};              ///< it has one target
    /// Places: this block; the next block if the branch failed; the target of a direct branch.
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0} ^ std::uint64_t{1} << 57;
    std::uint64_t key{}, failed = nowhere, target = nowhere;
};

/// `epoch` is 0 if the block is not of the ordinary kind. Borrows from `code`.
[[nodiscard]] OrdinaryBlock row_of(const Code& code, std::uint32_t epoch);

class Tracker {
public:
    /// `system`: exception handlers belong to the recorded code, not to a kernel outside it. `undefined_executes`: the
    /// result of flow::UnitFactory. `each_instruction`: its units trace every instruction.
    explicit Tracker(Clock& clock, bool system = false, bool undefined_executes = true, bool each_instruction = false)
        : clock_(clock),
          system_(system),
          undefined_executes_(undefined_executes),
          each_instruction_(each_instruction) {}

    /// The tracker calls this unit from here on; both are borrowed until `detach`. `ranges` may be null. `signals`:
    /// permit(), power() or os_lock() may be called.
    void attach(flow::Unit& unit, SourceTruth& truth, RangeWriter* ranges, bool signals = false);
    /// Finishes the unit. Instructions after the last waypoint stay untraced.
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
    /// The current unit does not receive that branch; the next attached unit receives it from `take_over`.
    void hand_over();
    void take_over(const Open& branch);

    /// The blocks that the unit traces; from here on the truth counts only these as traced. nullopt: the unit itself
    /// decides, block by block, since not only addresses matter.
    void select(std::optional<flow::SelectedBlocks> blocks) {
        selected_ = std::move(blocks);
        filters_ = !selected_ || !selected_->all();
        forget_sequences();
    }
    /// The blocks that the unit's programming selects, apart from signals. nullopt: they do not depend on addresses
    /// alone.
    void programmed(std::optional<flow::SelectedBlocks> blocks) { programmed_ = std::move(blocks); }
    /// Number of ranges that the programming selects but that signals kept the unit from tracing, for all units so far.
    [[nodiscard]] std::uint64_t not_permitted() const { return not_permitted_; }
    [[nodiscard]] std::uint64_t not_permitted_instructions() const { return not_permitted_instructions_; }
    /// Number of ranges that are not in the trace, if it is not known whether signals or the unit's program excluded
    /// them.
    [[nodiscard]] std::uint64_t perhaps_not_permitted() const { return perhaps_not_permitted_; }
    /// Programs the unit again (flow::Unit::program).
    void program(const flow::UnitOptions& options);

    // Signals from outside change here, for later code. The losses of the unit that this causes count as not to be
    // traced.
    void permit(const flow::TracePermission& permission);
    /// When power is on again, the unit is programmed again, as by software that saves and restores it.
    void power(bool on, const flow::UnitOptions& options);
    void os_lock(bool locked);

    /// The rows of blocks changed (`follow`).
    void forget_sequences() {
        known_.reset();
        followed_ = 0;
    }

    /// The instruction set at `address`, if the path of execution to it shows the set.
    [[nodiscard]] std::optional<isa::Isa> arriving(Address address) const;

    /// Execution reaches `place`: determines the outcome of the last waypoint.
    void arrive(Place place);
    /// Instructions [first, end) of `code` completed, after a call of `arrive` with the first of them. `stopped`: the
    /// next instruction began and did not complete.
    void run(const Code& code, std::uint32_t first, std::uint32_t end, bool stopped);
    /// The fast way through ordinary blocks: does the same for words of a chunk as `arrive` and `run`, and returns the
    /// number of words it took: all up to the first one that needs more. `held`: the block entered last, whose end is
    /// known when the next word is known. `rows`: by number of the block. Stops before the cycle `limit`.
    [[nodiscard]] std::size_t follow(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                                     std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held);
    /// The last completed instruction made a system call.
    void system_call();
    /// An exception was taken after the last instruction. `back`: the instruction that would have come instead, if
    /// known; it shows the outcome of the last waypoint. `handler`: the next instruction; nullopt: a kernel that is not
    /// recorded. `state`: the processor's state in the handler; nullopt: unchanged.
    void exception(ExceptionClass kind, std::optional<Place> back, std::optional<Place> handler,
                   const std::optional<flow::Context>& state = {});
    /// Sets the address at which a system's processors begin after reset.
    void resets_to(Address address) { reset_ = address; }
    /// The processor's state from here on.
    void context(const flow::Context& context);
    /// The place of execution, or of the waypoint instruction that it has just passed.
    [[nodiscard]] isa::Isa isa() const { return start_.isa; }
    /// Whether more code than in any program ran without a waypoint, as in empty memory; decoders do not follow farther
    /// (512 KiB, docs/spec/pft.md, 4.4).
    [[nodiscard]] bool lost_way() const { return straight_.bytes > longest_straight; }
    /// The vector by which execution reached a handler without a call of `exception`, if that ever happened.
    [[nodiscard]] std::optional<Address> unknown_vector() const { return unknown_vector_; }
    /// The code at the place just reached cannot be recorded, such as the kernel's helpers.
    void leave() { away_ = !pending_; }
    /// Execution continues at an unknown or unrecorded place until it arrives somewhere again: instructions since the
    /// last waypoint are not traced, and the truth counts them as unfinished.
    void lose_place();
    /// Number of times that an AArch64 system's execution continued at a place to which no instruction or exception
    /// led.
    [[nodiscard]] std::uint64_t jumps() const { return jumps_; }

private:
    void waypoint(bool passed, Place next);
    /// Passes an instruction of `bytes` bytes to the unit that is not a waypoint instruction.
    void ordinary(std::uint8_t bytes);
    void resolve(Place place);
    void wait();
    void unseen_exception(Place place);
    void interrupt(ExceptionClass kind, std::optional<Place> handler);
    /// `last`: address of the last instruction of the range.
    void add(TruthRange range, Address last, std::uint64_t lost_before);
    void lose(std::uint64_t count);
    /// Calls the unit, which may lose waypoints that it has not sent.
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
    /// Reports the contents of `blocks_`. `sums`: only_sums(); otherwise `ran_` is filled, and the two numbers are not
    /// used.
    template <bool sums>
    void tell(Place from, std::size_t count, std::uint64_t instructions, std::uint64_t hash);
    /// Begins to remember sequences when enough code has run.
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
    /// The last calls of the unit, which it may still lose; a call has no instructions if nothing ran before an
    /// exception.
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
