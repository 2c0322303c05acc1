/// What every program flow decoder delivers, whatever the protocol: which code ran (blocks and ranges) and everything
/// else in its place among it (events). Protocol-neutral, 64-bit, and made for one virtual call per thousand ranges.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/flow/exception.h"
#include "waymark/isa/isa.h"

namespace waymark::flow {

using isa::Isa;

/// How a block ends.
enum class End : std::uint8_t {
    not_a_waypoint,  ///< cut short: an exception, unreadable memory, a waypoint update
    direct,          ///< branch whose target is in the instruction
    indirect,        ///< branch whose target does not
    barrier,         ///< synchronisation barrier traced as a waypoint
};

/// What is true of a piece of code, from where execution entered it to the instruction that ends it. One row per
/// distinct block; a row never changes.
struct Block {
    static constexpr std::uint8_t link = 1, conditional = 2, function_return = 4, exception_return = 8, undefined = 16;
    static constexpr std::uint8_t wait = 32, transaction_start = 64;  ///< WFI, WFE and the like; TSTART; as barriers
    /// End::not_a_waypoint: one instruction, whose outcome the trace has all the same (Range::taken: it passed its
    /// condition). Execution goes on behind it.
    static constexpr std::uint8_t own_outcome = 128;

    std::uint64_t start{};         ///< address of the first instruction
    std::uint64_t target{};        ///< where the last instruction goes if taken; direct and barrier only
    std::uint32_t bytes{};         ///< length: start + bytes is the first address after the block
    std::uint32_t instructions{};  ///< how many
    std::uint32_t section{};       ///< which image stood at this address, so new code is a new block
    Isa isa{};
    End end{};
    std::uint8_t last_bytes{};  ///< size of the last instruction
    std::uint8_t flags{};       ///< of the last instruction: the constants above

    friend bool operator==(const Block&, const Block&) = default;
};

inline constexpr std::uint32_t no_cycles = 0xffffffff;

/// One execution of a block.
struct Range {
    std::uint32_t edge{};              ///< block id * 2 + taken: also the index into an array of counts
    std::uint32_t offset{};            ///< of its packet, less Batch::base
    std::uint32_t cycles = no_cycles;  ///< that came with it, or no_cycles
    std::uint32_t times = 1;           ///< more where the unit itself compresses loops

    [[nodiscard]] constexpr std::uint32_t block() const { return edge >> 1; }
    [[nodiscard]] constexpr bool taken() const { return (edge & 1) != 0; }
};

enum class TraceOnReason : std::uint8_t {
    begin,          ///< synchronised at a periodic point, at first or after a gap: tracing was on already
    enabled,        ///< tracing was off by the unit's own choice: a filter, a prohibited region
    overflow,       ///< the unit's FIFO overflowed: an unknown stretch of execution is missing
    debug_restart,  ///< the core left Debug state
    recovered       ///< inferred without a synchronisation point, as what follows is until the next TraceOn or gap
};

/// Tracing begins, or begins again; execution since the last element before it is unknown.
struct TraceOn {
    TraceOnReason reason{};
    std::uint32_t cycles = no_cycles;  ///< since the last cycle count
};

enum class Security : std::uint8_t { secure, non_secure, root, realm };

/// The state of the core from here on.
struct Context {
    bool ns{};                                  ///< Non-secure; with `nse`: Realm
    bool hyp{};                                 ///< Hyp mode, EL2
    std::optional<std::uint32_t> context_id{};  ///< absent: not traced or not yet known
    std::optional<std::uint32_t> vmid{};        ///< absent: not traced or not yet known
    bool nse{};                                 ///< of the Realm Management Extension: Root or, with `ns`, Realm
    bool aarch64{};                             ///< the execution state is AArch64
    std::optional<std::uint8_t> el{};           ///< exception level, 0 to 3; absent: the protocol does not carry it

    [[nodiscard]] constexpr Security security() const {
        return nse ? (ns ? Security::realm : Security::root) : (ns ? Security::non_secure : Security::secure);
    }
    /// The memory that code is fetched from in this state.
    [[nodiscard]] isa::Space space() const { return {ns, hyp, context_id, vmid, nse}; }
    friend bool operator==(const Context&, const Context&) = default;
};

struct Timestamp {
    std::uint64_t value{};             ///< natural binary, in ticks of the trace timestamp
    bool known = true;                 ///< false: its high part was lost; `value` holds only what was sent
    bool frequency_changed{};          ///< the processor clock changed since the previous one
    std::uint32_t cycles = no_cycles;  ///< since the last cycle count
    bool counted_again{};              ///< the next cycle count includes `cycles`, so sums leave them out
};

struct Exception {
    const ExceptionType* type = &unknown_exception;  ///< never null; in static storage
    std::optional<Address> preferred_return;         ///< where execution would go on, where known
    std::optional<Address> vector;                   ///< where it went; absent when the unit hides it
    std::uint32_t cycles = no_cycles;                ///< since the last cycle count
};

struct ExceptionReturn {};

/// The program image has nothing at this address; flow is unknown up to the next traced address.
struct NoMemory {
    Address address{};
};

/// The unit's trigger.
struct Trigger {};

/// Outcomes of waypoint instructions that cannot be placed, because no image is there or the address is unknown: those
/// of packets one after another, up to the next packet of another kind.
struct Atoms {
    std::uint64_t taken{}, not_taken{};
};

/// The instruction at this address was executed, as a waypoint update says, but the image does not show the way there.
struct Reached {
    Address address{};
};

/// Instructions were executed from `from` on, and then execution was at `to`; the trace gives no way between (a Q
/// element of ETMv4 and ETE).
struct Untraced {
    Address from{}, to{};
    std::uint64_t instructions{};  ///< how many; 0: unknown
    bool from_known = true;        ///< false: `from` is unknown
};

/// What the trace reports at this place besides flow and time.
struct Mark {
    enum class Kind : std::uint8_t {
        unit_events,          ///< events of the trace unit: bit n of `value` is event n
        timestamp_marker,     ///< the place that the next timestamp belongs to
        transaction_inside,   ///< tracing began inside a transaction
        transaction_started,  ///< the outermost transaction
        transaction_committed,
        transaction_failed,  ///< what ran since it started had no effect; an address follows
        instrumentation,     ///< `value` from the program, which ran at exception level `level`
        uncommitted,         ///< `value` P0 elements before this were neither committed nor cancelled when trace ended
        overflow_at_end      ///< the FIFO overflowed, and trace ended before it could go on
    } kind{};
    std::uint64_t value{};
    std::uint8_t level{};
};

/// A count of cycles that came apart from a range.
struct Cycles {
    /// What ran in these cycles.
    enum class Of : std::uint8_t {
        unknown,  ///< not known
        flow,     ///< the flow before this, since cycles were counted last
        ranges    ///< the same flow, and its ranges have these cycles already (CycleSpread): sums leave this one out
    };
    std::optional<std::uint32_t> cycles{};  ///< none: cycles passed, and the unit does not know how many
    Of of = Of::unknown;
    bool several{};             ///< Of::ranges: it was spread over more than one
    bool off{};                 ///< Of::ranges: it includes cycles in which tracing was off
    std::uint32_t threshold{};  ///< the unit sends no smaller count; 0: every count
};

/// Trace and image (or trace and configuration) cannot both be right.
enum class Conflict : std::uint8_t {
    sync_disagrees,     ///< a periodic sync names another address, instruction set or context than the walk reached
    branch_disagrees,   ///< a branch packet names another target than the direct branch it belongs to
    update_behind,      ///< a waypoint update, source or return address names what execution has already passed
    no_return_address,  ///< a taken indirect branch came without an address, and no return stack entry explains it
    undefined_reached,  ///< the walk ran into a permanently undefined instruction
    runaway_walk,       ///< no waypoint within the longest plausible block
    update_disagrees,   ///< as before, but it is beyond a waypoint instruction, amid an instruction, or not a waypoint
    vmid_missing,       ///< VMIDs are traced, but none came between an I-sync and the next atom or branch packet
    always_taken,       ///< an outcome says of a branch without a condition that it was not taken
    address_disagrees,  ///< an address names another place than the one that nothing before it leads away from
    no_exception_return,  ///< an exception return is reported, and what was executed last is none
    time_goes_back,  ///< a timestamp is less than the one before it (`found`: the one before; `expected`: this one)
};
/// What was executed before it and what is executed after it do not belong together.
[[nodiscard]] constexpr bool cuts_flow(Conflict conflict) {
    switch (conflict) {
        case Conflict::sync_disagrees:
        case Conflict::no_return_address:
        case Conflict::undefined_reached:
        case Conflict::runaway_walk:
        case Conflict::always_taken:
        case Conflict::address_disagrees: return true;
        case Conflict::branch_disagrees:
        case Conflict::update_behind:
        case Conflict::update_disagrees:
        case Conflict::vmid_missing:
        case Conflict::no_exception_return:
        case Conflict::time_goes_back: break;
    }
    return false;
}
/// Where execution goes on is unknown until the trace names a place.
[[nodiscard]] constexpr bool loses_place(Conflict conflict) {
    return cuts_flow(conflict) && conflict != Conflict::sync_disagrees && conflict != Conflict::address_disagrees;
}
/// It says something about flow, and not only about the trace.
[[nodiscard]] constexpr bool concerns_flow(Conflict conflict) {
    return conflict != Conflict::vmid_missing && conflict != Conflict::no_exception_return &&
           conflict != Conflict::time_goes_back;
}
struct Inconsistency {
    Conflict conflict{};
    Address found{};     ///< the address the walk has reached or the image gives
    Address expected{};  ///< the address the trace names, where it names one
};

using What = std::variant<Gap, TraceOn, Context, Timestamp, Exception, ExceptionReturn, NoMemory, Trigger, Cycles,
                          Inconsistency, Atoms, Reached, Untraced, Mark>;

/// Everything that is not a range, in its place among them.
struct Event {
    std::uint32_t before{};  ///< happened before ranges[before] of its batch
    Offset offset{};         ///< of its packet
    What what;
};

/// Ranges of a batch that a decoder took as one, since it had met them before. Another one with this number has the
/// same edges, one after another; each range is one execution, without a cycle count, and no event is between them.
struct Repeat {
    std::uint64_t number{};  ///< of all decoders of a sink none gives it to other edges
    std::uint32_t first{};   ///< index of its first range
    std::uint32_t count{};   ///< of its ranges, at least 1
};

/// Consecutive elements of one source. Borrowed: valid during Sink::consume().
struct Batch {
    std::span<const Block> blocks;  ///< all blocks so far; `range.block()` is an index into it
    Offset base{};                  ///< of Range::offset
    std::span<const Range> ranges;
    std::span<const Event> events;  ///< in order; `before` never decreases
    /// For sinks that are quicker with it: some ranges that came before. In order; they do not overlap.
    std::span<const Repeat> repeats{};
};

/// From a taken indirect branch to where execution went on.
struct EdgeWay {
    static constexpr std::uint32_t no_block = 0xffffffff;
    std::uint32_t edge{};
    std::uint32_t block{};  ///< or `no_block`: no instruction that could run is known to lie there
    std::uint64_t times{};
    friend bool operator==(const EdgeWay&, const EdgeWay&) = default;
};

/// How often each edge ran, of all batches that a sink would have got.
struct EdgeCounts {
    std::span<const Block> blocks;
    std::span<const std::uint64_t> times;  ///< by Range::edge; edges beyond its end never ran
    std::uint64_t cycles{};                ///< the sum of the cycle counts that came with ranges
    std::span<const EdgeWay> ways{};       ///< if the sink wants them; each pair of edge and block once
    std::uint64_t ways_left_out{};         ///< so often one was not counted, for lack of room
};

/// How a sink may be split among workers.
enum class Split : std::uint8_t {
    none,
    per_chunk,    ///< pieces of the stream, joined in trace order
    when_behind,  ///< so, but forks cost more than the sink itself: they only take what it has no time for
    per_worker
};

/// Takes what a decoder delivers.
class Sink {
public:
    virtual ~Sink() = default;
    /// Batches come in trace order.
    virtual void consume(const Batch& batch) = 0;
    /// For a sink that keeps ranges: memory for `least` of them, or more. A writer puts them there, one batch behind
    /// the other with the same base where it can, and asks again when it needs other memory. Empty: batches lie in
    /// memory of the writer's, which it uses again.
    [[nodiscard]] virtual std::span<Range> room(std::size_t least) {
        (void)least;
        return {};
    }
    /// True: `take_counts` brings the ranges, which is quicker. In batches, ranges of no times stand for them.
    [[nodiscard]] virtual bool counts_suffice() const { return false; }
    /// True: the counts must include the ways that indirect branches went.
    [[nodiscard]] virtual bool wants_ways() const { return false; }
    /// Once, at the end of a stream; only if they suffice.
    virtual void take_counts(const EdgeCounts&) {}
    /// Counts of cycles that come apart from ranges are wanted in the ranges they cover (CycleSpread).
    [[nodiscard]] virtual bool wants_cycles_in_ranges() const { return false; }
    /// A listing may be formatted per chunk, counts may be summed per worker; `none` is always right.
    [[nodiscard]] virtual Split split() const { return Split::none; }
    /// An empty sink to work beside this one. Only called when split() is not `none`.
    [[nodiscard]] virtual std::unique_ptr<Sink> fork() const { return {}; }
    /// With per_chunk, called on a fork before anything else: the context that holds where its part begins.
    virtual void begin_at(const Context&) {}
    /// Takes a fork's results in; with per_chunk, in trace order.
    virtual void join(Sink&) {}
};

/// Calls `on_range(block, range)` and `on_event(event)` in trace order.
template <class OnRange, class OnEvent>
void in_order(const Batch& batch, OnRange&& on_range, OnEvent&& on_event) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < batch.ranges.size(); ++i) {
        while (next < batch.events.size() && batch.events[next].before <= i) on_event(batch.events[next++]);
        on_range(batch.blocks[batch.ranges[i].block()], batch.ranges[i]);
    }
    while (next < batch.events.size()) on_event(batch.events[next++]);
}

}  // namespace waymark::flow

static_assert(sizeof(waymark::flow::Block) == 32 && sizeof(waymark::flow::Range) == 16);
