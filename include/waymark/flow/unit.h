/// The interface of a trace unit's model: receives what a processor executes, and writes the bytes that the unit sends.
/// The recorder drives a unit through this interface and does not depend on the protocol; each protocol of program flow
/// implements it with its own model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/byte_sink.h"
#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/flow/exception.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/unit_program.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"
#include "waymark/isa/place.h"

namespace waymark::flow {

using isa::Place;
class RegisterPort;       // flow/register_steps.h
struct ComponentProgram;  // the same

/// Consecutive instructions from the place of execution on, without a waypoint instruction.
struct Straight {
    std::uint32_t bytes{};
    std::uint8_t last_bytes{};  ///< size of the last one
};

/// A waypoint instruction that completed.
struct RetiredWaypoint {
    Address address;
    Isa isa = Isa::a32;
    const isa::Instruction& instruction;
    bool passed{};  ///< its condition; for a barrier: it executed
    Place next;     ///< where execution continued
};

/// A Straight and its waypoint in compact form, for passing many of them in one call.
struct RetiredBlock {
    const isa::Instruction* instruction{};  ///< the waypoint instruction, borrowed for the call
    std::uint64_t cycle{};
    Address address{}, next{};  ///< of the waypoint instruction; where execution continued
    Isa isa{}, next_isa{};
    std::uint8_t bytes_before{};  ///< size of the previous instruction; 0: there was none
    bool passed = true;
};

/// Prepared data for a sequence of blocks, so that the unit can take the sequence again at once. Each kind of unit has
/// its own.
class PreparedSequence {
public:
    static constexpr std::size_t most_blocks = 7;  ///< a unit may refuse more

    PreparedSequence() = default;
    PreparedSequence(const PreparedSequence&) = delete;
    PreparedSequence& operator=(const PreparedSequence&) = delete;
    virtual ~PreparedSequence() = default;
};

/// The blocks of a sequence ran again, with the same cycles between them.
struct RetiredSequence {
    const PreparedSequence* prepared{};  ///< borrowed for the call; never null
    std::uint64_t cycle{};               ///< cycle of the last waypoint
};

/// The register that a unit traces as the VMID of an AArch64 core.
enum class VmidRegister : std::uint8_t {
    none,            ///< it has no VMIDs, or they are not traced
    vttbr_el2,       ///< VTTBR_EL2.VMID
    contextidr_el2,  ///< the Context ID of EL2 instead
};

/// How a unit is programmed for a recording.
struct UnitOptions {
    std::string core;  ///< in lower case, such as `cortex-a15`
    bool cycle_accurate = false, timestamps = false, return_stack = false, branch_broadcast = false;
    unsigned context_id_bytes = 0;  ///< 0: none; the Context ID is the number of the thread
    bool vmid = false;              ///< the VMID is traced, from the register UnitFactory::vmid
    bool context_in_vmid = false;   ///< the Context ID is traced in place of the VMID, as for a kernel at EL2
    unsigned sync_bytes = 1024;     ///< between periodic synchronisations; 0: none
    unsigned fifo_bytes = 0;        ///< 0: the FIFO never fills
    unsigned drain_cycles = 1;      ///< cycles in which four bytes leave the FIFO
    /// Number of P0 elements that may wait for their commit: the core takes wrong paths, which are invented from
    /// `seed`. 0: the unit does not speculate.
    unsigned speculation_depth = 0;
    std::uint64_t seed = 1;

    /// Filters by address: traced and excluded ranges. They use comparators of the unit.
    std::vector<AddressRange> view{}, exclude{};
    std::optional<Address> trigger_at{};  ///< execution there triggers the unit, or event 0 if it has no trigger
    unsigned cycle_threshold = 0;         ///< threshold of cycle counts; 0: the minimum
    /// Registers by name. They are set before all other options.
    std::vector<RegisterSetting> registers{};
    /// Whether anything is programmed beyond the options before `view`.
    [[nodiscard]] bool programmed() const {
        return !view.empty() || !exclude.empty() || trigger_at || cycle_threshold != 0 || !registers.empty();
    }
};

/// Whether the FIFO of a unit can have `fifo_bytes`, at least `least_bytes` or none, and `drain_cycles`. Errc::usage.
[[nodiscard]] Status check_fifo(const UnitOptions& options, unsigned least_bytes);

/// Calls come in the order of execution; cycles never decrease. A cycle is also a tick of the trace timestamp.
class Unit {
public:
    virtual ~Unit() = default;
    /// The state from the following instruction on, including `context_id`. Call it before the exception that leads to
    /// the state, and before `start`.
    virtual void context(const Context& context) = 0;
    virtual void start(Place first, std::uint64_t cycle) = 0;
    virtual void waypoint(const Straight& before, const RetiredWaypoint& waypoint, std::uint64_t cycle) = 0;
    /// Takes many waypoints, the first from `from` on. Returns the number it took: all, or those up to and including
    /// the first one at which lost() increased. Overridden if there is a faster way than calling waypoint() for each.
    [[nodiscard]] virtual std::size_t waypoints(Place from, std::span<const RetiredBlock> blocks);
    /// Prepares these blocks for `sequences`; the first begins at `from`, where execution arrived at `cycle`. Valid
    /// until the unit is programmed again. nullptr: this unit does not take sequences, or not this one.
    [[nodiscard]] virtual std::unique_ptr<PreparedSequence> prepare(Place from, std::uint64_t cycle,
                                                                    std::span<const RetiredBlock> blocks);
    /// The same as waypoints() for the blocks of each sequence. Returns the number of sequences it took. The next one
    /// depends on more state than was prepared, and has to be passed block by block.
    [[nodiscard]] virtual std::size_t sequences(std::span<const RetiredSequence> sequences);
    /// An exception was taken after `before`. Execution continues at `handler`; if there is none, later code is not
    /// recorded, up to `resume`.
    virtual void exception(const Straight& before, ExceptionClass kind, std::optional<Place> handler,
                           std::uint64_t cycle) = 0;
    /// The processor waited for an interrupt (WFI) since the last waypoint.
    virtual void wait(std::uint64_t cycle) = 0;
    virtual void resume(Place next, std::uint64_t cycle) = 0;
    virtual void finish() = 0;
    /// Stops the unit, programs it by these options, and lets it continue, as software does, with execution at its last
    /// place. Precondition: UnitFactory::check() accepts the options, and only registers differ.
    virtual void program(const UnitOptions& options, std::uint64_t cycle) = 0;
    /// Number of waypoints and exceptions that were lost because the FIFO was full. The unit may lose the last one, and
    /// recent ones that it had not sent yet.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;
    /// Number of waypoints and exceptions that the unit's program excluded from the trace.
    [[nodiscard]] virtual std::uint64_t untraced() const = 0;
    /// Whether it is losing waypoints and exceptions, so that the last one is lost.
    [[nodiscard]] virtual bool overflowing() const = 0;
    /// False if it never loses any waypoints and exceptions.
    [[nodiscard]] virtual bool may_lose() const = 0;
    /// Its registers, as software accesses them; null: the model has no accessible registers. Borrowed from the unit.
    [[nodiscard]] virtual RegisterPort* registers() { return nullptr; }
};

/// Makes the units of a protocol, and describes them in a capture's terms.
class UnitFactory {
public:
    virtual ~UnitFactory() = default;
    /// In capitals, such as `PTM`. Names of sources begin with it; in lower case it is an option's value.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Whether it also traces A64 code; otherwise only A32 and T32.
    [[nodiscard]] virtual bool traces_aarch64() const { return false; }
    /// Whether an instruction that raises the Undefined exception counts as executed.
    [[nodiscard]] virtual bool undefined_executes() const { return true; }
    /// The register from which its VMIDs come.
    [[nodiscard]] virtual VmidRegister vmid() const { return VmidRegister::none; }
    [[nodiscard]] virtual UnitOptions defaults() const = 0;
    /// Errors: `usage`: a combination that the core's unit does not support; the message names it.
    [[nodiscard]] virtual Status check(const UnitOptions& options) const = 0;
    /// A name in the spelling of captures: `Cortex-A15`, `PTM1.1`.
    [[nodiscard]] virtual std::string core_type(const UnitOptions& options) const = 0;
    [[nodiscard]] virtual std::string source_type(const UnitOptions& options) const = 0;
    /// The registers that a decoder needs, and those that show how the unit was programmed.
    [[nodiscard]] virtual std::vector<RegisterValue> registers(const UnitOptions& options,
                                                               std::uint8_t trace_id) const = 0;
    /// The blocks that a unit with these options traces, if only addresses decide; nullopt: counters, events, states or
    /// identifiers decide too.
    [[nodiscard]] virtual std::optional<SelectedBlocks> selects(const UnitOptions& options) const = 0;
    /// Options that decide which instructions are waypoints.
    [[nodiscard]] virtual isa::DecodeOptions decode_options(const UnitOptions& options) const = 0;
    /// `trace` is borrowed.
    [[nodiscard]] virtual std::unique_ptr<Unit> make(const UnitOptions& options, ByteSink& trace) const = 0;

    /// The accesses that program a unit like make(), from any state. Errors: `unsupported`: the model of this protocol
    /// has no accessible registers, so the program cannot be proven.
    [[nodiscard]] virtual Result<ComponentProgram> program(const UnitOptions& options, std::uint8_t trace_id) const;
    /// A unit with locks set and arbitrary contents of all writable registers, generated from `seed`, as found in
    /// hardware. It has registers(); execution begins with Unit::resume(). Null if program() is unsupported.
    [[nodiscard]] virtual std::unique_ptr<Unit> make_unprogrammed(const UnitOptions& options, std::uint64_t seed,
                                                                  ByteSink& trace) const;
};

}  // namespace waymark::flow
