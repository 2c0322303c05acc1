/// A Debug and Profiling Unit as a model: event wires and EOnCE items → exactly the words that the unit would write to
/// its virtual trace buffer, its interrupts and its Nexus messages (docs/spec/dpu.md, sections 3 to 6 and 13.1). It
/// shares only packets and format with the readers of trace.
///
///     Model model(config);
///     model.write(DpTsa::offset, 0x20000000); …             // takes effect in the next cycle
///     CycleInput in;
///     in.set(EventWire::dc_hit, 3);
///     if (!model.run(in, 1000)) for (…) model.step(in);    // a stretch without items, at once
///     for (const Burst& burst : model.step(in).bursts) vtb.store(burst);
///
/// Nothing is random, and models share no state: the same inputs give the same outputs.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/dpu/codec.h"
#include "waymark/dpu/config.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/registers.h"

namespace waymark::dpu {

// ---- inputs

/// Privilege and both task IDs in the core and its MMU. `TaskContext` is the part that a task flag shows.
struct CoreContext {
    bool supervisor = false;
    std::uint8_t pid{}, did{};
    bool operator==(const CoreContext&) const = default;
};

/// The kind of an item `interrupt`.
enum class InterruptCause : std::uint8_t { interrupt, exception, system_call };

/// An item reported by the EOnCE, in program order. Program addresses are even; bit 0 is ignored.
struct EonceItem {
    ItemKind kind{};
    std::uint8_t channel{};  ///< EDCA: 0 to 5
    InterruptCause cause{};
    CoreContext after;             ///< context after the item, for every kind of item
    std::uint32_t src{}, dst{};    ///< last and start address of a loop; MARK and execution sets have only src
    std::uint32_t count{}, ext{};  ///< the EOnCE's counters, with TCOUNT and TCNTEXT
};

struct CycleInput {
    CoreContext ctx;  ///< context during the cycle
    bool in_debug = false, dpue = true;
    bool eonce_irq = false, debug_ext = false, debug_nexus = false;  ///< pulses
    bool bus_others = false;                                         ///< other units request the bus
    std::span<const EonceItem> items{};                              ///< borrowed for the call
    /// Number of occurrences of each event; 0 or 1 for events with a duration. In run(): totals. Events of is_own() are
    /// ignored.
    std::array<std::uint64_t, event_wires> wire{};

    void set(EventWire event, std::uint64_t times) { wire[static_cast<std::size_t>(event)] = times; }
};

// ---- output

/// Lines on their way to memory.
struct Burst {
    std::uint64_t cycle{};
    std::uint32_t address{};  ///< address of all lines in single-address mode, otherwise of the first
    std::uint8_t lines{};     ///< 1 to 8
    std::uint8_t global{};    ///< DP_TC.GLOBAL
    bool prov{};              ///< DP_TC.PROV
    bool fixed{};             ///< single-address mode
    std::array<std::uint32_t, 64> words{};
    [[nodiscard]] std::span<const std::uint32_t> used() const { return std::span(words).first(lines * 8U); }
};

/// An error in the software's programming, reported when the write takes effect.
struct ProgrammingError {
    std::uint64_t cycle{};
    std::uint32_t offset{};  ///< of the register
    std::string message;     ///< the mistake and the remedy
};

/// From step(): the output of the cycle. From run(): everything that occurred; `pic` has each bit that was ever set.
struct CycleOutput {
    std::array<bool, 2> pic{};  ///< interrupt lines
    bool debug_request = false;
    std::vector<Burst> bursts;  ///< at most one in a cycle, except with ModelChoices::Full::stall
    std::vector<std::uint8_t> nexus;
    std::vector<ProgrammingError> errors;
};

/// Counts of the model, for callers that store the truth beside the trace.
struct ModelCounts {
    std::uint64_t cycles = 0;          ///< with the unit enabled
    std::uint64_t entries = 0;         ///< accepted entries, without gap entries and padding
    std::uint64_t words = 0;           ///< words of all accepted entries
    std::uint64_t gaps = 0;            ///< gap entries
    std::uint64_t lost = 0;            ///< entries
    std::uint64_t lines_written = 0;   ///< lines written to the virtual trace buffer
    std::uint64_t triggers = 0;        ///< triggers that loaded the shadow registers
    std::uint64_t stalled_cycles = 0;  ///< ModelChoices::Full::stall: how long the core waited
    std::uint64_t nexus_lost = 0;      ///< messages that found no room
    std::uint64_t nexus_bytes = 0;     ///< bytes of messages that found room, including those that are not sent yet
    bool operator==(const ModelCounts&) const = default;
};

/// A period in which tracing was enabled, as a capture describes it (7.5).
struct TracePeriod {
    std::uint64_t cycle{};
    std::uint32_t tw{}, tc{};
    CoreContext context;
    Counters initial{};                  ///< before the events of this cycle were counted
    std::optional<Counters> final{};     ///< values when tracing was disabled again
    std::optional<std::uint64_t> end{};  ///< the cycle in which tracing was disabled
    bool operator==(const TracePeriod&) const = default;
};

/// IDFLT and its comparison values, from one place in the trace on: at the first enable, and at each change while
/// tracing is on (7.5).
struct FilterChange {
    std::uint64_t words{};  ///< words of trace before it
    bool idflt{}, tids{};
    std::uint8_t tidcm{}, rpid{}, rdid{};
    std::uint64_t nexus_bytes{};  ///< bytes of messages before it
    [[nodiscard]] bool same(const FilterChange& o) const {
        return idflt == o.idflt && tids == o.tids && tidcm == o.tidcm && rpid == o.rpid && rdid == o.rdid;
    }
    bool operator==(const FilterChange&) const = default;
};

/// Facts beyond the registers on which a counter's figures depend. A bit for each counter, A0 first: the change
/// occurred while tracing was on.
struct CounterHistory {
    std::uint8_t partial = 0;    ///< it was disabled for some time
    std::uint8_t changed = 0;    ///< its event selection was reprogrammed, also later, while tracing was off
    std::uint8_t rewritten = 0;  ///< its value was written
    bool operator==(const CounterHistory&) const = default;
};

// ---- the unit

class Model {
public:
    /// Precondition: `config.check()`.
    explicit Model(const ModelConfig& config);
    ~Model();
    Model(Model&&) noexcept;
    Model& operator=(Model&&) noexcept;

    /// A platform reset.
    void reset();

    // ---- registers

    /// Takes effect in the next cycle, after earlier writes.
    void write(std::uint32_t offset, std::uint32_t value);
    /// The state after the last cycle; plain fields show later writes.
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const;

    // ---- cycles

    /// Runs one cycle. The output is valid until the next call.
    const CycleOutput& step(const CycleInput& in);
    /// Runs `cycles` equal cycles without items or writes; `wire` has totals. The pulses of `in` belong to the first
    /// cycle. The run time depends on what happens, not on the number of cycles. Returns null without effect if writes
    /// wait, there are items, the unit is disabled, or a one-shot counter would reach zero within the cycles (or might,
    /// if it counts TWB_LOW, TWB_HIGH or TRACE_LOST). Call step() then.
    const CycleOutput* run(const CycleInput& in, std::uint64_t cycles);
    /// The next cycle's number, from 0.
    [[nodiscard]] std::uint64_t cycle() const;

    /// Reprograms the EOnCE. `usage` while tracing is on; `unsupported` as ModelConfig::check().
    Status set_eonce(const EonceSetup& eonce);
    /// Changes the arbiter of the data channel, from the next cycle on.
    void set_arbiter(ModelChoices::Grant high, ModelChoices::Grant low);
    /// Loads the shadow registers whose bits are set with the values after the last cycle; counting continues.
    void capture(std::uint8_t mask);

    // ---- reading: the state after the last cycle

    [[nodiscard]] const Counters& shadow() const;
    [[nodiscard]] Counters values() const;
    /// All registers in a capture's form.
    [[nodiscard]] Registers registers() const;
    /// Whether tracing is off or held, and everything has reached memory and left the Nexus interface.
    [[nodiscard]] bool idle() const;
    [[nodiscard]] const ModelCounts& counts() const;
    /// Has an element for each time that tracing was enabled.
    [[nodiscard]] const std::vector<TracePeriod>& periods() const;
    [[nodiscard]] const std::vector<FilterChange>& filters() const;
    [[nodiscard]] CounterHistory counter_history() const;
    [[nodiscard]] const ModelConfig& config() const;

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

/// The virtual trace buffer: memory that stores the lines of bursts.
class VirtualTraceBuffer {
public:
    /// Memory is zeroed. `first` and `last`: lines, as in DP_TSA and DP_TEA. Precondition: first <= last.
    VirtualTraceBuffer(std::uint32_t first, std::uint32_t last, ByteOrder order = ByteOrder::big);
    /// Returns false, without effect, if a line is outside. A buffer of a single line keeps the last line written.
    bool store(const Burst& burst);
    [[nodiscard]] Bytes bytes() const { return bytes_; }
    /// The word at an address inside the buffer.
    [[nodiscard]] std::uint32_t word(std::uint32_t address) const;
    /// The written words, oldest first (5.7), from DP_TW and whether DP_MR.TWRAP is set.
    [[nodiscard]] std::vector<std::uint32_t> in_order(std::uint32_t tw, bool wrapped) const;

private:
    std::uint32_t first_;
    ByteOrder order_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace waymark::dpu
