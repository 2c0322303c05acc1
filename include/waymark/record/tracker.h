/// Turns the blocks a thread executed into calls of its trace unit: which waypoints it met, how each came out,
/// where each went, and where execution left what is recorded.
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

/// One cycle an instruction, for all threads together: QEMU knows no others.
struct Clock {
    std::uint64_t cycle = 0;
};

/// A place as one number: addresses are canonical, so no two places have the same.
[[nodiscard]] constexpr std::uint64_t key_of(Address address, isa::Isa isa) {
    return address.value ^ std::uint64_t{static_cast<std::uint8_t>(isa)} << 58;
}

/// An indirect branch at which execution may go on after it because its condition failed; T32 has IT blocks.
[[nodiscard]] inline bool may_fail(const isa::Instruction& branch, isa::Isa isa) {
    return branch.conditional || (isa != isa::Isa::a32 && isa != isa::Isa::a64);
}

/// A block of the ordinary kind, as `Tracker::follow` needs it: code with nothing special in it, and no waypoint but a
/// branch at its end.
struct OrdinaryBlock {
    const isa::Instruction* instruction{};         ///< the branch, borrowed from the block's code; null: there is none
    std::uint32_t epoch = 0;                       ///< in which its bytes were found to fit; 0: no ordinary block
    std::uint32_t branch_epoch = 0;                ///< the same, if there is a branch
    std::uint64_t address{}, branch{}, end{};      ///< where it begins; the branch; what follows it
    std::uint32_t before_bytes{}, instructions{};  ///< before the branch; all
    isa::Isa isa{};
    std::uint8_t last_bytes{};  ///< of the instruction before the branch; 0: there is none
    bool may_fail{};            ///< the branch is indirect, and execution may go on after it
    bool direct{};              ///< it has one target
    /// Places: this one; where execution is if the branch failed; where else it may be after a direct one.
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0} ^ std::uint64_t{1} << 57;
    std::uint64_t key{}, failed = nowhere, target = nowhere;
};

/// `epoch` 0 where it is not of the ordinary kind. Borrows from `code`.
[[nodiscard]] OrdinaryBlock row_of(const Code& code, std::uint32_t epoch);

class Tracker {
public:
    /// `system`: exception handlers run in what is recorded, not in a kernel that nobody sees.
    /// `undefined_executes`: flow::UnitFactory's. `each_instruction`: its units trace every instruction.
    explicit Tracker(Clock& clock, bool system = false, bool undefined_executes = true, bool each_instruction = false)
        : clock_(clock),
          system_(system),
          undefined_executes_(undefined_executes),
          each_instruction_(each_instruction) {}

    /// From here on this unit is called; both are borrowed until `detach`. `ranges` may be null. `signals`: permit(),
    /// power() or os_lock() may be called.
    void attach(flow::Unit& unit, SourceTruth& truth, RangeWriter* ranges, bool signals = false);
    /// The unit is finished. What ran after the last waypoint stays untraced.
    void detach();
    [[nodiscard]] bool attached() const { return unit_ != nullptr; }

    /// A branch whose outcome is not known yet, with what ran straight to it.
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

    /// Which blocks the unit traces; from here on the truth counts no others as traced. None: the unit says so itself,
    /// block by block, since more than addresses decides.
    void select(std::optional<flow::SelectedBlocks> blocks) {
        selected_ = std::move(blocks);
        filters_ = !selected_ || !selected_->all();
        forget_sequences();
    }
    /// The unit is programmed anew (flow::Unit::program).
    void program(const flow::UnitOptions& options);

    // Signals from outside change here, for what runs from here on. What the unit then loses counts as not to be
    // traced.
    void permit(const flow::TracePermission& permission);
    /// With power it is programmed again, as software does that saves and restores it.
    void power(bool on, const flow::UnitOptions& options);
    void os_lock(bool locked);

    /// The rows of blocks changed (`follow`).
    void forget_sequences() {
        known_.reset();
        followed_ = 0;
    }

    /// The instruction set at `address`, where the way execution came there shows it.
    [[nodiscard]] std::optional<isa::Isa> arriving(Address address) const;

    /// Execution reaches `place`: settles how the last waypoint came out.
    void arrive(Place place);
    /// Instructions [first, end) of `code` completed, after `arrive` at the first of them. `stopped`: the next one
    /// began and did not complete.
    void run(const Code& code, std::uint32_t first, std::uint32_t end, bool stopped);
    /// The quick way through ordinary blocks: does for words of a chunk what `arrive` and `run` would do, and returns
    /// how many it took: up to the first that needs more. `held`: the block entered last, which is settled when it is
    /// known what follows. `rows`: by number of the block. Stops before the cycle `limit`.
    [[nodiscard]] std::size_t follow(std::span<const std::uint32_t> chunk, std::span<const OrdinaryBlock> rows,
                                     std::uint32_t epoch, std::uint64_t limit, std::uint32_t& held);
    /// The instruction that completed last made a system call.
    void system_call();
    /// An exception was taken after what ran last. `back`: the instruction that would have come
    /// instead, where that is known; it shows the outcome of the last waypoint. `handler`: what runs next;
    /// nothing: a kernel that is not recorded. `state`: the processor's in the handler; nothing: as it is.
    void exception(ExceptionClass kind, std::optional<Place> back, std::optional<Place> handler,
                   const std::optional<flow::Context>& state = {});
    /// Where a system's processors begin after reset.
    void resets_to(Address address) { reset_ = address; }
    /// The processor's state from here on.
    void context(const flow::Context& context);
    /// Where execution is, or the waypoint instruction it has just passed.
    [[nodiscard]] isa::Isa isa() const { return start_.isa; }
    /// More code than anybody wrote ran without a waypoint, as empty memory does; decoders follow no farther (512 KiB,
    /// docs/spec/pft.md, 4.4).
    [[nodiscard]] bool lost_way() const { return straight_.bytes > longest_straight; }
    /// The vector by which execution reached a handler without a call of `exception`, if that ever happened.
    [[nodiscard]] std::optional<Address> unknown_vector() const { return unknown_vector_; }
    /// What is executed at the place just reached cannot be recorded, such as the kernel's helpers.
    void leave() { away_ = !pending_; }
    /// Execution goes on where nobody saw it go, or where it is not recorded, until it arrives somewhere again: what
    /// ran since the last waypoint is not traced, and the truth counts it as unfinished.
    void lose_place();
    /// How often an AArch64 system's execution went on where nothing had led it.
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
    /// Sequences are remembered once enough ran.
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
    bool away_ = true;      ///< execution left what is recorded
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
    /// The last call of the unit, which it may still lose; without instructions where an exception had nothing before
    /// it.
    std::deque<TruthRange> recent_;
    bool may_lose_ = false, signals_ = false;
    std::optional<flow::SelectedBlocks> selected_ = flow::SelectedBlocks{};
    bool filters_ = false;
    std::uint64_t untraced_ = 0;  ///< the unit's own count, where it decides

    // What `follow` is about to report: what ran up to a waypoint, and from where.
    struct Ran {
        std::uint64_t start;
        std::uint32_t instructions;
    };
    std::array<flow::RetiredBlock, 256> blocks_;
    std::array<flow::RetiredSequence, 32> sequences_;
    std::array<const KnownSequence*, 32> found_sequences_;  ///< the same
    std::unique_ptr<KnownSequences> known_;  ///< of the unit as it is programmed; null: not enough ran yet
    std::uint64_t followed_ = 0;             ///< blocks since then
    std::array<Ran, 256> ran_;
};

}  // namespace waymark::record
