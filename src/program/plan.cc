#include "waymark/program/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "waymark/sink/path.h"

namespace waymark::program {

namespace {

/// Checks the components' addresses on the bus.
Status check_bases(const Wanted& wanted) {
    constexpr std::uint64_t component_bytes = 0x1000;
    std::vector<std::uint64_t> taken;
    const CrossTrigger cross = wanted.cross_trigger.value_or(CrossTrigger{});
    for (const auto& [base, option] : {std::pair{wanted.unit_base, "--unit-base"},
                                       {wanted.sink_base, "--sink-base"},
                                       {wanted.funnel_base, "--funnel-base"},
                                       {wanted.replicator_base, "--replicator-base"},
                                       {cross.unit_base, "--unit-cti-base"},
                                       {cross.sink_base, "--sink-cti-base"}}) {
        if (!base) continue;
        if (*base % component_bytes != 0 || *base == 0)
            return Error{Errc::usage,
                         fmt::format("{} {:#x}: the registers of a component fill 4 KB, so its address is a multiple "
                                     "of 0x1000, and not 0",
                                     option, *base)};
        if (std::find(taken.begin(), taken.end(), *base) != taken.end())
            return Error{Errc::usage, fmt::format("{} {:#x}: another component has this address", option, *base)};
        taken.push_back(*base);
    }
    if (wanted.sink && wanted.sink->buffer.base > ~std::uint64_t{0} - wanted.sink->buffer.memory_bytes)
        return Error{Errc::usage, fmt::format("--buffer-address {:#x}: the buffer reaches beyond the last address",
                                              wanted.sink->buffer.base)};
    return Nothing{};
}

Status check_cross_trigger(const Wanted& wanted) {
    const CrossTrigger& cross = *wanted.cross_trigger;
    if (cross.input >= sink::CtiConfig{}.triggers || cross.output >= sink::CtiConfig{}.triggers)
        return Error{Errc::usage, fmt::format("--cross-trigger {}:{}: a cross-trigger interface has inputs and outputs "
                                              "0 to {}",
                                              cross.input, cross.output, sink::CtiConfig{}.triggers - 1)};
    if (!wanted.sink && wanted.port_pins == 0)
        return Error{Errc::usage, "--cross-trigger leads the trigger to a sink: name it by --sink"};
    if (!wanted.unit.trigger_at && wanted.unit.registers.empty())
        return Error{Errc::usage, "--cross-trigger: nothing triggers; add --trigger-at SYMBOL"};
    return Nothing{};
}

}  // namespace

Result<Plan> make_plan(const Wanted& wanted) {
    WM_RETURN_IF_ERROR(wanted.units->check(wanted.unit));
    if (wanted.trace_id == 0 || wanted.trace_id >= 0x70)
        return Error{Errc::usage, fmt::format("trace ID {:#x}: sources have 0x01 to 0x6f", wanted.trace_id)};
    if (wanted.unit.fifo_bytes != 0)
        return Error{Errc::usage, "the size of the FIFO is a property of the unit and cannot be programmed"};
    if (wanted.unit.speculation_depth != 0)
        return Error{Errc::usage, "how far the core speculates is a property of the core and cannot be programmed"};
    if (wanted.funnel_port && *wanted.funnel_port > 7)
        return Error{Errc::usage, fmt::format("input {} of a funnel: there are 0 to 7", *wanted.funnel_port)};
    if (wanted.replicator_output && *wanted.replicator_output >= sink::BusReplicator::outputs)
        return Error{Errc::usage,
                     fmt::format("output {} of a replicator: there are 0 and 1", *wanted.replicator_output)};
    if (wanted.unit.vmid && wanted.units->vmid() == flow::VmidRegister::none)
        return Error{Errc::usage, "--vmid: this unit traces no VMIDs"};
    WM_RETURN_IF_ERROR(check_bases(wanted));
    if (wanted.cross_trigger) WM_RETURN_IF_ERROR(check_cross_trigger(wanted));
    Plan plan;
    plan.wanted = wanted;
    if (wanted.sink) {
        WM_RETURN_IF_ERROR(wanted.sink->check());
        if (wanted.sink->after_trigger && !wanted.unit.trigger_at && wanted.unit.registers.empty())
            return Error{Errc::usage,
                         "the buffer is to stop at a trigger, but nothing triggers: add --trigger-at SYMBOL"};
        plan.components.push_back({fmt::format("{} trace buffer", sink::name(wanted.sink->buffer.kind)), "sink",
                                   wanted.sink_base, program_of(*wanted.sink)});
    } else if (wanted.port_pins != 0) {
        WM_RETURN_IF_ERROR(sink::PathSetup{.port_pins = wanted.port_pins}.check());
        plan.components.push_back(
            {"trace port (TPIU)", "sink", wanted.sink_base, sink::port_program(wanted.port_pins)});
    }
    if (wanted.cross_trigger)
        plan.components.push_back({"cross-trigger interface (CTI) of the sink", "sink_cti",
                                   wanted.cross_trigger->sink_base,
                                   sink::sink_trigger_program(wanted.cross_trigger->output)});
    if (wanted.replicator_output)
        plan.components.push_back(
            {"replicator", "replicator", wanted.replicator_base, sink::replicator_program(*wanted.replicator_output)});
    if (wanted.funnel_port)
        plan.components.push_back({"funnel", "funnel", wanted.funnel_base, sink::funnel_program(*wanted.funnel_port)});
    if (wanted.cross_trigger)
        plan.components.push_back({"cross-trigger interface (CTI) of the unit", "unit_cti",
                                   wanted.cross_trigger->unit_base,
                                   sink::unit_trigger_program(wanted.cross_trigger->input)});
    auto unit = wanted.units->program(wanted.unit, wanted.trace_id);
    if (!unit) return unit.error();
    plan.components.push_back({fmt::format("{} trace unit", wanted.units->source_type(wanted.unit)), "unit",
                               wanted.unit_base, *std::move(unit)});
    return plan;
}

}  // namespace waymark::program
