#include "waymark/record_dpu/dpu_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/events.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/recording_texts.h"

namespace waymark::record {

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

/// Parses `--edca N=PLACE`: one address, or a range [START, STOP).
Result<Watchpoint> read_watchpoint(const std::string& text, const std::string& program) {
    const auto equals = text.find('=');
    std::uint64_t channel = 0;
    if (equals == text.npos || !wire::scan_number(text.substr(0, equals), channel) || channel > 5)
        return Error{Errc::usage,
                     fmt::format("--edca {}: expected a channel from 0 to 5 and what it watches, such as 5=main or "
                                 "5=0x8000-0x8100",
                                 text)};
    const std::string place = text.substr(equals + 1);
    const auto minus = place.find('-', 1);
    WM_ASSIGN_OR_RETURN(const Address first, address_of(place.substr(0, minus), "edca", program));
    Watchpoint out{static_cast<std::uint8_t>(channel), first};
    if (minus == place.npos) return out;
    WM_ASSIGN_OR_RETURN(const Address stop, address_of(place.substr(minus + 1), "edca", program));
    if (stop.value <= first.value || stop.value - first.value > 0xffffffff)
        return Error{
            Errc::usage,
            fmt::format("--edca {}: the range ends at {:#x} and begins at {:#x}; STOP is the address after the "
                        "range",
                        text, stop.value, first.value)};
    out.bytes = static_cast<std::uint32_t>(stop.value - first.value);
    return out;
}

Status read_places(const DpuSettings& settings, const std::string& program, DpuOptions& to) {
    for (const std::string& text : settings.marks) {
        WM_ASSIGN_OR_RETURN(const Address address, address_of(text, "mark", program));
        to.marks.push_back(address);
    }
    for (const std::string& text : settings.edca) {
        WM_ASSIGN_OR_RETURN(const Watchpoint watchpoint, read_watchpoint(text, program));
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

Status read_routines(const DpuSettings& settings, DpuOptions& to) {
    for (std::size_t i = 0; i < settings.routines.size(); ++i) {
        const std::string& path = settings.routines[i];
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

Status read_program_settings(const FlowRecording& common, const DpuSettings& settings, DpuOptions& to) {
    if (!common.registers.empty()) {
        WM_ASSIGN_OR_RETURN(to.program, read_registers(common.registers, "--registers"));
    }
    for (const auto& [name, mode] : dpu_modes())
        if (name == settings.mode) to.mode = mode;
    WM_ASSIGN_OR_RETURN(to.events, read_events(settings.events));
    if (settings.initial > dpu::counter_mask)
        return Error{Errc::usage, fmt::format("--initial {}: counters have 31 bits", settings.initial)};
    to.initial = static_cast<std::uint32_t>(settings.initial);
    to.buffer_bytes = common.buffer;
    to.request = settings.buffer_mode == "request";
    to.user_data = !settings.no_user_data;
    to.nexus = settings.nexus == "mirror" ? dpu::NexusMode::mirror
               : settings.nexus == "raw"  ? dpu::NexusMode::raw
               : settings.nexus == "only" ? dpu::NexusMode::only
                                          : dpu::NexusMode::off;
    return Nothing{};
}

Status read_settings(const FlowRecording& common, const DpuSettings& settings, DpuOptions& to) {
    to.folder = common.folder;
    to.force = common.force;
    to.command = common.program;
    to.limit_instructions = common.limit;
    WM_RETURN_IF_ERROR(read_routines(settings, to));
    WM_RETURN_IF_ERROR(read_program_settings(common, settings, to));
    to.sample_every = settings.sample_every;
    to.loops = settings.loops == "hardware";
    to.choices.bus_cycles_per_line = settings.bus_cycles;
    WM_RETURN_IF_ERROR(set_numbers(to.core, settings.core, "--core-set", "miss_cycles=40"));
    WM_RETURN_IF_ERROR(read_places(settings, common.program.front(), to));
    return resolve(to);
}

std::string event_sets_text() {
    std::string out =
        "Event sets (layout WL-1): code, three events, purpose. A recorded program drives those without *\n";
    const auto& driven = driven_wires();
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

}  // namespace waymark::record
