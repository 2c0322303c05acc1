/// `waymark program`: how hardware is programmed for a capture, tested on the models first.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "dpu/record.h"
#include "options.h"
#include "trouble.h"
#include "unit_program.h"
#include "waymark/core/wire.h"
#include "waymark/flow/register_steps.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/program/counter_plan.h"
#include "waymark/program/profiler_plan.h"
#include "waymark/program/script.h"

namespace waymark::cli {

namespace {

struct ProgramOptions {
    record::FlowRecording flow;
    std::string unit, target, program, sink, cross_trigger, output;
    unsigned trace_id = program::Wanted{}.trace_id;
    std::uint64_t sink_size = 0, after_trigger = 0, buffer_address = 0;
    std::uint64_t unit_base = 0, sink_base = 0, funnel_base = 0, replicator_base = 0, unit_cti_base = 0,
                  sink_cti_base = 0;
    unsigned funnel_port = 0, replicator_output = 0, port_pins = 4;
    bool scatter_list = false;
    std::string event = "arm_spe//";
    std::uint64_t period = 0, buffer_bytes = std::uint64_t{1} << 20;
    /// Options for one kind of unit alone.
    std::vector<Option> of_trace_units, of_spe, of_dpu;
    DpuRecordOptions dpu;
    Option registers_option, buffer_size_option;
    Option period_option;
    Option sink_option, sink_size_option, after_option, address_option;
    Option funnel_option, unit_base_option, sink_base_option;
    Option replicator_option, replicator_base_option, scatter_option;
    Option pins_option, cross_option, unit_cti_option, sink_cti_option;
    Option funnel_base_option, sync_option, trace_id_option;
};

/// Instead of the name of a buffer.
constexpr const char* trace_port = "tpiu";

std::optional<std::uint64_t> given(const Option& option, std::uint64_t value) {
    return option->count() == 0 ? std::nullopt : std::optional(value);
}

/// The requested buffer; nullopt without --sink. Errors: `usage`: options that belong to another buffer.
Result<std::optional<sink::SinkSetup>> sink_of(const ProgramOptions& options) {
    if (options.sink_option->count() == 0) {
        for (const Option& option : {options.sink_size_option, options.after_option, options.address_option,
                                     options.sink_base_option, options.scatter_option, options.pins_option})
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} is only for --sink", option->get_name())};
        return std::optional<sink::SinkSetup>();
    }
    const bool port = options.sink == trace_port;
    for (const Option& option :
         {options.sink_size_option, options.after_option, options.address_option, options.scatter_option})
        if (port && option->count() != 0)
            return Error{Errc::usage,
                         fmt::format("{} is for trace buffers, not for --sink {}", option->get_name(), trace_port)};
    if (port) return std::optional<sink::SinkSetup>();
    if (options.pins_option->count() != 0)
        return Error{Errc::usage, fmt::format("--port-pins is only for --sink {}", trace_port)};
    sink::SinkSetup setup;
    for (const sink::SinkName& one : sink::sink_names())
        if (one.name == options.sink) setup.buffer.kind = one.kind;
    const bool etr = setup.buffer.kind == sink::SinkKind::etr;
    if (options.sink_size_option->count() != 0) setup.buffer.memory_bytes = options.sink_size;
    if (etr && options.address_option->count() == 0 && options.target != "sysfs" && options.target != "perf")
        return Error{Errc::usage,
                     "--sink tmc-etr: give --buffer-address, the physical address of the memory for the trace"};
    if (!etr && options.address_option->count() != 0)
        return Error{Errc::usage,
                     "--buffer-address is only for --sink tmc-etr; the other buffers have memory of their own"};
    setup.buffer.base = options.buffer_address;
    setup.scatter_list = options.scatter_list;
    setup.after_trigger = given(options.after_option, options.after_trigger);
    return std::optional(setup);
}

/// The cross triggers of --cross-trigger INPUT:OUTPUT; nullopt without.
Result<std::optional<program::CrossTrigger>> cross_trigger_of(const ProgramOptions& options) {
    if (options.cross_option->count() == 0) {
        for (const Option& option : {options.unit_cti_option, options.sink_cti_option})
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} is only for --cross-trigger", option->get_name())};
        return std::optional<program::CrossTrigger>();
    }
    program::CrossTrigger out;
    const std::string& text = options.cross_trigger;
    const std::size_t colon = text.find(':');
    std::uint64_t input = 0, output = 0;
    if (colon == text.npos || !wire::scan_number(text.substr(0, colon), input) ||
        !wire::scan_number(text.substr(colon + 1), output))
        return Error{Errc::usage,
                     fmt::format("--cross-trigger {}: expected the input of the unit's interface and the output of the "
                                 "sink's, as in {}:{}",
                                 text, out.input, out.output)};
    constexpr std::uint64_t most = 1000;  // refused later, like all that an interface lacks
    out.input = static_cast<unsigned>(std::min(input, most));
    out.output = static_cast<unsigned>(std::min(output, most));
    out.unit_base = given(options.unit_cti_option, options.unit_cti_base);
    out.sink_base = given(options.sink_cti_option, options.sink_cti_base);
    return std::optional(out);
}

Result<program::Wanted> wanted_of(ProgramOptions& options) {
    program::Wanted wanted;
    for (const flow::UnitFactory* const units : pipeline::flow_units())
        if (pipeline::option_name(*units) == options.unit) wanted.units = units;
    if (!options.program.empty()) options.flow.program = {options.program};
    if (options.flow.unit.core.empty()) options.flow.unit.core = wanted.units->defaults().core;
    options.flow.units = wanted.units;
    options.flow.unit_name = options.unit;
    options.flow.aarch64_units = pipeline::aarch64_unit_names();
    WM_ASSIGN_OR_RETURN(wanted.unit, record::placed_unit(options.flow));
    if (options.trace_id > 0x7f)
        return Error{Errc::usage, fmt::format("--trace-id {:#x}: sources have 0x01 to 0x6f", options.trace_id)};
    wanted.trace_id = static_cast<std::uint8_t>(options.trace_id);
    WM_ASSIGN_OR_RETURN(wanted.sink, sink_of(options));
    if (options.sink == trace_port) wanted.port_pins = options.port_pins;
    WM_ASSIGN_OR_RETURN(wanted.cross_trigger, cross_trigger_of(options));
    if (wanted.cross_trigger) {
        wanted.cross_trigger->reported = wanted.unit;
        if (wanted.unit.trigger_at)
            record::send_trigger_on_bus(wanted.cross_trigger->reported, *wanted.units, "--cross-trigger");
    } else if (wanted.sink && wanted.sink->after_trigger && wanted.unit.trigger_at) {
        record::send_trigger_on_bus(wanted.unit, *wanted.units, "--stop-after-trigger");
    }
    if (options.funnel_option->count() != 0) wanted.funnel_port = options.funnel_port;
    if (options.replicator_option->count() != 0) wanted.replicator_output = options.replicator_output;
    wanted.unit_base = given(options.unit_base_option, options.unit_base);
    wanted.sink_base = given(options.sink_base_option, options.sink_base);
    wanted.funnel_base = given(options.funnel_base_option, options.funnel_base);
    wanted.replicator_base = given(options.replicator_base_option, options.replicator_base);
    return wanted;
}

/// A setting that a target cannot express is an error in the command line.
ExitStatus refuse(const Error& error) {
    if (error.code != Errc::unsupported) return fail(error);
    say("error", error.message);
    return usage;
}

constexpr const char *spe_unit = "spe", *dpu_unit = "dpu";

/// Writes the script to the output, if `text` is one.
ExitStatus write_script(const ProgramOptions& options, const Result<std::string>& text) {
    if (!text) return refuse(text.error());
    auto out = Output::open(options.output, {options.program, options.flow.registers});
    if (!out) return fail(out.error());
    out->write(*text);
    return out->close();
}

program::Language language_of(const ProgramOptions& options) {
    program::Language target{};
    for (const program::LanguageName& one : program::languages())
        if (one.name == options.target) target = one.language;
    return target;
}

ExitStatus run_program_profiler(const ProgramOptions& options) {
    const program::Language target = language_of(options);
    if (const Status taken = program::takes_profiler(target); !taken) return refuse(taken.error());
    record::SpeOptions spe;
    if (const Status status = set_from_event(spe, options.event); !status) return fail(status.error());
    if (options.period_option->count() != 0) {
        if (options.period > 0xffffffff)
            return fail({Errc::usage, fmt::format("--period {}: at most 4294967295", options.period)});
        spe.period = static_cast<std::uint32_t>(options.period);
    }
    const bool of_perf = target == program::Language::perf;
    if (options.address_option->count() == 0 && !of_perf)
        return fail({Errc::usage, "--unit spe: give --buffer-address, the address of the profiling buffer"});
    const auto plan = program::make_profiler_plan(spe, options.buffer_address, options.buffer_bytes);
    if (!plan) return fail(plan.error());
    const auto proof = program::prove(*plan);
    if (!proof) return fail(proof.error());
    if (!proof->same()) {
        say("error",
            "on the model these register accesses give another profile than 'waymark record' does, or break "
            "the order of accesses; nothing was written");
        for (const std::string& objection : proof->objections) say("note", objection);
        return nothing;
    }
    const ExitStatus status = write_script(options, script(*plan, target, *proof, options.program));
    if (status != decoded) return status;
    if (proof->samples == 0) say("warning", "nothing of the trial run on the model passes these filters");
    if (of_perf && options.address_option->count() != 0)
        say("note",
            fmt::format("{} has no effect with --for perf: Linux chooses it", options.address_option->get_name()));
    return decoded;
}

Result<program::CounterWanted> counters_wanted(ProgramOptions& options) {
    program::CounterWanted wanted;
    if (options.address_option->count() == 0)
        return Error{Errc::usage, "--unit dpu: give --buffer-address, the address of the virtual trace buffer"};
    if (options.buffer_address > 0xffffffff)
        return Error{Errc::usage,
                     fmt::format("--buffer-address {:#x}: addresses of a DPU have 32 bits", options.buffer_address)};
    wanted.buffer = static_cast<std::uint32_t>(options.buffer_address);
    wanted.base = given(options.unit_base_option, options.unit_base);
    if (options.registers_option->count() != 0)
        for (const Option& option : options.dpu.not_with_registers)
            if (option->count() != 0)
                return Error{Errc::usage,
                             fmt::format("{} and --registers exclude each other with --unit dpu", option->get_name())};
    options.flow.buffer = options.buffer_bytes;
    WM_RETURN_IF_ERROR(record::read_program_settings(options.flow, options.dpu, wanted.options));
    // Software asks for samples, and the EOnCE has its own program; both are not part of this one.
    wanted.options.sample_every = wanted.options.mode == dpu::TraceMode::sw_sample ? 1 : 0;
    wanted.options.watchpoints.push_back({5, Address{0}});
    WM_RETURN_IF_ERROR(record::resolve(wanted.options));
    return wanted;
}

ExitStatus run_program_counters(ProgramOptions options) {
    const program::Language target = language_of(options);
    if (target == program::Language::sysfs || target == program::Language::perf)
        return fail({Errc::usage, "--unit dpu: Linux has no driver for this unit; choose another target"});
    const auto wanted = counters_wanted(options);
    if (!wanted) return fail(wanted.error());
    const auto plan = program::make_counter_plan(*wanted);
    if (!plan) return fail(plan.error());
    const auto proof = program::prove_counters(*wanted, *plan);
    if (!proof) return fail(proof.error());
    if (!proof->same()) {
        say("error",
            fmt::format("on the model these register accesses give other trace than 'waymark record' does, from "
                        "byte {} on; nothing was written",
                        proof->differs_at.value_or(0)));
        return nothing;
    }
    for (const std::string& warning : wanted->options.warnings) say("warning", warning);
    return write_script(options, program::script(*plan, target, *proof, {}));
}

ExitStatus run_program_hardware(ProgramOptions options) {
    const bool spe = options.unit == spe_unit, dpu = options.unit == dpu_unit;
    const auto only = [&](const std::vector<Option>& list, bool allowed, const char* unit) {
        std::string out;
        for (const Option& option : list)
            if (out.empty() && !allowed && option->count() != 0)
                out = fmt::format("{} is not for --unit {}; it is for {}", option->get_name(), options.unit, unit);
        return out;
    };
    for (const std::string& mistake :
         {only(options.of_trace_units, !spe && !dpu, "trace units"), only(options.of_spe, spe, "--unit spe"),
          only(options.of_dpu, dpu, "--unit dpu"), only({options.buffer_size_option}, spe || dpu, "spe and dpu"),
          only({options.registers_option, options.unit_base_option}, !spe, "other units")})
        if (!mistake.empty()) return fail({Errc::usage, mistake});
    if (spe) return run_program_profiler(options);
    if (dpu) return run_program_counters(std::move(options));
    const auto wanted = wanted_of(options);
    if (!wanted) return fail(wanted.error());
    const auto plan = program::make_plan(*wanted);
    if (!plan) return refuse(plan.error());
    const auto proof = program::prove(*plan);
    if (!proof) return fail(proof.error());
    if (!proof->same()) {
        say("error",
            proof->differs_at
                ? fmt::format("on the models, these register accesses give other trace than 'waymark record', from "
                              "byte {} on; nothing was written",
                              *proof->differs_at)
                : fmt::format("on the models, {} of the unit does not come into the sink; nothing was written",
                              proof->stored_same ? "the trigger" : "the trace"));
        return nothing;
    }
    const program::Language target = language_of(options);
    program::LinuxWords words{options.program, options.flow.view_ranges, options.sync_option->count() != 0};
    const ExitStatus status = write_script(options, program::script(*plan, target, *proof, words));
    if (status != decoded) return status;
    for (const std::string& text : registers_without_effect(wanted->unit, "--trace-id gives")) say("note", text);
    if (proof->traced == 0 || proof->given_bytes == 0)
        say("warning", "with this program, nothing in the trial run on the models is traced");
    if (wanted->cross_trigger && proof->triggers == 0)
        say("warning", "with this program, nothing in the trial run on the models triggers");
    const bool of_perf = target == program::Language::perf;
    for (const Option& option :
         {options.trace_id_option, options.unit_base_option, options.sink_base_option, options.funnel_base_option,
          options.funnel_option, options.replicator_option, options.replicator_base_option, options.scatter_option,
          options.address_option, options.pins_option, of_perf ? options.sink_option : Option()})
        if ((of_perf || target == program::Language::sysfs) && option && option->count() != 0)
            say("note",
                fmt::format("{} has no effect with --for {}: Linux chooses it", option->get_name(), options.target));
    return decoded;
}

Option add_address(const Command& command, const char* name, std::uint64_t& value, const std::string& help) {
    return command.add_option(name, value, help)->type_name("ADDRESS")->check(not_negative());
}

}  // namespace

Run add_program(const Command& app) {
    auto options = std::make_shared<ProgramOptions>();
    const Command command = app.add("program");
    command.option("PROGRAM", options->program);
    std::vector<std::string> units, names;
    for (const flow::UnitFactory* const one : pipeline::flow_units())
        if (one->program(one->defaults(), 1)) units.push_back(pipeline::option_name(*one));
    units.emplace_back(spe_unit);
    units.emplace_back(dpu_unit);
    for (const program::LanguageName& one : program::languages()) names.emplace_back(one.name);
    command.option("--unit", options->unit)->transform(one_of(units));
    command.option("--for", options->target)->transform(one_of(names));
    const auto of_trace_units = [&](const Option& option) {
        options->of_trace_units.push_back(option);
        return option;
    };
    for (const Option& option : add_unit_program(command, options->flow)) {
        of_trace_units(option)->group("How the unit is programmed");
        if (option->get_name() == "--sync") options->sync_option = option;
    }
    options->registers_option = command.option("--registers", options->flow.registers);
    options->registers_option->type_name("FILE")->group("How the unit is programmed");
    options->trace_id_option = command.option("--trace-id", options->trace_id)->group("How the unit is programmed");
    const auto of_spe = [&](const Option& option) {
        options->of_spe.push_back(option);
        return option->group("--unit spe");
    };
    of_spe(command.option("--event", options->event))->type_name("EVENT")->capture_default_str();
    options->period_option = of_spe(command.option("--period", options->period));
    options->period_option->type_name("N")->check(not_negative());
    options->dpu.add_program_to(command, options->of_dpu);
    for (const Option& option : options->of_dpu) option->group("--unit dpu");
    options->buffer_size_option = command.option("--buffer-size", options->buffer_bytes)->group("The way of the trace");
    std::vector<std::string> sink_names;
    for (const sink::SinkName& one : sink::sink_names()) sink_names.emplace_back(one.name);
    sink_names.emplace_back(trace_port);
    options->sink_option = command.option("--sink", options->sink)->transform(one_of(sink_names));
    options->sink_size_option = command.option("--sink-size", options->sink_size);
    options->address_option =
        add_address(command, "--buffer-address", options->buffer_address,
                    "tmc-etr: physical address of the memory for the trace, a multiple of 16; spe: "
                    "virtual address of the profiling buffer, a multiple of 4096; dpu: address of "
                    "the virtual trace buffer, a multiple of 32");
    options->after_option = command.option("--stop-after-trigger", options->after_trigger);
    options->funnel_option = command.option("--funnel-port", options->funnel_port);
    options->unit_base_option = add_address(command, "--unit-base", options->unit_base,
                                            "Address of the unit's registers. Default: a variable of the script");
    options->sink_base_option = add_address(command, "--sink-base", options->sink_base, "Of the buffer's registers");
    options->funnel_base_option =
        add_address(command, "--funnel-base", options->funnel_base, "Of the funnel's registers");
    options->replicator_option = command.option("--replicator-output", options->replicator_output);
    options->replicator_base_option =
        add_address(command, "--replicator-base", options->replicator_base, "Of the replicator's registers");
    options->pins_option = command.option("--port-pins", options->port_pins);
    options->cross_option = command.option("--cross-trigger", options->cross_trigger);
    options->unit_cti_option = add_address(command, "--unit-cti-base", options->unit_cti_base,
                                           "Of the registers of the unit's cross-trigger interface");
    options->sink_cti_option =
        add_address(command, "--sink-cti-base", options->sink_cti_base, "Of the registers of the sink's");
    options->scatter_option = command.flag("--scatter-list", options->scatter_list);
    for (const Option& option :
         {options->sink_option, options->sink_size_option, options->after_option, options->funnel_option,
          options->sink_base_option, options->funnel_base_option, options->replicator_option,
          options->replicator_base_option, options->scatter_option, options->pins_option, options->cross_option,
          options->unit_cti_option, options->sink_cti_option})
        of_trace_units(option)->group("The way of the trace");
    for (const Option& option : {options->address_option, options->unit_base_option})
        option->group("The way of the trace");
    of_trace_units(options->trace_id_option);
    command.option("--output", options->output);
    return [options] { return run_program_hardware(*options); };
}

}  // namespace waymark::cli
