/// A trace unit as a model: what a processor executes → the bytes that its unit sends. The recorder drives one through
/// this interface and knows no protocol; each protocol of program flow implements it with its own model.
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

/// Instructions one after another from where execution was, none of them a waypoint instruction.
struct Straight {
    std::uint32_t bytes{};
    std::uint8_t last_bytes{};  ///< size of the last one
};

/// A waypoint instruction that completed.
struct RetiredWaypoint {
    Address address;
    Isa isa = Isa::a32;
    const isa::Instruction& instruction;
    bool passed{};  ///< its condition; of a barrier: it executed
    Place next;     ///< where execution went on
};

/// A Straight and its Waypoint in little room, for many of them in one call.
struct RetiredBlock {
    const isa::Instruction* instruction{};  ///< the waypoint instruction, borrowed for the call
    std::uint64_t cycle{};
    Address address{}, next{};  ///< of the waypoint instruction; where execution went on
    Isa isa{}, next_isa{};
    std::uint8_t bytes_before{};  ///< size of the instruction before it; 0: execution came straight to it
    bool passed = true;
};

/// What a unit made of blocks that ran one after the other, so that it can take them again at once. Each kind of unit
/// has its own.
class PreparedSequence {
public:
    static constexpr std::size_t most_blocks = 7;  ///< a unit may refuse more

    PreparedSequence() = default;
    PreparedSequence(const PreparedSequence&) = delete;
    PreparedSequence& operator=(const PreparedSequence&) = delete;
    virtual ~PreparedSequence() = default;
};

/// The blocks of a sequence ran again, with as many cycles between them.
struct RetiredSequence {
    const PreparedSequence* prepared{};  ///< borrowed for the call; never null
    std::uint64_t cycle{};               ///< of the last waypoint
};

/// What a unit traces as the VMID of an AArch64 core.
enum class VmidRegister : std::uint8_t {
    none,            ///< it has no VMIDs, or they are not traced
    vttbr_el2,       ///< VTTBR_EL2.VMID
    contextidr_el2,  ///< the Context ID of EL2, in its place
};

/// How a unit is programmed for a recording.
struct UnitOptions {
    std::string core;  ///< in lower case, such as `cortex-a15`
    bool cycle_accurate = false, timestamps = false, return_stack = false, branch_broadcast = false;
    unsigned context_id_bytes = 0;  ///< 0: none; the Context ID is the number of the thread
    bool vmid = false;              ///< the VMID is traced, as UnitFactory::vmid says
    bool context_in_vmid = false;   ///< the Context ID is traced in the place of the VMID, as of a kernel at EL2
    unsigned sync_bytes = 1024;     ///< between periodic synchronisations; 0: none
    unsigned fifo_bytes = 0;        ///< 0: the FIFO never fills
    unsigned drain_cycles = 1;      ///< cycles in which four bytes leave the FIFO
    /// P0 elements that may wait for their commit: the unit's core takes wrong paths, which are invented by `seed`. 0:
    /// it does not speculate.
    unsigned speculation_depth = 0;
    std::uint64_t seed = 1;

    /// Filters by address: what is traced, and what is not. Comparators of the unit hold them.
    std::vector<AddressRange> view{}, exclude{};
    std::optional<Address> trigger_at{};  ///< execution there is the unit's trigger, or event 0 where it has none
    unsigned cycle_threshold = 0;         ///< cycle counts below it wait; 0: the least there is
    /// Registers by name, before all other options.
    std::vector<RegisterSetting> registers{};
    /// Something is programmed that the options before `view` do not say.
    [[nodiscard]] bool programmed() const {
        return !view.empty() || !exclude.empty() || trigger_at || cycle_threshold != 0 || !registers.empty();
    }
};

/// Calls come in the order of execution; cycles never decrease. A cycle is also a tick of the trace timestamp.
class Unit {
public:
    virtual ~Unit() = default;
    /// The state from what follows on, `context_id` included; before the exception that leads to it, and before
    /// `start`.
    virtual void context(const Context& context) = 0;
    virtual void start(Place first, std::uint64_t cycle) = 0;
    virtual void waypoint(const Straight& before, const RetiredWaypoint& waypoint, std::uint64_t cycle) = 0;
    /// Many of them, the first from `from` on. Returns how many it took: all, or those up to and including the first
    /// with which lost() rose. Overridden where it can be done faster than by calling waypoint() for each.
    [[nodiscard]] virtual std::size_t waypoints(Place from, std::span<const RetiredBlock> blocks);
    /// What `sequences` takes in place of these blocks, the first from `from` on, where execution came at `cycle`.
    /// Valid until the unit is programmed. None: this unit takes no sequences, or not this one.
    [[nodiscard]] virtual std::unique_ptr<PreparedSequence> prepare(Place from, std::uint64_t cycle,
                                                                    std::span<const RetiredBlock> blocks);
    /// The same as waypoints() for the blocks of each, one sequence after the other. Returns how many it took; the next
    /// one depends on more than was prepared, and has to be given block by block.
    [[nodiscard]] virtual std::size_t sequences(std::span<const RetiredSequence> sequences);
    /// An exception was taken after `before`. Execution continues at `handler`; without one, what comes next is not
    /// recorded, up to `resume`.
    virtual void exception(const Straight& before, ExceptionClass kind, std::optional<Place> handler,
                           std::uint64_t cycle) = 0;
    /// The processor waits for an interrupt (WFI) among what ran since the last waypoint.
    virtual void wait(std::uint64_t cycle) = 0;
    virtual void resume(Place next, std::uint64_t cycle) = 0;
    virtual void finish() = 0;
    /// Stops the unit, programs it as these options have it, and lets it go on: as software does it, while execution
    /// stands where it was last. Precondition: UnitFactory::check() accepts them, and only registers differ.
    virtual void program(const UnitOptions& options, std::uint64_t cycle) = 0;
    /// Waypoints and exceptions lost to a full FIFO so far. The unit may lose the last one it was given, and those
    /// shortly before, which it had not sent yet.
    [[nodiscard]] virtual std::uint64_t lost() const = 0;
    /// Waypoints and exceptions that its program kept out of the trace so far.
    [[nodiscard]] virtual std::uint64_t untraced() const = 0;
    /// It is losing them, so the last one it was given is among the lost.
    [[nodiscard]] virtual bool overflowing() const = 0;
    /// False if it never loses any.
    [[nodiscard]] virtual bool may_lose() const = 0;
    /// Its registers, as software reaches them; null: the model has none that can be reached. Borrowed from the unit.
    [[nodiscard]] virtual RegisterPort* registers() { return nullptr; }
};

/// Makes the units of a protocol, and describes them as a capture does.
class UnitFactory {
public:
    virtual ~UnitFactory() = default;
    /// In capitals, such as `PTM`: names of sources begin with it, and in lower case an option names it.
    [[nodiscard]] virtual std::string_view name() const = 0;
    /// Of A64 code too; else of A32 and T32 alone.
    [[nodiscard]] virtual bool traces_aarch64() const { return false; }
    /// An instruction that raises the Undefined exception counts as executed.
    [[nodiscard]] virtual bool undefined_executes() const { return true; }
    /// Which register its VMIDs come from.
    [[nodiscard]] virtual VmidRegister vmid() const { return VmidRegister::none; }
    [[nodiscard]] virtual UnitOptions defaults() const = 0;
    /// Errors: `usage`: a combination the core's unit does not have; the message says which.
    [[nodiscard]] virtual Status check(const UnitOptions& options) const = 0;
    /// As captures spell them: `Cortex-A15`, `PTM1.1`.
    [[nodiscard]] virtual std::string core_type(const UnitOptions& options) const = 0;
    [[nodiscard]] virtual std::string source_type(const UnitOptions& options) const = 0;
    /// The registers that a decoder needs, and those that say how the unit was programmed.
    [[nodiscard]] virtual std::vector<RegisterValue> registers(const UnitOptions& options,
                                                               std::uint8_t trace_id) const = 0;
    /// Which blocks a unit with these options traces, if addresses alone decide; none: counters, events, states or
    /// identifiers decide too.
    [[nodiscard]] virtual std::optional<SelectedBlocks> selects(const UnitOptions& options) const = 0;
    /// Which instructions are waypoints to it.
    [[nodiscard]] virtual isa::DecodeOptions decode_options(const UnitOptions& options) const = 0;
    /// `trace` is borrowed.
    [[nodiscard]] virtual std::unique_ptr<Unit> make(const UnitOptions& options, ByteSink& trace) const = 0;

    /// The accesses that program a unit in any state as make() does. Errors: `unsupported`: the
    /// model of this protocol has no registers that can be reached, so nothing could prove them.
    [[nodiscard]] virtual Result<ComponentProgram> program(const UnitOptions& options, std::uint8_t trace_id) const;
    /// A unit with locks set and every register that can be written filled from `seed`, as hardware may be found. It
    /// has registers(); execution begins with Unit::resume(). Null where program() is unsupported.
    [[nodiscard]] virtual std::unique_ptr<Unit> make_unprogrammed(const UnitOptions& options, std::uint64_t seed,
                                                                  ByteSink& trace) const;
};

}  // namespace waymark::flow
