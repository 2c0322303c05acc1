/// A Program Trace Macrocell as a model: executed instructions and events → exactly the bytes the hardware would send
/// (docs/spec/pft.md, section 5). It shares packets, their codecs and compress() with the decoders; callers give it
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
/// Events come in the order in which they happened, cycles never decrease. What changes while the Programming bit is
/// set, in Debug state or where tracing is prohibited is given as well: the model knows which part of it a trace shows.
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
    /// OQ1: is an address behind a waypoint update compressed against it? `either` sends enough bytes for both
    /// readings.
    enum class UpdateBase : std::uint8_t { either, is_base, is_not_base } update_base = UpdateBase::either;
    /// OQ2: entries of the return stack; Cortex-A15 behaves as with 1.
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
    /// OQ5: when information byte 1 is sent for HYP: whenever HYP is or was set (right for both readings), or only when
    /// it changes.
    enum class HypInformation : std::uint8_t {
        set_or_changed,
        changed
    } hyp_information = HypInformation::set_or_changed;
    /// OQ6: a cycle count that does not fit in 32 bits: the largest, and 0 in the I-sync where an I-sync is the next to
    /// carry one; the largest; or the remainder.
    enum class CycleOverflow : std::uint8_t {
        saturate_zero_isync,
        saturate,
        wrap
    } cycle_overflow = CycleOverflow::saturate_zero_isync;
    /// OQ7: a block that both start and stop comparators match: traced, then off again if the start/stop block was on
    /// before and on if it was off; or always off; or always on.
    enum class StartAndStop : std::uint8_t { turns, off, on } start_and_stop = StartAndStop::turns;
    /// OQ8: a barrier that executed, under branch broadcast.
    enum class BroadcastBarrier : std::uint8_t { atom, packet } broadcast_barrier = BroadcastBarrier::atom;
    /// OQ10: entry to a prohibited region by an exception or branch: a packet with address 0, or nothing.
    enum class ProhibitedEntry : std::uint8_t {
        address_zero,
        nothing
    } prohibited_entry = ProhibitedEntry::address_zero;
    /// OQ11: state-change information may stand on a branch packet of under five bytes.
    bool short_information = true;
    /// OQ13: an A-sync stands before the I-sync of a restart after overflow.
    bool overflow_async = false;
    /// OQ14: entry to Hyp mode (exception 3) upgrades the last executed instruction, as an SVC does.
    bool hyp_entry_updates = true;
    /// OQ15: pending atoms are sent before an A-sync too.
    bool async_flushes_atoms = false;
    /// OQ16: which timestamp requests by events pass: only if something was traced since the last timestamp, or all.
    enum class TimestampFilter : std::uint8_t { traced_since, none } timestamp_filter = TimestampFilter::traced_since;
    /// OQ17: the security state and HYP in an exception packet: the handler's state, or the state before the exception.
    enum class ExceptionState : std::uint8_t { handler, interrupted } exception_state = ExceptionState::handler;

    /// The FIFO, in bytes, at least 24; 0: it never fills. Bytes that do not fit are lost until the FIFO is empty again
    /// (5.5).
    std::uint32_t fifo_bytes = 0;
    /// `drain_bytes` bytes leave the FIFO in `drain_cycles` cycles.
    std::uint32_t drain_bytes = 4, drain_cycles = 1;
    /// Where tracing begins again, its I-sync asks for a timestamp. 5.5 has this from general knowledge; a Cortex-A15
    /// does so only where synchronisation was requested too.
    bool trace_on_timestamp = false;
    /// Number of waypoints between a periodic A-sync and its I-sync; hardware shows 0 to 5.
    std::uint8_t isync_delay_waypoints = 0;
    /// v1.0: a timestamp carries the time of its packet; cycles from the waypoint to the packet (5.5).
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

/// Where execution continues, and in which state.
struct Arrival {
    Place place;
    bool ns{}, hyp{};
    std::uint64_t cycle{};
};

/// An instruction that completed (5.1). SVC, SMC, HVC and undefined instructions that raise their exception complete
/// too, and are followed by it; one that a fault or breakpoint stopped does not and is not given.
struct Retired {
    Address address{};
    Isa isa{};
    isa::Instruction instruction{};  ///< decode_instr()'s answer; of the target, `next` is what counts
    bool passed = true;              ///< its condition held; of a barrier: it executed
    bool dmb_dsb = false;            ///< it is a DMB or DSB, waypoint instruction or not: may ask for a timestamp (5.5)
    Place next{};                    ///< waypoint instructions: where execution continued
    bool ns{}, hyp{};                ///< after it
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
    /// The instruction that raised it, where it counts as executed (SVC, SMC, HVC, Undefined) and was not given by
    /// retire() or run(). The waypoint update names it; else the last instruction executed since the last waypoint, if
    /// there is one (4.7).
    std::optional<Place> raised_by{};
    std::uint8_t raised_by_bytes = 4;
};

/// The permission of the authentication signals.
struct Authentication {
    bool non_invasive = true;         ///< NIDEN or DBGEN
    bool secure_non_invasive = true;  ///< and SPNIDEN or SPIDEN: tracing in Secure state too
    bool operator==(const Authentication&) const = default;
};

/// Counts of the model, for a truth beside the trace.
struct ModelCounts {
    std::uint64_t waypoints = 0;   ///< waypoint instructions and exceptions in the trace
    std::uint64_t untraced = 0;    ///< waypoints that TraceEnable, a prohibited region or the Programming bit kept out
    std::uint64_t overflowed = 0;  ///< waypoints lost to a full FIFO
    std::uint64_t overflows = 0;   ///< how often the FIFO filled
    std::uint64_t bytes = 0;       ///< of trace
    std::uint64_t instructions = 0;  ///< given by retire(); run() and retire_block() count as one and two
    bool operator==(const ModelCounts&) const = default;
};

/// Of AccessResult, `not_idle` is for registers that are written while the Programming bit is set only.
using flow::Requester, flow::AccessResult, flow::ReadResult;

class Model {
public:
    /// `trace` is borrowed, and gets whole packets.
    Model(const ModelConfig& config, ByteSink& trace);
    ~Model();

    // ---- execution

    /// Clears the Programming bit, with execution standing at `first`. Called once before anything else;
    /// set_programming stops and starts again later.
    void start(const Arrival& first);
    /// One instruction, waypoint or not.
    void retire(const Retired& instruction);
    /// Consecutive instructions from the place of execution on, none of them a waypoint instruction and none with
    /// another security state behind it: `bytes` long in all, the last `last_bytes` long. Nothing if `bytes` is 0.
    void run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle);
    /// The quick way: a run of ordinary instructions up to and including a waypoint instruction. `bytes_before`: size
    /// of the instruction before it; 0 if execution came straight to it.
    void retire_block(const Retired& waypoint, std::uint8_t bytes_before);
    /// Calls retire_block() for each block, with the same output. Returns the number of blocks it took: all, or the
    /// blocks up to and including the first one that raised counts().overflowed.
    [[nodiscard]] std::size_t retire_blocks(std::span<const RetiredBlock> blocks, bool ns, bool hyp);
    /// As flow::Unit: prepares a sequence of blocks that comes again and again.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(Place from, std::uint64_t cycle,
                                                                  std::span<const RetiredBlock> blocks) const;
    [[nodiscard]] std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences, bool ns, bool hyp);
    void exception(const ExceptionTaken& taken);
    /// Execution went elsewhere unnoticed, such as a system call whose kernel side nobody records: what was
    /// pending is sent, and the next traced instruction is preceded by an I-sync with reason 1.
    void discontinuity(const Arrival& next);
    void debug_entry(std::uint64_t cycle);
    void debug_exit(const Arrival& restart);
    /// The core waits (WFI, WFE): everything pending is sent, tracing continues (1.1).
    void wait(std::uint64_t cycle);

    /// The Context ID or VMID from here on: behind a waypoint, at once; inside a block, from the next waypoint on
    /// (4.8).
    void set_context_id(std::uint32_t value);
    void set_vmid(std::uint8_t value);
    /// User or a privileged mode: resources may ask for it; trace does not show it.
    void set_user_mode(bool user);

    // ---- signals

    void set_authentication(const Authentication& signals);
    /// The present value of the timestamp bus: set it before the instructions that run at that time, and before
    /// start().
    void set_timestamp(std::uint64_t ticks);
    /// The frequency of the processor clock changed: the next timestamp says so.
    void clock_changed();
    /// External inputs 1 to 4, extended external inputs 0 to 255 as ETMEXTINSELR numbers them, EmbeddedICE watchpoints
    /// 1 to 8, instrumentation resources 1 to 4.
    void set_external_input(unsigned number, bool level);
    void set_extended_input(unsigned number, bool level);
    void set_watchpoint(unsigned number, bool level);
    void set_instrumentation(unsigned number, bool level);
    /// Asks for synchronisation, as the trace bus may (5.5).
    void request_sync();
    /// Sends pending packets, as a flush of the trace bus does.
    void flush();
    /// The Programming bit; setting it also stands for OS lock and power-down: tracing stops at once (5.3).
    void set_programming(bool set, std::uint64_t cycle);
    /// Sets the Programming bit and gives the sink the rest.
    void finish();

    // ---- registers, during execution (docs/spec/pft.md, 3.1)

    /// Writes a register by its number (pft/access.h). Bits that the unit does not have are ignored. Registers that
    /// trace are writable while the unit is stopped only: by the Programming bit, the power-down bit of ETMCR, or the
    /// OS Lock. A write that stops the unit sends pending packets. When nothing stops it any more, tracing begins anew,
    /// A-sync first, and resources go on from what ETMCNTVR, ETMSQR and ETMSR hold.
    AccessResult write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from = Requester::software);
    /// Reads a register: counters, sequencer and ETMSR have their present values.
    ReadResult read(unsigned number, std::uint64_t cycle, Requester from = Requester::software);
    /// Power of the core domain. Without it, and without ETMPDCR, unsent packets and the programming are lost; ETMPDSR
    /// says so when power is back.
    void set_power(bool on, std::uint64_t cycle);
    /// All registers with their present values, also when locks are set.
    [[nodiscard]] Registers registers() const;

    // ---- results

    [[nodiscard]] const ModelCounts& counts() const;
    /// The next waypoint would be traced without an I-sync before it.
    [[nodiscard]] bool tracing() const;
    /// ETMSR.
    [[nodiscard]] Etmsr status() const;
    /// `called` is called whenever the trigger event begins to be true, unless the Programming bit is set: after all
    /// earlier packets, and before the Trigger packet. It must not call the model.
    void on_trigger(std::function<void()> called);
    /// External outputs 1 to 4.
    [[nodiscard]] bool external_output(unsigned number) const;

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

}  // namespace waymark::pft
