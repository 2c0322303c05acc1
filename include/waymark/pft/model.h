/// A Program Trace Macrocell as a model: executed instructions and events → exactly the bytes that the hardware would
/// send (docs/spec/pft.md, section 5). It shares packets, their codecs and compress() with the decoders; callers pass
/// decoded instructions.
///
///     ByteCollector trace;
///     ModelConfig config;
///     config.registers.cr.cycle_accurate = true;
///     Model model(config, trace);
///     model.start({{{0x8000}, Isa::a32}, ns, hyp, cycle});
///     model.retire_block(first, waypoint, bytes_before);   // for each waypoint instruction …
///     model.finish();
///
/// Events come in the order in which they happened, and cycles never decrease. Callers also pass changes that occur
/// while the Programming bit is set, in Debug state or where tracing is prohibited: the model knows which of them a
/// trace shows.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "waymark/core/byte_sink.h"
#include "waymark/flow/register_access.h"
#include "waymark/flow/unit.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/config.h"
#include "waymark/pft/registers.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

/// Choices of output that the specification leaves to the implementation, or that are unclear in it. Section 9 has the
/// names of open questions (OQ); the defaults are its best guesses.
struct ModelChoices {
    /// OQ1: whether an address after a waypoint update is compressed against it. `either` sends enough bytes for both
    /// interpretations.
    enum class UpdateBase : std::uint8_t { either, is_base, is_not_base } update_base = UpdateBase::either;
    /// OQ2: number of entries of the return stack; a Cortex-A15 behaves as with 1.
    std::uint8_t return_stack_depth = 1;
    /// OQ3: a return that matches the return stack but changes the security state or returns from an exception.
    enum class MatchedChange : std::uint8_t {
        packet_keeps_entry,
        packet_pops_entry
    } matched_change = MatchedChange::packet_keeps_entry;
    /// OQ4: the address in the waypoint update of a large block, and the size that is compared with 4096.
    enum class LargeBlockAddress : std::uint8_t {
        instruction_before,
        waypoint
    } large_block_address = LargeBlockAddress::instruction_before;
    enum class LargeBlockTest : std::uint8_t { distance, length } large_block_test = LargeBlockTest::distance;
    /// OQ5: the times at which information byte 1 is sent for HYP: whenever HYP is or was set (right for both
    /// interpretations), or only when it changes.
    enum class HypInformation : std::uint8_t {
        set_or_changed,
        changed
    } hyp_information = HypInformation::set_or_changed;
    /// OQ6: the result of a cycle count that does not fit in 32 bits: the largest count, and 0 in the I-sync if an
    /// I-sync is the next packet with a count; the largest count; or the remainder.
    enum class CycleOverflow : std::uint8_t {
        saturate_zero_isync,
        saturate,
        wrap
    } cycle_overflow = CycleOverflow::saturate_zero_isync;
    /// OQ7: the effect of a block that both start and stop comparators match. It is traced, and tracing is then off if
    /// the start/stop block was on before, and on if it was off; or always off; or always on.
    enum class StartAndStop : std::uint8_t { turns, off, on } start_and_stop = StartAndStop::turns;
    /// OQ8: the packet for a barrier that executed, under branch broadcast.
    enum class BroadcastBarrier : std::uint8_t { atom, packet } broadcast_barrier = BroadcastBarrier::atom;
    /// OQ10: the packet at entry to a prohibited region by an exception or branch: a packet with address 0, or none.
    enum class ProhibitedEntry : std::uint8_t {
        address_zero,
        nothing
    } prohibited_entry = ProhibitedEntry::address_zero;
    /// OQ11: whether a branch packet of less than five bytes may contain state-change information.
    bool short_information = true;
    /// OQ13: whether an A-sync precedes the I-sync of a restart after overflow.
    bool overflow_async = false;
    /// OQ14: whether entry to Hyp mode (exception 3) makes the last executed instruction a waypoint, as an SVC does.
    bool hyp_entry_updates = true;
    /// OQ15: whether pending atoms are sent before an A-sync too.
    bool async_flushes_atoms = false;
    /// OQ16: the timestamp requests by events that pass: only if something was traced since the last timestamp, or all.
    enum class TimestampFilter : std::uint8_t { traced_since, none } timestamp_filter = TimestampFilter::traced_since;
    /// OQ17: the security state and HYP in an exception packet: the handler's state, or the state before the exception.
    enum class ExceptionState : std::uint8_t { handler, interrupted } exception_state = ExceptionState::handler;

    /// Size of the FIFO in bytes, at least 24; 0: it never fills. Bytes that do not fit are lost until the FIFO is
    /// empty again (5.5).
    std::uint32_t fifo_bytes = 0;
    /// `drain_bytes` bytes leave the FIFO in `drain_cycles` cycles.
    std::uint32_t drain_bytes = 4, drain_cycles = 1;
    /// Whether the I-sync at a restart of tracing requests a timestamp. Section 5.5 has this from general knowledge; a
    /// Cortex-A15 does so only if synchronisation was also requested.
    bool trace_on_timestamp = false;
    /// Number of waypoints between a periodic A-sync and its I-sync; hardware shows 0 to 5.
    std::uint8_t isync_delay_waypoints = 0;
    /// v1.0: number of cycles from the waypoint to its packet, whose time a timestamp carries (5.5).
    std::uint8_t packet_delay_cycles = 0;

    /// The timestamp bus: ticks = first + cycle * numerator / denominator, unless set_timestamp() says otherwise.
    std::uint64_t timestamp_first = 0;
    std::uint32_t timestamp_numerator = 0, timestamp_denominator = 1;

    bool operator==(const ModelChoices&) const = default;
};

struct ModelConfig {
    Registers registers;
    ModelChoices choices;
    /// The settings that decide the form of packets, for decoders of this trace.
    [[nodiscard]] Config packets() const { return Config::from_registers(registers.cr, registers.ccer, registers.idr); }
};

/// The place and state in which execution continues.
struct Arrival {
    Place place;
    bool ns{}, hyp{};
    std::uint64_t cycle{};
};

/// An instruction that completed (5.1). SVC, SMC, HVC and undefined instructions that raise their exception complete
/// too, and the exception follows. Instructions that a fault or breakpoint stopped do not complete and are not passed.
struct Retired {
    Address address{};
    Isa isa{};
    isa::Instruction instruction{};  ///< decode_instr()'s answer; of the target, `next` is what counts
    bool passed = true;              ///< its condition held; of a barrier: it executed
    bool dmb_dsb = false;  ///< it is a DMB or DSB, which may request a timestamp even if it is no waypoint (5.5)
    Place next{};          ///< waypoint instructions: where execution continued
    bool ns{}, hyp{};      ///< after it
    std::uint64_t cycle{};
};

using flow::RetiredBlock;

/// Numbers of section 2.5 with a meaning to the model.
namespace exceptions {
inline constexpr std::uint32_t none = 0, debug_entry = 1, hyp_entry = 3, reset = 8;
}

struct ExceptionTaken {
    std::uint32_t number{};  ///< 2.5; not 1: that is debug_entry()
    Place vector{};
    bool ns{}, hyp{};  ///< in the handler
    std::uint64_t cycle{};
    /// The instruction that raised the exception, if it counts as executed (SVC, SMC, HVC, Undefined) and was not
    /// passed to retire() or run(). The waypoint update gives its address; otherwise the address of the last
    /// instruction executed since the last waypoint, if there is one (4.7).
    std::optional<Place> raised_by{};
    std::uint8_t raised_by_bytes = 4;
};

/// The permission of the authentication signals.
struct Authentication {
    bool non_invasive = true;         ///< NIDEN or DBGEN
    bool secure_non_invasive = true;  ///< and SPNIDEN or SPIDEN: tracing in Secure state too
    bool operator==(const Authentication&) const = default;
};

/// Counts of the model, for callers that store the truth beside the trace.
struct ModelCounts {
    std::uint64_t waypoints = 0;   ///< waypoint instructions and exceptions in the trace
    std::uint64_t untraced = 0;    ///< waypoints that TraceEnable, a prohibited region or the Programming bit kept out
    std::uint64_t overflowed = 0;  ///< waypoints lost to a full FIFO
    std::uint64_t overflows = 0;   ///< how often the FIFO filled
    std::uint64_t bytes = 0;       ///< of trace
    std::uint64_t instructions = 0;  ///< given by retire(); run() and retire_block() count as one and two
    bool operator==(const ModelCounts&) const = default;
};

/// In AccessResult, `not_idle` is for registers that are written only while the Programming bit is set.
using flow::Requester, flow::AccessResult, flow::ReadResult;

class Model {
public:
    /// `trace` is borrowed, and receives whole packets.
    Model(const ModelConfig& config, ByteSink& trace);
    ~Model();

    // ---- execution

    /// Clears the Programming bit, with execution at `first`. Call it once before anything else; set_programming stops
    /// and starts again later.
    void start(const Arrival& first);
    /// Takes one instruction, which may be a waypoint.
    void retire(const Retired& instruction);
    /// Takes consecutive instructions from the place of execution on, without waypoint instructions and changes of the
    /// security state: `bytes` long in total, the last one `last_bytes` long. No effect if `bytes` is 0.
    void run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle);
    /// The fast way: a run of ordinary instructions up to and including a waypoint instruction. `bytes_before`: size of
    /// the instruction before the waypoint; 0 if execution came directly to the waypoint.
    void retire_block(const Retired& waypoint, std::uint8_t bytes_before);
    /// Calls retire_block() for each block, with the same output. Returns the number of blocks it took: all blocks, or
    /// the blocks up to and including the first one at which counts().overflowed increased.
    [[nodiscard]] std::size_t retire_blocks(std::span<const RetiredBlock> blocks, bool ns, bool hyp);
    /// The function of flow::Unit: prepares a repeated sequence of blocks.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(Place from, std::uint64_t cycle,
                                                                  std::span<const RetiredBlock> blocks) const;
    [[nodiscard]] std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences, bool ns, bool hyp);
    void exception(const ExceptionTaken& taken);
    /// Execution moved elsewhere on an unknown path, such as a system call whose kernel side is not recorded. Pending
    /// packets are sent, and an I-sync with reason 1 precedes the next traced instruction.
    void discontinuity(const Arrival& next);
    void debug_entry(std::uint64_t cycle);
    void debug_exit(const Arrival& restart);
    /// The core waits (WFI, WFE): everything pending is sent, tracing continues (1.1).
    void wait(std::uint64_t cycle);

    /// Sets the Context ID or VMID from here on: immediately after a waypoint; inside a block, from the next waypoint
    /// on (4.8).
    void set_context_id(std::uint32_t value);
    void set_vmid(std::uint8_t value);
    /// Sets User or a privileged mode: resources may depend on it; trace does not show it.
    void set_user_mode(bool user);

    // ---- signals

    void set_authentication(const Authentication& signals);
    /// The present value of the timestamp bus: set it before the instructions that run at that time, and before
    /// start().
    void set_timestamp(std::uint64_t ticks);
    /// The processor clock changed its frequency: the next timestamp reports it.
    void clock_changed();
    /// Inputs: external inputs 1 to 4, extended external inputs 0 to 255 with the numbers of ETMEXTINSELR, EmbeddedICE
    /// watchpoints 1 to 8, instrumentation resources 1 to 4.
    void set_external_input(unsigned number, bool level);
    void set_extended_input(unsigned number, bool level);
    void set_watchpoint(unsigned number, bool level);
    void set_instrumentation(unsigned number, bool level);
    /// Requests synchronisation, as the trace bus may (5.5).
    void request_sync();
    /// Sends pending packets, as a flush of the trace bus does.
    void flush();
    /// Sets or clears the Programming bit. Setting it also stands for OS lock and power-down: tracing stops at once
    /// (5.3).
    void set_programming(bool set, std::uint64_t cycle);
    /// Sets the Programming bit and passes the rest to the sink.
    void finish();

    // ---- registers, during execution (docs/spec/pft.md, 3.1)

    /// Writes a register by its number (pft/access.h). Bits that the unit lacks are ignored. Trace registers are
    /// writable only while the unit is stopped: by the Programming bit, the power-down bit of ETMCR, or the OS Lock. A
    /// write that stops the unit sends pending packets. When nothing stops it any more, tracing begins again with an
    /// A-sync, and resources continue with the contents of ETMCNTVR, ETMSQR and ETMSR.
    AccessResult write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from = Requester::software);
    /// Reads a register: counters, sequencer and ETMSR have their present values.
    ReadResult read(unsigned number, std::uint64_t cycle, Requester from = Requester::software);
    /// Sets the power of the core domain. Without power, and without ETMPDCR, unsent packets and the programming are
    /// lost; ETMPDSR shows this when power is back.
    void set_power(bool on, std::uint64_t cycle);
    /// All registers with their present values, even if locks are set.
    [[nodiscard]] Registers registers() const;

    // ---- results

    [[nodiscard]] const ModelCounts& counts() const;
    /// Whether the next waypoint would be traced without an I-sync before it.
    [[nodiscard]] bool tracing() const;
    /// ETMSR.
    [[nodiscard]] Etmsr status() const;
    /// `called` is called whenever the trigger event becomes true, unless the Programming bit is set: after all earlier
    /// packets, and before the Trigger packet. It must not call the model.
    void on_trigger(std::function<void()> called);
    /// The state of external output `number`, 1 to 4.
    [[nodiscard]] bool external_output(unsigned number) const;

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

}  // namespace waymark::pft
