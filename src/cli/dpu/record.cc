#include "record.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "../commands.h"
#include "../trouble.h"
#include "input.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/events.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record_dpu/dpu_recording.h"

namespace waymark::cli {

namespace {

Result<std::array<std::uint8_t, 2>> read_events(const std::vector<std::string>& texts) {
    std::array<std::uint8_t, 2> sets{2, 7};
    if (texts.empty()) return sets;
    for (std::size_t i = 0; i < texts.size() && i < sets.size(); ++i) {
        std::uint64_t set = 0;
        if (!wire::scan_number(texts[i], set) || set >= dpu::event_sets)
            return Error{Errc::usage, fmt::format("--events {}: expected two event sets, from 0 to {}, such as 2,7; "
                                                  "--events-help lists them",
                                                  fmt::join(texts, ","), dpu::event_sets - 1)};
        sets[i] = static_cast<std::uint8_t>(set);
    }
    if (texts.size() != sets.size())
        return Error{Errc::usage,
                     fmt::format("--events {}: one event set for each of the two triads, such as 2,7; --events-help "
                                 "lists them",
                                 fmt::join(texts, ","))};
    return sets;
}

waymark::Status read_core(const std::vector<std::string>& texts, record::CoreModel& model) {
    for (const std::string& text : texts) {
        const auto equals = text.find('=');
        std::uint64_t value = 0;
        if (equals == text.npos || !wire::scan_number(text.substr(equals + 1), value))
            return Error{Errc::usage, fmt::format("--core-set {}: expected such as miss_cycles=40", text)};
        if (const auto status = record::set(model, text.substr(0, equals), value); !status)
            return Error{status.error().code, fmt::format("--core-set {}: {}", text, status.error().message)};
    }
    return Nothing{};
}

/// Parses `--edca N=PLACE`: one address, or a range [START, STOP).
Result<record::Watchpoint> read_watchpoint(const std::string& text, const std::string& program) {
    const auto equals = text.find('=');
    std::uint64_t channel = 0;
    if (equals == text.npos || !wire::scan_number(text.substr(0, equals), channel) || channel > 5)
        return Error{Errc::usage,
                     fmt::format("--edca {}: expected a channel from 0 to 5 and what it watches, such as 5=main or "
                                 "5=0x8000-0x8100",
                                 text)};
    const std::string place = text.substr(equals + 1);
    const auto minus = place.find('-', 1);
    WM_ASSIGN_OR_RETURN(const Address first, record::address_of(place.substr(0, minus), "edca", program));
    record::Watchpoint out{static_cast<std::uint8_t>(channel), first};
    if (minus == place.npos) return out;
    WM_ASSIGN_OR_RETURN(const Address stop, record::address_of(place.substr(minus + 1), "edca", program));
    if (stop.value <= first.value || stop.value - first.value > 0xffffffff)
        return Error{
            Errc::usage,
            fmt::format("--edca {}: the range ends at {:#x} and begins at {:#x}; STOP is the address after the "
                        "range",
                        text, stop.value, first.value)};
    out.bytes = static_cast<std::uint32_t>(stop.value - first.value);
    return out;
}

waymark::Status read_places(const DpuRecordOptions& options, const std::string& program, record::DpuOptions& to) {
    for (const std::string& text : options.marks) {
        WM_ASSIGN_OR_RETURN(const Address address, record::address_of(text, "mark", program));
        to.marks.push_back(address);
    }
    for (const std::string& text : options.edca) {
        WM_ASSIGN_OR_RETURN(const record::Watchpoint watchpoint, read_watchpoint(text, program));
        to.watchpoints.push_back(watchpoint);
    }
    return Nothing{};
}

Result<dpu::RegisterProgram> read_registers(const std::string& path, std::string_view option) {
    const auto text = capture::read_text_file(path, capture::most_settings_bytes);
    if (!text)
        return Error{text.error().code,
                     fmt::format("{}; {} takes a file of register writes, as 'waymark dpu program --help' shows",
                                 text.error().message, option)};
    auto program = dpu::read_program(*text);
    if (!program) return Error{program.error().code, fmt::format("{}: {}", path, program.error().message)};
    return program;
}

constexpr std::array<const char*, record::services> routine_options{"--on-line-0", "--on-line-1", "--on-debug"};

waymark::Status read_routines(const DpuRecordOptions& options, record::DpuOptions& to) {
    for (std::size_t i = 0; i < options.routines.size(); ++i) {
        const std::string& path = options.routines[i];
        if (path.empty()) continue;
        WM_ASSIGN_OR_RETURN(dpu::RegisterProgram routine, read_registers(path, routine_options[i]));
        for (const dpu::RegisterWrite& w : routine)
            if (w.cycle != 0)
                return Error{Errc::usage, fmt::format("{}: line {}: a routine runs when it is called; remove '@{}'",
                                                      path, w.line, w.cycle)};
        to.routines[i] = std::move(routine);
    }
    return Nothing{};
}

}  // namespace

waymark::Status read_program_options(const record::FlowRecording& common, const DpuRecordOptions& options,
                                     record::DpuOptions& to) {
    if (!common.registers.empty()) {
        WM_ASSIGN_OR_RETURN(to.program, read_registers(common.registers, "--registers"));
    }
    for (const auto& [name, mode] : record::dpu_modes())
        if (name == options.mode) to.mode = mode;
    WM_ASSIGN_OR_RETURN(to.events, read_events(options.events));
    if (options.initial > dpu::counter_mask)
        return Error{Errc::usage, fmt::format("--initial {}: counters have 31 bits", options.initial)};
    to.initial = static_cast<std::uint32_t>(options.initial);
    to.buffer_bytes = common.buffer;
    to.request = options.buffer_mode == "request";
    to.user_data = !options.no_user_data;
    to.nexus = options.nexus == "mirror" ? dpu::NexusMode::mirror
               : options.nexus == "raw"  ? dpu::NexusMode::raw
               : options.nexus == "only" ? dpu::NexusMode::only
                                         : dpu::NexusMode::off;
    return Nothing{};
}

namespace {

/// Reads all options. Places are looked up in the program.
waymark::Status read_options(const record::FlowRecording& common, const DpuRecordOptions& options,
                             record::DpuOptions& to) {
    to.folder = common.folder;
    to.force = common.force;
    to.command = common.program;
    to.limit_instructions = common.limit;
    WM_RETURN_IF_ERROR(read_routines(options, to));
    WM_RETURN_IF_ERROR(read_program_options(common, options, to));
    to.sample_every = options.sample_every;
    to.loops = options.loops == "hardware";
    to.choices.bus_cycles_per_line = options.bus_cycles;
    WM_RETURN_IF_ERROR(read_core(options.core, to.core));
    WM_RETURN_IF_ERROR(read_places(options, common.program.front(), to));
    return record::resolve(to);
}

std::string events_help() {
    std::string out =
        "Event sets (layout WL-1): code, three events, purpose. A recorded program drives those without *\n";
    const auto& driven = record::driven_wires();
    for (unsigned ceg = 0; ceg < dpu::event_sets; ++ceg) {
        out += fmt::format("{:>3} ", ceg);
        for (const dpu::EventWire wire : dpu::event_set(ceg)) {
            const bool there =
                wire == dpu::EventWire::none || std::find(driven.begin(), driven.end(), wire) != driven.end();
            out += fmt::format(" {:<16}", std::string(name(wire)) + (there ? "" : "*"));
        }
        out += fmt::format(" {}\n", dpu::event_set_purpose(ceg));
    }
    return out;
}

}  // namespace

void DpuRecordOptions::add_program_to(const Command& command, std::vector<Option>& added) {
    const auto program = [&](const Option& option) {
        not_with_registers.push_back(option);
        added.push_back(option);
        option->group("--unit dpu: how the unit is programmed");
    };
    std::vector<std::string> modes;
    for (const auto& each : record::dpu_modes()) modes.push_back(each.first);
    program(command.option("--mode", mode)->transform(one_of(modes)));
    program(command.option("--events", events)->delimiter(','));
    program(command.option("--initial", initial));
    program(command.option("--buffer-mode", buffer_mode));
    program(command.option("--nexus", nexus));
    program(command.flag("--no-user-data", no_user_data));
}

void DpuRecordOptions::add_to(const Command& command, std::vector<Option>& added) {
    add_program_to(command, added);
    const auto add = [&](const Option& option) {
        added.push_back(option);
        return option->group("--unit dpu: how the unit is programmed");
    };
    add(command.option("--sample-every", sample_every));
    add(command.option("--loops", loops));
    add(command.option("--mark", marks));
    add(command.option("--edca", edca));
    constexpr std::array routine_texts{
        "What the service routine of interrupt line 0 writes to the unit's registers, as --registers has them: for "
        "DP_CR.DECA0=line-0, 'DP_TC ... SAMPLE=1', 'DP_CA0V 1000' and the DP_TAC line again take a sample each 1000 "
        "events of counter A0. Without a routine the system takes the interrupt and acknowledges it",
        "The same for interrupt line 1",
        "The same for debug requests, which are then debug exceptions. Without it, a debug request puts the core into "
        "debug state, and the recording ends there"};
    for (std::size_t i = 0; i < routines.size(); ++i)
        add(command.add_option(routine_options[i], routines[i], routine_texts[i])->type_name("FILE"));
    add(command.option("--core-set", core));
    add(command.option("--bus-cycles", bus_cycles)->check(range(1U, 1000000U)));
    constexpr const char* group = "--unit dpu: how the unit is programmed";
    command.print("--events-help", events_help)->group(group);
    command.print("--core-help", [] { return record::to_text(record::CoreModel{}); })->group(group);
}

Result<record::RecordOutcome> run_record_dpu(const record::FlowRecording& common, const DpuRecordOptions& options,
                                             const record::ShowRecording& show) {
    if (!common.registers.empty())
        for (const Option& option : options.not_with_registers)
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} cannot be used with --registers: the program in {} sets it",
                                                      option->get_name(), common.registers)};
    WM_RETURN_IF_ERROR(record::check_dpu_program(common.program.front()));
    record::DpuOptions to;
    WM_RETURN_IF_ERROR(read_options(common, options, to));
    say_gathered("warning", to.warnings);
    return record::record_dpu(to, common.sysroot, common.qemu_options, show, [&]() -> std::string {
        const auto input = DpuInput::open(common.folder);
        return input ? input->why_nothing() : std::string();
    });
}

}  // namespace waymark::cli
