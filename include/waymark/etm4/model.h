/// An ETMv4 or ETE trace unit as a model: executed instructions and events → exactly the bytes that the unit would send
/// (docs/spec/etm4-registers.md, section 2; docs/spec/etm4.md, sections 3 to 11). It shares packets, their codecs and
/// compress() with the decoders; callers pass decoded instructions.
///
///     ByteCollector trace;
///     ModelConfig config{.registers = tracing_registers(Config{...})};
///     Model model(config, trace);
///     model.set_context(context);
///     model.start({{{0x8000}, Isa::a64}, cycle});
///     model.retire_block(p0_instruction, bytes_before);   // for each P0 instruction …
///     model.finish();
///
/// Events come in the order in which they happened, and cycles never decrease. Callers also pass everything that
/// happens while the unit is disabled or where tracing is prohibited: the model decides what may be seen.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "waymark/core/byte_sink.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/registers.h"
#include "waymark/flow/register_access.h"
#include "waymark/flow/unit.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/place.h"

namespace waymark::etm4 {

/// Choices of output that the specification leaves to the implementation. Names in backquotes are the switches of
/// docs/spec/etm4-registers.md, section 4; defaults are the values recommended there.
struct ModelChoices {
    /// `return_stack_depth`: number of entries, up to 15.
    std::uint8_t return_stack_depth = 3;
    /// `exception_combined`: an exception at the target of an indirect branch gives that address only once (E = 10).
    bool folds_exception_address = true;
    /// `n_atom_omission`, ETE: a taken P0 instruction is sent as a Source Address if at least this number of atoms wait
    /// and all are N. nullopt: never.
    std::optional<std::uint8_t> source_address_after{};
    /// Whether Cycle Count packets of format 2 are used. OpenCSD 1.3.3 misreads them (docs/spec/etm4.md, 16).
    bool cycle_count_format_2 = true;
    /// `q_policy`: one block in `q_one_in` is sent as a Q element, chosen by `seed`; 0: never. Requires a unit with Q
    /// elements (TRCCONFIGR.QE). Excluded are blocks for which a Q element would hide more than the outcome: blocks
    /// with an exception return, in T32, or ending with a branch to the next instruction. A Q element does not affect
    /// the return stack.
    std::uint32_t q_one_in = 0;
    /// `commit_group`: maximum number of P0 elements that wait for a Commit packet; 0: half of MAXSPEC.
    std::uint32_t commit_after = 0;
    /// The core mispredicts one conditional branch in `mispredict_one_in`, chosen by `seed`; 0: none. Requires MAXSPEC
    /// of 2 or more. The wrong path is invented, and cancelled: the executed code does not change.
    std::uint32_t mispredict_one_in = 0;
    /// Some of these branches are committed before the Mispredict packet inverts their outcome, which 2.16 allows.
    /// OpenCSD 1.3.3 reports that as an error.
    bool mispredict_committed = false;
    std::uint64_t seed = 1;

    /// `overflow_bytes`: size of the FIFO in bytes, at least 64; 0: it never fills. Packets that do not fit are lost,
    /// and tracing begins again when the FIFO is empty.
    std::uint32_t fifo_bytes = 0;
    /// `drain_bytes` bytes leave the FIFO in `drain_cycles` cycles.
    std::uint32_t drain_bytes = 4, drain_cycles = 1;

    /// Trace time: ticks = first + cycle * numerator / denominator.
    std::uint64_t timestamp_first = 0;
    std::uint32_t timestamp_numerator = 1, timestamp_denominator = 1;

    bool operator==(const ModelChoices&) const = default;
};

struct ModelConfig {
    /// The programming before TRCPRGCTLR.EN is set, with the ID registers of the unit.
    Registers registers;
    CoreProfile profile = CoreProfile::a;
    ModelChoices choices{};
};

/// The registers of a unit with this configuration that traces everything: ViewInst is always active, no comparator is
/// used, and there is no periodic synchronisation. The unit has four pairs of address comparators, eight pairs of
/// resource selectors, a single-shot comparator, a Context ID and a VMID comparator, two counters and the sequencer,
/// and four external inputs.
[[nodiscard]] Registers tracing_registers(const Config& config);

/// The settings that decide the form of packets, and that decoders of this trace need.
[[nodiscard]] Config packets_of(const Registers& registers, CoreProfile profile);

/// Where execution continues.
struct Arrival {
    isa::Place place;
    std::uint64_t cycle{};
};

/// A P0 instruction that completed. Instructions that raise an exception (SVC, HVC, SMC, BRK, UDF) are not P0.
struct Retired {
    Address address{};
    isa::Isa isa{};
    isa::Instruction instruction{};  ///< result of decode_instr(); its target is ignored in favour of `next`
    bool passed = true;              ///< its condition; for a barrier: it executed
    isa::Place next{};               ///< where execution continued
    std::uint64_t cycle{};
};

using flow::RetiredBlock;

/// Numbers of exceptions with special treatment in the model (docs/spec/etm4.md, section 9); A and R profile.
namespace exceptions {
inline constexpr std::uint32_t pe_reset = 0, debug_halt = 1, system_error = 4, transaction_failure = 0x18;
}

struct ExceptionTaken {
    std::uint32_t type{};  ///< section 9
    /// The preferred return address; nullopt: the instruction that would have been next.
    std::optional<isa::Place> back{};
    /// Where execution continues; nullopt: at an unknown, untraced place, until discontinuity() is called.
    std::optional<isa::Place> handler{};
    std::uint64_t cycle{};
};

/// Counts of the model, for callers that store the truth beside the trace.
struct ModelCounts {
    std::uint64_t p0 = 0;  ///< P0 instructions and exceptions in the trace
    std::uint64_t untraced =
        0;  ///< P0 instructions and exceptions that were filtered, or ran while the unit was disabled
    std::uint64_t overflowed = 0;  ///< P0 instructions and exceptions lost to a full FIFO
    std::uint64_t overflows = 0;   ///< number of times the FIFO filled
    std::uint64_t cancelled = 0;   ///< P0 elements of wrong paths
    std::uint64_t bytes = 0;       ///< of trace
    bool operator==(const ModelCounts&) const = default;
};

/// Software accesses the registers by memory on an ETMv4, by MRS and MSR on an ETE (1.1). In AccessResult, `not_idle`
/// is for trace registers outside Idle (TRCSTATR), and for TRCPRGCTLR.EN between states; `locked` is for TRCLAR.
using flow::Requester, flow::AccessResult, flow::ReadResult;

class Model {
public:
    /// `trace` is borrowed. It receives whole packets.
    Model(const ModelConfig& config, ByteSink& trace);
    ~Model();

    // ---- execution

    /// Sets TRCPRGCTLR.EN; execution will continue at `first`. Call it at most once, before anything except
    /// set_context() and the functions on registers. If software enables the unit, call discontinuity() first instead.
    void start(const Arrival& first);
    /// Exception level, security state and identifiers after the next P0 instruction or exception, or after start() or
    /// discontinuity(), whichever comes first (2.13, step 3). The width follows from the instruction set.
    void set_context(const flow::Context& context);
    /// Consecutive instructions from the place of execution on, without a P0 instruction: `bytes` long in total. No
    /// effect if `bytes` is 0.
    void run(std::uint32_t bytes, std::uint64_t cycle);
    /// Ordinary instructions up to and including a P0 instruction.
    void retire_block(const Retired& p0);
    /// Calls retire_block() for each block, with the same output. Returns the number of blocks it took: all blocks, or
    /// the blocks up to and including the first one at which counts().overflowed increased.
    [[nodiscard]] std::size_t retire_blocks(std::span<const RetiredBlock> blocks);
    /// The function of flow::Unit: blocks that are repeated. nullptr if cycles are counted.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(const isa::Place& from,
                                                                  std::span<const RetiredBlock> blocks) const;
    [[nodiscard]] std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences);
    void exception(const ExceptionTaken& taken);
    /// Execution moved elsewhere on an unknown path, such as a system call whose kernel side is not recorded: the next
    /// traced block begins with a Trace On.
    void discontinuity(const Arrival& next);
    /// Debug state: nothing is traced inside (2.18).
    void debug_entry(std::uint64_t cycle);
    void debug_exit(const Arrival& restart);
    /// The core waits (WFI, WFE): all pending packets are sent.
    void wait(std::uint64_t cycle);

    // ---- transactions and instrumentation (ETE)

    /// After the P0 instruction TSTART of an outermost transaction.
    void transaction_start(std::uint64_t cycle);
    void transaction_commit(std::uint64_t cycle);
    /// Execution continues at `resume`; code that ran since the last P0 instruction is not in the trace.
    void transaction_fail(const Arrival& resume);
    /// TRCIT with this value at the current exception level. No effect on a unit without instrumentation packets.
    void instrument(std::uint64_t value, std::uint64_t cycle);

    // ---- requests and signals

    /// Asserts or deasserts external input selector 0 to 3 (2.11).
    void set_external_input(unsigned selector, bool level);
    /// The permission of the authentication interface (2.18, prohibited region): for Realm state as for Secure state,
    /// for Non-secure state of an ETE always. Without permission nothing is traced and comparators do not match, but
    /// the other resources continue. A Trace On follows.
    void set_permission(const flow::TracePermission& permission);
    /// Requests synchronisation, as the trace bus may.
    void request_sync();
    /// Sends pending packets, as for a flush of the trace bus.
    void flush();
    /// Clears TRCPRGCTLR.EN: pending elements and commits are sent. Software may set it again.
    void finish();

    // ---- registers, while execution continues (1.1 and 2.1)

    /// Writes the word at `offset` of the unit's 4 KB. Bits that the unit lacks are ignored. Trace registers are
    /// writable in Idle only: a clock after TRCPRGCTLR.EN was cleared, and when the FIFO has drained. Enabling takes
    /// effect at once, for code that runs from here on, and begins a session: A-sync, Trace Info, Trace On. Resources
    /// keep their state. Disabling sends pending packets and pauses the resources. The OS Lock disables too (2.1).
    AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle, Requester from = Requester::software);
    /// Reads the word. Counters, sequencer, start/stop, single-shot comparators and TRCRSR have their present values,
    /// whether the unit is enabled or not.
    ReadResult read(unsigned offset, std::uint64_t cycle, Requester from = Requester::software);
    /// The OS Lock of the processor, for a unit that has none of its own (TRCOSLSR.OSLM is 4, as in every ETE).
    void set_os_lock(bool locked, std::uint64_t cycle);
    /// Power of the core domain. Without it, and without TRCPDCR.PU, the session ends at once, packets that were not
    /// sent or committed are lost, and all programmable registers become 0; TRCPDSR.STICKYPD shows this when power is
    /// back.
    void set_power(bool on, std::uint64_t cycle);

    // ---- reading

    [[nodiscard]] const ModelCounts& counts() const;
    /// Whether the next block would be traced without a preceding Trace On.
    [[nodiscard]] bool tracing() const;
    /// `called` is called whenever event 0 becomes active while TRCEVENTCTL1R.ATB is 1 (the trigger on the trace bus):
    /// after all earlier packets, and before the Event packet. It must not call the model.
    void on_trigger(std::function<void()> called);
    /// Bit n: event n is active, and so is external output n (2.11).
    [[nodiscard]] std::uint8_t external_outputs() const;
    /// Writes the state of counters, sequencer, start/stop and single-shot comparators into TRCCNTVR, TRCSEQSTR,
    /// TRCVICTLR.SSSTATUS, TRCSSCSR and, for an ETE, TRCRSR.
    void read_back(Registers& registers) const;
    /// All registers with their present values, regardless of locks; read() gives TRCSTATR and the other status
    /// registers of 1.6.
    [[nodiscard]] Registers registers() const;
    /// Whether the FIFO filled and tracing has not begun again.
    [[nodiscard]] bool overflowing() const;

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

}  // namespace waymark::etm4
