/// The output of every program flow decoder, independent of the protocol: executed code (blocks and ranges) and
/// everything else in its place among it (events). 64-bit, and designed for one virtual call for each thousand ranges.
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

/// The end of a block.
enum class End : std::uint8_t {
    not_a_waypoint,  ///< cut short: an exception, unreadable memory, a waypoint update
    direct,          ///< branch whose target is in the instruction
    indirect,        ///< branch whose target does not
    barrier,         ///< synchronisation barrier traced as a waypoint
};

/// Properties of a piece of code, from where execution entered it to the instruction that ends it. One row for each
/// distinct block; a row never changes.
struct Block {
    static constexpr std::uint8_t link = 1, conditional = 2, function_return = 4, exception_return = 8, undefined = 16;
    static constexpr std::uint8_t wait = 32, transaction_start = 64;  ///< WFI, WFE and the like; TSTART; a barrier
    /// End::not_a_waypoint: a single instruction, for which the trace nevertheless has an outcome (Range::taken: it
    /// passed its condition). Execution continues after it.
    static constexpr std::uint8_t own_outcome = 128;

    std::uint64_t start{};         ///< address of the first instruction
    std::uint64_t target{};        ///< target of the last instruction if taken; only for direct branches and barriers
    std::uint32_t bytes{};         ///< length: start + bytes is the first address after the block
    std::uint32_t instructions{};  ///< how many
    std::uint32_t section{};       ///< the image at this address; other code makes another block
    Isa isa{};
    End end{};
    std::uint8_t last_bytes{};  ///< size of the last instruction
    std::uint8_t flags{};       ///< properties of the last instruction: the constants above

    friend bool operator==(const Block&, const Block&) = default;
};

inline constexpr std::uint32_t no_cycles = 0xffffffff;

/// One execution of a block.
struct Range {
    std::uint32_t edge{};              ///< block id * 2 + taken: also the index into an array of counts
    std::uint32_t offset{};            ///< offset of its packet, minus Batch::base
    std::uint32_t cycles = no_cycles;  ///< cycle count that came with it, or no_cycles
    std::uint32_t times = 1;           ///< more than 1 if the unit itself compresses loops

    [[nodiscard]] constexpr std::uint32_t block() const { return edge >> 1; }
    [[nodiscard]] constexpr bool taken() const { return (edge & 1) != 0; }
};

enum class TraceOnReason : std::uint8_t {
    begin,          ///< synchronised at a periodic point, at the beginning or after a gap: tracing was on already
    enabled,        ///< tracing was off by the unit's programming: a filter, a prohibited region
    overflow,       ///< the unit's FIFO overflowed: an unknown stretch of execution is missing
    debug_restart,  ///< the core left Debug state
    recovered       ///< inferred without a synchronisation point, like everything up to the next TraceOn or gap
};

/// Tracing begins, or begins again; execution since the previous element is unknown.
struct TraceOn {
    TraceOnReason reason{};
    std::uint32_t cycles = no_cycles;  ///< cycles since the last cycle count
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
    std::optional<std::uint8_t> el{};           ///< exception level, 0 to 3; absent: not in the protocol

    [[nodiscard]] constexpr Security security() const {
        return nse ? (ns ? Security::realm : Security::root) : (ns ? Security::non_secure : Security::secure);
    }
    /// The memory from which code is fetched in this state.
    [[nodiscard]] isa::Space space() const { return {ns, hyp, context_id, vmid, nse}; }
    friend bool operator==(const Context&, const Context&) = default;
};

struct Timestamp {
    std::uint64_t value{};             ///< in natural binary, in ticks of the trace timestamp
    bool known = true;                 ///< false: its high part was lost; `value` has only the sent bits
    bool frequency_changed{};          ///< the processor clock changed since the previous one
    std::uint32_t cycles = no_cycles;  ///< cycles since the last cycle count
    bool counted_again{};              ///< the next cycle count includes `cycles`, so sums leave them out
};

struct Exception {
    const ExceptionType* type = &unknown_exception;  ///< never null; in static storage
    std::optional<Address> preferred_return;         ///< where execution would continue, if known
    std::optional<Address> vector;                   ///< address of the handler; absent if the unit hides it
    std::uint32_t cycles = no_cycles;                ///< cycles since the last cycle count
};

struct ExceptionReturn {};

/// The program image has no code at this address; flow is unknown up to the next traced address.
struct NoMemory {
    Address address{};
};

/// The unit's trigger.
struct Trigger {};

/// Outcomes of waypoint instructions that cannot be placed, because there is no image or the address is unknown:
/// outcomes of consecutive packets, up to the next packet of another kind.
struct Atoms {
    std::uint64_t taken{}, not_taken{};
};

/// A waypoint update shows that the instruction at this address was executed, but the image does not show the path
/// there.
struct Reached {
    Address address{};
};

/// Instructions were executed from `from` on, and then execution was at `to`; the trace does not contain the path
/// between them (a Q element of ETMv4 and ETE).
struct Untraced {
    Address from{}, to{};
    std::uint64_t instructions{};  ///< number of instructions; 0: unknown
    bool from_known = true;        ///< false: `from` is unknown
};

/// An event other than flow and time.
struct Mark {
    enum class Kind : std::uint8_t {
        unit_events,          ///< events of the trace unit: bit n of `value` is event n
        timestamp_marker,     ///< the place that the next timestamp belongs to
        transaction_inside,   ///< tracing began inside a transaction
        transaction_started,  ///< the outermost transaction
        transaction_committed,
        transaction_failed,  ///< code that ran since the transaction began had no effect; an address follows
        instrumentation,     ///< `value` from the program, which ran at exception level `level`
        uncommitted,         ///< `value` P0 elements before this were neither committed nor cancelled when trace ended
        overflow_at_end      ///< the FIFO overflowed, and trace ended before tracing began again
    } kind{};
    std::uint64_t value{};
    std::uint8_t level{};
};

/// A cycle count that came separately from ranges.
struct Cycles {
    /// The code that ran in these cycles.
    enum class Of : std::uint8_t {
        unknown,  ///< not known
        flow,     ///< the flow since the previous cycle count
        ranges    ///< the same flow, whose ranges have these cycles already (CycleSpread): sums must skip this one
    };
    std::optional<std::uint32_t> cycles{};  ///< nullopt: cycles passed, but the unit does not know how many
    Of of = Of::unknown;
    bool several{};             ///< Of::ranges: it was spread over more than one
    bool off{};                 ///< Of::ranges: it includes cycles in which tracing was off
    std::uint32_t threshold{};  ///< smallest count that the unit sends; 0: any
};

/// Trace and image (or trace and configuration) contradict each other.
enum class Conflict : std::uint8_t {
    sync_disagrees,     ///< a periodic sync has another address, instruction set or context than the walk reached
    branch_disagrees,   ///< a branch packet has another target than the direct branch it belongs to
    update_behind,      ///< a waypoint update, source or return address is a place that execution has already passed
    no_return_address,  ///< a taken indirect branch has no address, and no return stack entry explains it
    undefined_reached,  ///< the walk ran into a permanently undefined instruction
    runaway_walk,       ///< no waypoint within the longest plausible block
    update_disagrees,  ///< as before, but the address is beyond a waypoint instruction, inside an instruction, or not a
                       ///< waypoint
    vmid_missing,      ///< VMIDs are traced, but none came between an I-sync and the next atom or branch packet
    always_taken,      ///< an outcome states that an unconditional branch was not taken
    address_disagrees,  ///< an address differs from the place of execution, although nothing before leads away from it
    no_exception_return,  ///< an exception return is reported, but the last executed instruction is not one
    time_goes_back,       ///< a timestamp is less than the previous one (`found`: previous; `expected`: this one)
};
/// Whether the code before and the code after such a contradiction do not belong together.
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
/// Whether the place of execution is unknown until the trace gives an address.
[[nodiscard]] constexpr bool loses_place(Conflict conflict) {
    return cuts_flow(conflict) && conflict != Conflict::sync_disagrees && conflict != Conflict::address_disagrees;
}
/// Whether the contradiction concerns flow, not just the trace.
[[nodiscard]] constexpr bool concerns_flow(Conflict conflict) {
    return conflict != Conflict::vmid_missing && conflict != Conflict::no_exception_return &&
           conflict != Conflict::time_goes_back;
}
struct Inconsistency {
    Conflict conflict{};
    Address found{};     ///< address that the walk has reached or the image gives
    Address expected{};  ///< address in the trace, if there is one
};

using What = std::variant<Gap, TraceOn, Context, Timestamp, Exception, ExceptionReturn, NoMemory, Trigger, Cycles,
                          Inconsistency, Atoms, Reached, Untraced, Mark>;

/// An element that is not a range, in its place among the ranges.
struct Event {
    std::uint32_t before{};  ///< it happened before ranges[before] of its batch
    Offset offset{};         ///< of its packet
    What what;
};

/// Ranges of a batch that a decoder handled as one unit, since it had met them before. Repeats with equal numbers have
/// the same sequence of edges. Each range is one execution, without a cycle count, and there are no events between the
/// ranges.
struct Repeat {
    std::uint64_t number{};  ///< unique among all decoders that feed this sink
    std::uint32_t first{};   ///< index of its first range
    std::uint32_t count{};   ///< number of its ranges, at least 1
};

/// Consecutive elements of one source. Borrowed: valid during Sink::consume().
struct Batch {
    std::span<const Block> blocks;  ///< all blocks so far; `range.block()` is an index into it
    Offset base{};                  ///< of Range::offset
    std::span<const Range> ranges;
    std::span<const Event> events;  ///< in order; `before` never decreases
    /// For sinks that use repeats: the ranges that occurred before, in order, without overlaps.
    std::span<const Repeat> repeats{};
};

/// From a taken indirect branch to the place where execution continued.
struct EdgeWay {
    static constexpr std::uint32_t no_block = 0xffffffff;
    std::uint32_t edge{};
    std::uint32_t block{};  ///< or `no_block`: no instruction that could run is known there
    std::uint64_t times{};
    friend bool operator==(const EdgeWay&, const EdgeWay&) = default;
};

/// The execution count of each edge, over all batches that a sink would have received.
struct EdgeCounts {
    std::span<const Block> blocks;
    std::span<const std::uint64_t> times;  ///< by Range::edge; edges beyond its end never ran
    std::uint64_t cycles{};                ///< the sum of the cycle counts that came with ranges
    std::span<const EdgeWay> ways{};       ///< on request; each pair of edge and block occurs once
    std::uint64_t ways_left_out{};         ///< ways dropped because the table was full
};

/// How a sink may be split among workers.
enum class Split : std::uint8_t {
    none,
    per_chunk,    ///< pieces of the stream, joined in trace order
    when_behind,  ///< like that, but forks cost more than the sink itself: they only take parts for which it has no
                  ///< time
    per_worker
};

/// Receives the output of a decoder.
class Sink {
public:
    virtual ~Sink() = default;
    /// Batches come in trace order.
    virtual void consume(const Batch& batch) = 0;
    /// For a sink that stores ranges: memory for at least `least` of them. A writer puts ranges there, one batch after
    /// the other with the same base if possible, and asks again when it needs more memory. Empty: batches are in the
    /// writer's own memory, which it reuses.
    [[nodiscard]] virtual std::span<Range> room(std::size_t least) {
        (void)least;
        return {};
    }
    /// True if `take_counts` should deliver the ranges, which is faster. In batches, ranges with `times` 0 stand for
    /// them.
    [[nodiscard]] virtual bool counts_suffice() const { return false; }
    /// True if the counts must include the targets of indirect branches.
    [[nodiscard]] virtual bool wants_ways() const { return false; }
    /// Called once, at the end of a stream; only if counts suffice.
    virtual void take_counts(const EdgeCounts&) {}
    /// Whether cycle counts that come separately should be spread over the ranges they cover (CycleSpread).
    [[nodiscard]] virtual bool wants_cycles_in_ranges() const { return false; }
    /// The kinds of splitting: a listing may be formatted by chunk, counts may be summed by worker; `none` is always
    /// right.
    [[nodiscard]] virtual Split split() const { return Split::none; }
    /// An empty sink for use beside this one. Only called if split() is not `none`.
    [[nodiscard]] virtual std::unique_ptr<Sink> fork() const { return {}; }
    /// With per_chunk, called on a fork first: the context at the beginning of its part.
    virtual void begin_at(const Context&) {}
    /// Adds the results of a fork; with per_chunk, in trace order.
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
