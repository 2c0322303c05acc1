/// An ETMv3 as a model: executed instructions and events → the bytes that the hardware would send (docs/spec/etmv3.md,
/// 2 to 6 and 13). It shares packets, their codecs and compress() with the decoders; callers pass decoded
/// instructions. The model of Program Flow Trace has the same registers, resources, FIFO, cycles and timestamp bus.
///
///     ByteCollector trace;
///     ModelConfig config;
///     config.registers.cr.cycle_accurate = true;
///     Model model(config, trace);
///     model.start({{{0x8000}, Isa::a32}, ns, hyp, cycle});
///     model.instruction(first);   // and every following one
///     model.finish();
///
/// Events come in the order in which they happened; cycles never decrease. Only instruction trace: there are no data
/// packets.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "waymark/core/byte_sink.h"
#include "waymark/etm3/config.h"
#include "waymark/etm3/registers.h"
#include "waymark/etm3/state.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/model.h"

namespace waymark::etm3 {

/// Choices that the specification leaves to the implementation, and further properties that are not in the registers.
struct ModelChoices {
    /// Size of the FIFO in bytes; 0: it never fills. Packets that do not fit are lost until the FIFO is empty again.
    std::uint32_t fifo_bytes = 0;
    /// `drain_bytes` leave the FIFO in `drain_cycles`.
    std::uint32_t drain_bytes = 4, drain_cycles = 1;

    /// Maximum number of idle cycles in P-headers of format 3; a longer time takes a cycle count packet.
    std::uint32_t header_cycles = 64;
    using CycleOverflow = pft::ModelChoices::CycleOverflow;
    CycleOverflow cycle_overflow = CycleOverflow::saturate;

    /// The timestamp bus: ticks = first + cycle * numerator / denominator.
    std::uint64_t timestamp_first = 0;
    std::uint32_t timestamp_numerator = 1, timestamp_denominator = 1;
};

struct ModelConfig {
    Registers registers = tracing_registers();
    ModelChoices choices;
    bool m_profile = false;  ///< Config::m_profile
    /// The settings that decide the form of packets, for decoders of this trace.
    [[nodiscard]] Config packets() const {
        Config out = Config::from_registers(from_value<Etm3cr>(to_value(registers.cr)), registers.ccer,
                                            from_value<Etm3idr>(to_value(registers.idr)));
        out.m_profile = m_profile;
        return out;
    }
};

using flow::AccessResult, flow::ReadResult, flow::Requester;
using pft::Arrival, pft::Authentication;

/// An instruction that completed.
struct Executed {
    Address address{};
    Isa isa{};
    isa::Instruction instruction{};  ///< decode_instr()'s answer
    bool passed = true;              ///< its condition
    Place next{};                    ///< where execution continued
    bool ns{}, hyp{};                ///< after it
    std::uint64_t cycle{};
    /// M profile: an exception return that an exception replaces (ExceptionTaken::cancels_return).
    bool tail_chains = false;
};

struct ExceptionTaken {
    std::uint32_t number{};  ///< number as in section 4; not the one of Debug state
    Place vector{};
    bool ns{}, hyp{};  ///< in the handler
    std::uint64_t cycle{};
    /// The present instruction had begun: the trace contains it, and the exception cancels it.
    bool cancels = false;
    /// M profile: the exception replaces the return of the previous instruction, and cancels it (tail-chaining).
    bool cancels_return = false;
    std::uint8_t resume = 0;  ///< M profile: where an interrupted multi-cycle instruction will continue
};

/// Counts of the model, for callers that store the truth beside the trace.
struct ModelCounts {
    std::uint64_t instructions = 0;  ///< in the trace
    std::uint64_t exceptions = 0;    ///< in the trace
    std::uint64_t lost = 0;          ///< instructions and exceptions lost to a full FIFO
    std::uint64_t untraced = 0;      ///< instructions and exceptions while tracing was off, or TraceEnable false
    std::uint64_t overflows = 0;     ///< number of times the FIFO filled
    std::uint64_t bytes = 0;         ///< of trace
    bool operator==(const ModelCounts&) const = default;
};

class Model {
public:
    /// `trace` is borrowed. It receives whole packets.
    Model(const ModelConfig& config, ByteSink& trace);
    ~Model();

    /// Clears the Programming bit, with execution at `first`. Call it once, before anything else.
    void start(const Arrival& first);
    void instruction(const Executed& executed);
    void exception(const ExceptionTaken& taken);
    /// Execution moved elsewhere untraced: an I-sync with reason 1 precedes the next instruction.
    void discontinuity(const Arrival& next);
    void debug_entry(std::uint64_t cycle);
    void debug_exit(const Arrival& restart);
    /// The core waits (WFI, WFE): all pending packets are sent.
    void wait(std::uint64_t cycle);

    /// Applies from the next instruction on.
    void set_context_id(std::uint32_t value);
    void set_vmid(std::uint8_t value);
    /// User or a privileged mode: comparators may ask for it; trace does not show it.
    void set_user_mode(bool user);

    void set_authentication(const Authentication& signals);
    /// External inputs 1 to 4.
    void set_external_input(unsigned number, bool level);
    /// A trigger packet, as the trigger event sends it.
    void trigger();
    /// The processor clock changed its frequency: the next timestamp reports it.
    void clock_changed();
    /// Requests synchronisation, as the trace bus may.
    void request_sync();
    /// Sends pending packets.
    void flush();
    /// Turns tracing on or off, by the Programming bit.
    void set_programming(bool set, std::uint64_t cycle);
    /// Sets the Programming bit.
    void finish();

    // ---- registers, during execution, as pft::Model has them

    AccessResult write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from = Requester::software);
    ReadResult read(unsigned number, std::uint64_t cycle, Requester from = Requester::software);
    void set_power(bool on, std::uint64_t cycle);
    [[nodiscard]] Registers registers() const;

    [[nodiscard]] const ModelCounts& counts() const;
    /// ETMSR. `overflow`: an overflow occurred, and tracing has not begun again.
    [[nodiscard]] pft::Etmsr status() const;
    /// As pft::Model.
    void on_trigger(std::function<void()> called);

private:
    class Unit;
    std::unique_ptr<Unit> unit_;
};

}  // namespace waymark::etm3
