/// The programming for a capture: the buffer or trace port, the cross triggers, the replicator, the funnel and the
/// trace unit, in the order in which they are enabled, and the proof that it gives the requested trace.
///
///     auto plan = make_plan({.units = etm4::unit_factories()[0], .unit = options, …});
///     if (const auto proof = prove(*plan); proof && proof->same()) print(script(*plan, Target::devmem));
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/flow/register_steps.h"
#include "waymark/flow/unit.h"
#include "waymark/sink/programming.h"

namespace waymark::program {

/// The way of the unit's trigger to the sink, by two cross-trigger interfaces.
struct CrossTrigger {
    unsigned input = sink::unit_trigger_input;              ///< where the unit's trigger comes into its interface
    unsigned output = sink::sink_trigger_output;            ///< where it leaves the sink's interface
    std::optional<std::uint64_t> unit_base{}, sink_base{};  ///< as the addresses in Wanted
    /// The unit's options, with the bit that sends its trigger to the trace bus as well: a model then reports the
    /// trigger.
    flow::UnitOptions reported{};
};

/// The user's wishes.
struct Wanted {
    const flow::UnitFactory* units = nullptr;  ///< borrowed, never null
    flow::UnitOptions unit;
    std::uint8_t trace_id = 0x10;
    std::optional<sink::SinkSetup> sink{};        ///< none: the buffer is programmed by other means
    unsigned port_pins = 0;                       ///< instead of `sink`: a trace port of 1 to 32 pins
    std::optional<unsigned> funnel_port{};        ///< none: there is no funnel, or it is open
    std::optional<unsigned> replicator_output{};  ///< none: there is no replicator, or it leaves nothing out
    std::optional<CrossTrigger> cross_trigger{};
    /// Addresses on the debug bus of the 4 KB of each component. nullopt: they are variables of the script, to be
    /// filled in.
    std::optional<std::uint64_t> unit_base{}, sink_base{}, funnel_base{}, replicator_base{};
};

/// A component on the debug bus.
struct Component {
    std::string title;     ///< `ETMV4 trace unit`
    std::string variable;  ///< in scripts, for its address: `unit`
    std::optional<std::uint64_t> base{};
    flow::ComponentProgram program{};
};

struct Plan {
    Wanted wanted;  ///< without `units`: the plan has no trace source
    /// The buffer first, the unit last; to stop, from the last to the first.
    std::vector<Component> components;
};

/// Errors: `usage`: the request cannot be programmed, with the reason; `unsupported`: there is no proof for this
/// kind of unit.
[[nodiscard]] Result<Plan> make_plan(const Wanted& wanted);

/// Two runs of the models with the same execution: one through a unit that is programmed as `record` programs it, and
/// one through a unit that was locked and had random register values, and was then programmed by the accesses of the
/// plan.
struct Proof {
    std::uint64_t blocks = 0;             ///< executed in each run
    std::string_view counted = "blocks";  ///< what `blocks` counts: `cycles` of a unit without program flow
    std::uint64_t traced = 0;  ///< blocks that the program lets into the trace, or instructions for a unit that traces
                               ///< each
    std::uint64_t wanted_bytes = 0;             ///< bytes of trace with the programming of `record`
    std::uint64_t given_bytes = 0;              ///< bytes of trace with the accesses of the plan
    std::optional<std::uint64_t> differs_at{};  ///< the first byte that differs
    std::uint64_t stored_bytes = 0;  ///< bytes of the second trace that came through the funnel into the sink
    bool stored_same = true;         ///< these bytes are the end of that trace, or what is around its trigger
    std::uint64_t triggers = 0;      ///< of the unit
    bool triggered_same = true;      ///< the sink marks the first of these where the unit sent it, if it sent any
    [[nodiscard]] bool same() const { return !differs_at && stored_same && triggered_same; }
};
/// `seed` decides the execution and the old contents of the registers. Errors: `bad_format`: a model refuses an access
/// of the plan; the message names the register.
[[nodiscard]] Result<Proof> prove(const Plan& plan, std::uint64_t seed = 1);

}  // namespace waymark::program
