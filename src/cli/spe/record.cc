#include "record.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "../commands.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/record_spe/profile_recording.h"
#include "waymark/spe/register_file.h"

namespace waymark::cli {

namespace {

waymark::Status read_machine(const SpeRecordOptions& options, record::MachineModel& model) {
    if (!options.machine_file.empty()) {
        WM_ASSIGN_OR_RETURN(const std::string text,
                            capture::read_text_file(options.machine_file, capture::most_settings_bytes));
        if (const auto status = record::set_from_json(model, text); !status)
            return Error{status.error().code, fmt::format("{}: {}", options.machine_file, status.error().message)};
    }
    for (const std::string& text : options.machine) {
        const auto equals = text.find('=');
        std::uint64_t value = 0;
        if (equals == text.npos || !wire::scan_number(text.substr(equals + 1), value))
            return Error{Errc::usage, fmt::format("--machine-set {}: expected such as l2.kib=512", text)};
        if (const auto status = record::set(model, text.substr(0, equals), value); !status)
            return Error{status.error().code, fmt::format("--machine-set {}: {}", text, status.error().message)};
    }
    return Nothing{};
}

/// Sets what is for a system alone. Errors: `usage`, `unreadable`, `bad_format`.
waymark::Status read_system(const record::FlowRecording& common, record::ProfilerOptions& to) {
    to.system = common.system;
    if (!common.system) {
        for (const auto& [given, name] : {std::pair{!common.machine.empty(), "--machine"},
                                          {common.processors != 1, "--smp"},
                                          {!common.registers.empty(), "--registers"}})
            if (given) return Error{Errc::usage, fmt::format("{} with --unit spe is only for --system", name)};
        return Nothing{};
    }
    if (!common.sysroot.empty())
        return Error{Errc::usage, "--sysroot is for Linux programs; with --system there are no libraries"};
    if (common.registers.empty()) return Nothing{};
    WM_ASSIGN_OR_RETURN(const std::string text,
                        capture::read_text_file(common.registers, capture::most_settings_bytes));
    auto settings = spe::read_settings(text);
    if (!settings)
        return Error{settings.error().code,
                     fmt::format("--registers {}: {}", common.registers, settings.error().message)};
    if (!settings->unknown.empty())
        return Error{Errc::usage,
                     fmt::format("--registers {}: {} is not a register that profiling depends on; 'waymark "
                                 "spe explain --help' names the registers",
                                 common.registers, settings->unknown.front())};
    to.registers = std::move(settings->settings);
    return Nothing{};
}

}  // namespace

bool SpeRecordOptions::shares(std::string_view option) {
    return option == "--system" || option == "--machine" || option == "--smp";
}

void SpeRecordOptions::add_to(CLI::App& command, std::vector<CLI::Option*>& added) {
    const auto unit = [&](CLI::Option* option) {
        option->group("--unit spe: how the unit is programmed");
        added.push_back(option);
    };
    const auto machine_option = [&](CLI::Option* option) {
        option->group("--unit spe: the modelled machine");
        added.push_back(option);
    };
    std::string terms;
    record::SpeOptions defaults;
    record::SpeOptions::for_each(defaults, [&](const char* name, const auto& value, const char* what) {
        terms += fmt::format("{}{}={} ({})", terms.empty() ? "" : ", ", name, static_cast<std::uint64_t>(value), what);
    });
    unit(command.add_option("-e,--event", event, "As perf's event arm_spe/TERM=N,…/. Terms and defaults: " + terms)
             ->type_name("EVENT")
             ->capture_default_str());
    unit(command
             .add_option("-c,--period", period, "Operations from one sample to the next; the low 8 bits do not count")
             ->type_name("N")
             ->capture_default_str());
    unit(command
             .add_option("--aux-buffer", buffer_kib,
                         "Size of each CPU's profiling buffer; it is written out when full. With --as perf: of each "
                         "AUX ring and "
                         "sink, which is read when half full")
             ->type_name("KIB")
             ->capture_default_str());
    unit(command.add_option("--seed", seed, "Seed of the random numbers for jitter")
             ->type_name("N")
             ->capture_default_str());
    unit(command
             .add_option(
                 "--info-version", info_version,
                 "Version of AUXTRACE_INFO: 1, which every perf reads, or 2: of spe with a block for each CPU (perf "
                 "6.13), of others with TS_SOURCE (perf 6.3); with --unit etmv4 and ptm also 0 (perf before 5.13)")
             ->type_name("N")
             ->check(one_of({"0", "1", "2"}))
             ->capture_default_str());
    machine_option(
        command
            .add_option("--machine-model", machine_file,
                        "Numbers of the model as a JSON object: {\"l2\": {\"kib\": 512}, \"memory_cycles\": 300}")
            ->type_name("FILE"));
    machine_option(command
                       .add_option("--machine-set", machine,
                                   "One number of the model, as in --machine-set l2.kib=512. May be repeated")
                       ->type_name("NAME=N")
                       ->allow_extra_args(false)
                       ->take_all());
    command
        .add_flag_callback(
            "--machine-help",
            [] {
                std::fputs(to_text(record::MachineModel{}).c_str(), stdout);
                throw CLI::Success{};
            },
            "Print every number of the model with its default")
        ->group("--unit spe: the modelled machine");
}

Result<record::RecordOutcome> run_record_spe(const record::FlowRecording& common, const SpeRecordOptions& options,
                                             const record::ShowRecording& show) {
    record::ProfilerOptions to;
    to.file = common.folder;
    to.command = common.program;
    to.spe.period = options.period;
    WM_RETURN_IF_ERROR(record::set_from_event(to.spe, options.event));
    WM_RETURN_IF_ERROR(read_machine(options, to.machine));
    to.aux_bytes = options.buffer_kib << 10;
    to.seed = options.seed;
    to.info_version = options.info_version;
    to.limit_instructions = common.limit;
    WM_RETURN_IF_ERROR(read_system(common, to));
    return record::record_profile(to,
                                  {.sysroot = common.sysroot,
                                   .qemu_options = common.qemu_options,
                                   .machine = common.machine,
                                   .processors = common.processors},
                                  show);
}

}  // namespace waymark::cli
