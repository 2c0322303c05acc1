/// How software programs the buffer at the end of the trace bus, and the funnel before it (docs/spec/tmc.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/flow/register_steps.h"
#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"

namespace waymark::sink {

/// The name of a buffer in options: `etb` (the older ETB), `tmc-etb`, `tmc-etf`, `tmc-etr`.
struct SinkName {
    std::string_view name;
    SinkKind kind;
};
[[nodiscard]] std::span<const SinkName> sink_names();

/// A buffer that keeps the newest trace.
struct SinkSetup {
    TmcConfig buffer;
    /// ETR: `buffer.base` is the address of a scatter list, which names the pages of the buffer (2.5).
    bool scatter_list = false;
    /// Number of bytes stored after the trigger at which the capture stops; a multiple of 4, from 4 to
    /// most_after_trigger(). nullopt: it stops when software stops it.
    std::optional<std::uint64_t> after_trigger{};
    /// With a larger number, the mark of the trigger would be overwritten: before the buffer stops, it also stores the
    /// rest of a frame and the contents of the formatter.
    [[nodiscard]] std::uint64_t most_after_trigger() const { return buffer.memory_bytes - 2 * coresight::frame_bytes; }
    /// Errors: `usage`: the size or address of the buffer, or `after_trigger`, is impossible; the message gives the
    /// possible values.
    [[nodiscard]] Status check() const;
};

/// Precondition: `setup.check()`. Its `disable` flushes and stops; then the trace is read. `release` follows (4.1).
[[nodiscard]] flow::ComponentProgram program_of(const SinkSetup& setup);

/// Opens one input of a funnel, and closes the others. `port` is 0 to 7.
[[nodiscard]] flow::ComponentProgram funnel_program(unsigned port);
/// Funnel Control: bit n opens input n; bits 11 to 8 are the minimum time for which an input holds the funnel.
inline constexpr unsigned funnel_control = 0x000;

/// Gives all trace to one output of a replicator (docs/spec/trace-bus.md, 3). `output` is 0 or 1.
[[nodiscard]] flow::ComponentProgram replicator_program(unsigned output);

/// A trace port of `pins` pins with continuous formatting, which marks triggers (docs/spec/trace-bus.md, 4).
[[nodiscard]] flow::ComponentProgram port_program(unsigned pins);

/// How the trigger of a unit reaches the trigger input of a sink (docs/spec/cti.md, 4): the unit's interface makes
/// channel 0 active, and the interface of the sink takes it from there.
inline constexpr unsigned unit_trigger_input = 4, sink_trigger_output = 1, sink_flush_output = 0, trigger_channel = 0;
[[nodiscard]] flow::ComponentProgram unit_trigger_program(unsigned input = unit_trigger_input);
[[nodiscard]] flow::ComponentProgram sink_trigger_program(unsigned output = sink_trigger_output);

/// The registers of a component that was not programmed: its software lock is set. The model is borrowed.
[[nodiscard]] std::unique_ptr<flow::RegisterPort> locked_port(Tmc& tmc);
[[nodiscard]] std::unique_ptr<flow::RegisterPort> locked_port(BusFunnel& funnel);
[[nodiscard]] std::unique_ptr<flow::RegisterPort> locked_port(BusReplicator& replicator);
[[nodiscard]] std::unique_ptr<flow::RegisterPort> locked_port(Tpiu& tpiu);
[[nodiscard]] std::unique_ptr<flow::RegisterPort> locked_port(Cti& cti);

}  // namespace waymark::sink
