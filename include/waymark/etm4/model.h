/// An ETMv4 or ETE trace unit as a model: executed instructions and events → exactly the bytes the unit would send
/// (docs/spec/etm4-registers.md, section 2; docs/spec/etm4.md, sections 3 to 11). Of the decoders it shares packets,
/// their codecs and compress(); what an instruction is, its caller says.
///
///     ByteCollector trace;
///     ModelConfig config{.registers = tracing_registers(Config{...})};
///     Model model(config, trace);
///     model.set_context(context);
///     model.start({{{0x8000}, Isa::a64}, cycle});
///     model.retire_block(p0_instruction, bytes_before);   // for each P0 instruction …
///     model.finish();
///
/// Events come in the order in which they happened, cycles never decrease. What happens while the unit is disabled or
/// where tracing is prohibited is given to the model all the same: it decides what may be seen.
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

/// Where the specification leaves to the implementation what is sent. Names in backquotes are the switches of
/// docs/spec/etm4-registers.md, section 4; defaults are the values recommended there.
struct ModelChoices {
    /// `return_stack_depth`: entries, up to 15.
    std::uint8_t return_stack_depth = 3;
    /// `exception_combined`: an exception at the target of an indirect branch has that address once (E = 10).
    bool folds_exception_address = true;
    /// `n_atom_omission`, ETE: a taken P0 instruction is sent as a Source Address when at least this number of atoms
    /// wait and all are N. None: never.
    std::optional<std::uint8_t> source_address_after{};
    /// Cycle Count packets of format 2 are used. OpenCSD 1.3.3 misreads them (docs/spec/etm4.md, 16).
    bool cycle_count_format_2 = true;
    /// `q_policy`: one block in `q_one_in` is sent as a Q element, chosen by `seed`; 0: never. Takes a unit with Q
    /// elements (TRCCONFIGR.QE). Blocks that a Q element would hide more of than its outcome never are: with an
    /// exception return, in T32, or of a branch to the next instruction. The return stack does not see what a Q element
    /// covers.
    std::uint32_t q_one_in = 0;
    /// `commit_group`: P0 elements that wait for a Commit packet at most; 0: half of MAXSPEC.
    std::uint32_t commit_after = 0;
    /// The core mispredicts one conditional branch in `mispredict_one_in`, chosen by `seed`; 0: none. Takes MAXSPEC of
    /// 2 or more. The wrong path is invented, and cancelled: what executed stays as it is.
    std::uint32_t mispredict_one_in = 0;
    /// Some of these branches are committed before the Mispredict packet turns their outcome round, which 2.16 allows.
    /// OpenCSD 1.3.3 takes that for an error.
    bool mispredict_committed = false;
    std::uint64_t seed = 1;

    /// `overflow_bytes`: bytes that the FIFO holds, at least 64; 0: it never fills. What does not fit is lost, and
    /// tracing begins again when the FIFO is empty.
    std::uint32_t fifo_bytes = 0;
    /// `drain_bytes` bytes leave the FIFO in `drain_cycles` cycles.
    std::uint32_t drain_bytes = 4, drain_cycles = 1;

    /// Trace time: ticks = first + cycle * numerator / denominator.
    std::uint64_t timestamp_first = 0;
    std::uint32_t timestamp_numerator = 1, timestamp_denominator = 1;

    bool operator==(const ModelChoices&) const = default;
};

struct ModelConfig {
    /// As programmed before TRCPRGCTLR.EN is set, with the ID registers of the unit.
    Registers registers;
    CoreProfile profile = CoreProfile::a;
    ModelChoices choices{};
};

/// The registers of a unit with this configuration that traces everything: ViewInst is always active, no comparator is
/// used, and no periodic synchronisation is asked for. The unit has four pairs of address comparators, eight pairs of
/// resource selectors, a single-shot comparator, a Context ID and a VMID comparator, two counters and the sequencer,
/// and four external inputs.
[[nodiscard]] Registers tracing_registers(const Config& config);

/// What decides the form of packets, as decoders of this trace need it.
[[nodiscard]] Config packets_of(const Registers& registers, CoreProfile profile);

/// Where execution goes on.
struct Arrival {
    isa::Place place;
    std::uint64_t cycle{};
};

/// A P0 instruction that completed. Instructions that raise an exception (SVC, HVC, SMC, BRK, UDF) are none.
struct Retired {
    Address address{};
    isa::Isa isa{};
    isa::Instruction instruction{};  ///< decode_instr()'s answer; of the target, `next` is what counts
    bool passed = true;              ///< its condition; of a barrier: it executed
    isa::Place next{};               ///< where execution went on
    std::uint64_t cycle{};
};

using flow::RetiredBlock;

/// Numbers of exceptions that mean something to the model (docs/spec/etm4.md, section 9); A and R profile.
namespace exceptions {
inline constexpr std::uint32_t pe_reset = 0, debug_halt = 1, system_error = 4, transaction_failure = 0x18;
}

struct ExceptionTaken {
    std::uint32_t type{};  ///< section 9
    /// The preferred return address; none: the instruction that would have been next.
    std::optional<isa::Place> back{};
    /// Where execution goes on; none: somewhere that is not known and not traced, up to discontinuity().
    std::optional<isa::Place> handler{};
    std::uint64_t cycle{};
};

/// What the model did, for those who keep the truth beside the trace.
struct ModelCounts {
    std::uint64_t p0 = 0;          ///< P0 instructions and exceptions that are in the trace
    std::uint64_t untraced = 0;    ///< those that were filtered, or ran while the unit was disabled
    std::uint64_t overflowed = 0;  ///< those lost to a full FIFO
    std::uint64_t overflows = 0;   ///< how often the FIFO filled
    std::uint64_t cancelled = 0;   ///< P0 elements of wrong paths
    std::uint64_t bytes = 0;       ///< of trace
    bool operator==(const ModelCounts&) const = default;
};

/// Software reaches the registers memory-mapped on an ETMv4, by MRS and MSR on an ETE (1.1). Of AccessResult,
/// `not_idle` is for trace registers outside Idle (TRCSTATR), and for TRCPRGCTLR.EN between states; `locked` by TRCLAR.
using flow::Requester, flow::AccessResult, flow::ReadResult;

class Model {
public:
    /// `trace` is borrowed. It is given whole packets.
    Model(const ModelConfig& config, ByteSink& trace);
    ~Model();

    // ---- execution

    /// Sets TRCPRGCTLR.EN, with execution about to go on at `first`. Called at most once, before anything but
    /// set_context() and the functions on registers. A unit that software enables begins with discontinuity() instead.
    void start(const Arrival& first);
    /// Exception level, security state and identifiers after the next P0 instruction or exception, or from start() or
    /// discontinuity() on, whichever comes first (2.13, step 3). The width follows from the instruction set.
    void set_context(const flow::Context& context);
    /// Instructions one after another from where execution was, none of them a P0 instruction: `bytes` long in all.
    /// Nothing if `bytes` is 0.
    void run(std::uint32_t bytes, std::uint64_t cycle);
    /// Ordinary instructions up to and including a P0 instruction.
    void retire_block(const Retired& p0);
    /// retire_block() for each of them, to the same bytes. Returns how many it took: all, or those up to and including
    /// the first with which counts().overflowed rose.
    [[nodiscard]] std::size_t retire_blocks(std::span<const RetiredBlock> blocks);
    /// flow::Unit's: blocks that are given again and again. None where cycles are counted.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> prepare(const isa::Place& from,
                                                                  std::span<const RetiredBlock> blocks) const;
    [[nodiscard]] std::size_t retire_sequences(std::span<const flow::RetiredSequence> sequences);
    void exception(const ExceptionTaken& taken);
    /// Execution went elsewhere without the model having been given how, such as a system call whose kernel side nobody
    /// records: the next traced block begins with a Trace On.
    void discontinuity(const Arrival& next);
    /// Debug state: nothing is traced inside (2.18).
    void debug_entry(std::uint64_t cycle);
    void debug_exit(const Arrival& restart);
    /// The core waits (WFI, WFE): everything pending is sent.
    void wait(std::uint64_t cycle);

    // ---- transactions and instrumentation (ETE)

    /// After the P0 instruction TSTART of an outermost transaction.
    void transaction_start(std::uint64_t cycle);
    void transaction_commit(std::uint64_t cycle);
    /// Execution goes on at `resume`; what ran since the last P0 instruction is not in the trace.
    void transaction_fail(const Arrival& resume);
    /// TRCIT with this value at the current exception level. Nothing on a unit without instrumentation packets.
    void instrument(std::uint64_t value, std::uint64_t cycle);

    // ---- requests and signals

    /// External input selector 0 to 3 is asserted, or not (2.11).
    void set_external_input(unsigned selector, bool level);
    /// What the authentication interface permits (2.18, prohibited region): Realm state as Secure state, Non-secure
    /// state of an ETE always. Where it is not permitted nothing is traced, comparators do not match, and the other
    /// resources go on; a Trace On follows.
    void set_permission(const flow::TracePermission& permission);
    /// Asks for synchronisation, as the trace bus may.
    void request_sync();
    /// Sends what is pending, as a flush of the trace bus asks for.
    void flush();
    /// Clears TRCPRGCTLR.EN: pending elements and commits are sent. Software may set it again.
    void finish();

    // ---- registers, while execution goes on (1.1 and 2.1)

    /// Writes the word at `offset` of the unit's 4 KB. Bits that the unit does not have are ignored. Trace registers
    /// are writable in Idle only: a clock after TRCPRGCTLR.EN was cleared, and when the FIFO has drained. Enabling
    /// takes effect at once, for what runs from here on, and begins a session: A-sync, Trace Info, Trace On. Resources
    /// keep what they hold. Disabling sends what is pending and pauses the resources. The OS Lock disables too (2.1).
    AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle, Requester from = Requester::software);
    /// Reads it: counters, sequencer, start/stop, single-shot comparators and TRCRSR as they are now, enabled or not.
    ReadResult read(unsigned offset, std::uint64_t cycle, Requester from = Requester::software);
    /// The OS Lock of the processor, on a unit that has none of its own (TRCOSLSR.OSLM is 4, as of every ETE).
    void set_os_lock(bool locked, std::uint64_t cycle);
    /// Power of the core domain. Without it, and without TRCPDCR.PU, the session ends at once, what was not sent or
    /// committed is lost, and all that was programmed is 0; TRCPDSR.STICKYPD says so when power is back.
    void set_power(bool on, std::uint64_t cycle);

    // ---- what can be read

    [[nodiscard]] const ModelCounts& counts() const;
    /// The next block would be traced without a Trace On before it.
    [[nodiscard]] bool tracing() const;
    /// `called` is called whenever event 0 becomes active while TRCEVENTCTL1R.ATB is 1, the trigger on the trace bus:
    /// after what was sent before, and before the Event packet. It must not call the model.
    void on_trigger(std::function<void()> called);
    /// Bit n: event n is active, which external output n shows (2.11).
    [[nodiscard]] std::uint8_t external_outputs() const;
    /// Writes the state of counters, sequencer, start/stop and single-shot comparators into TRCCNTVR, TRCSEQSTR,
    /// TRCVICTLR.SSSTATUS, TRCSSCSR and, of an ETE, TRCRSR.
    void read_back(Registers& registers) const;
    /// All registers as they are now, whatever locks there are; TRCSTATR and the other status registers of 1.6 are
    /// read().
    [[nodiscard]] Registers registers() const;
    /// The FIFO filled, and tracing has not begun again.
    [[nodiscard]] bool overflowing() const;

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

}  // namespace waymark::etm4
