#include "record.h"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "../options.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/wire.h"
#include "waymark/record/qemu.h"
#include "waymark/record_spe/profile.h"

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

std::string cpu_of(const record::MachineModel& model) {
    constexpr std::uint64_t part = 0xff00fff0, neoverse_n1 = 0x4100d0c0;
    return (model.midr & part) == neoverse_n1 ? "neoverse-n1" : "max";
}

}  // namespace

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
             ->check(CLI::IsMember({0, 1, 2}))
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

std::string signal_name(int number) {
    const char* const name = sigabbrev_np(number);
    return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

std::optional<ExitStatus> ended_by_signal(const record::Ending& ending) {
    constexpr std::string_view recorded = "everything up to there is recorded";
    if (ending.interrupt) {
        say("note", fmt::format("interrupted by {}; {}", signal_name(*ending.interrupt), recorded));
        return static_cast<ExitStatus>(interrupted);
    }
    if (ending.kind != record::Ending::Kind::signalled) return {};
    say("note", fmt::format("the program was ended by {}; {}", signal_name(ending.code), recorded));
    return static_cast<ExitStatus>(program_died);
}

waymark::Status check_linux_program(const std::string& program, const LinuxProgram& of) {
    std::ifstream in(program, std::ios::binary);
    if (!in) return Error{Errc::not_found, fmt::format("cannot read {}; is it a program?", program)};
    std::array<char, 20> head{};
    in.read(head.data(), head.size());
    const std::string_view little_endian(head.data(), 6);
    if (in && little_endian == std::string{'\x7f', 'E', 'L', 'F', of.elf_class, '\1'} && head[18] == of.machine)
        return Nothing{};
    return Error{Errc::unsupported, fmt::format("{} is not {}", program, of.otherwise)};
}

Result<record::QemuOptions> linux_emulator(const RecordCommon& common, const LinuxProgram& of) {
    WM_ASSIGN_OR_RETURN(const auto qemu, record::find_qemu(of.qemu, "qemu-user"));
    WM_ASSIGN_OR_RETURN(const auto plugin, record::find_plugin());
    record::QemuOptions how{qemu, plugin, {}, common.program};
    how.memory = true;
    std::string sysroot = common.sysroot;
    if (sysroot.empty() && std::getenv("QEMU_LD_PREFIX") == nullptr && std::filesystem::exists(of.cross_libraries))
        sysroot = of.cross_libraries;
    if (!sysroot.empty()) how.qemu_arguments = {"-L", sysroot};
    return how;
}

ExitStatus run_record_spe(const RecordCommon& common, const SpeRecordOptions& options) {
    record::ProfilerOptions to;
    to.file = common.output;
    to.command = common.program;
    to.spe.period = options.period;
    if (const auto status = record::set_from_event(to.spe, options.event); !status) return fail(status.error());
    if (const auto status = read_machine(options, to.machine); !status) return fail(status.error());
    to.aux_bytes = options.buffer_kib << 10;
    to.seed = options.seed;
    to.info_version = options.info_version;
    to.limit_instructions = common.limit;
    if (const auto status = record::check(to); !status) return fail(status.error());
    constexpr LinuxProgram a64{2, static_cast<char>(183), "qemu-aarch64", "/usr/aarch64-linux-gnu",
                               "an AArch64 program (ELF); the Statistical Profiling Extension is for these alone. "
                               "aarch64-linux-gnu-gcc makes them"};
    if (const auto status = check_linux_program(common.program.front(), a64); !status) return fail(status.error());
    auto emulator = linux_emulator(common, a64);
    if (!emulator) return fail(emulator.error());
    record::QemuOptions how = std::move(*emulator);
    how.qemu_arguments.insert(how.qemu_arguments.end(), {"-cpu", cpu_of(to.machine)});
    how.qemu_arguments.insert(how.qemu_arguments.end(), common.qemu_options.begin(), common.qemu_options.end());

    if (const auto status = check_executable(common.program.front()); !status) return fail(status.error());
    auto profiler = record::Profiler::create(to);
    if (!profiler) return fail(profiler.error());
    ProgressLine progress;
    const auto ending = record::run_qemu(how, **profiler,
                                         progress.active() ? record::RecordProgress([&] {
                                             const record::Profiled p = (*profiler)->profiled();
                                             progress.text(fmt::format("profiled {} operations, {} records",
                                                                       grouped(p.instructions), grouped(p.records())));
                                         })
                                                           : nullptr);
    const auto finished = (*profiler)->finish(ending && !ending->killed);
    const record::Profiled p = (*profiler)->profiled();
    if (!ending) return fail(ending.error());
    if (!common.quiet && finished)
        say("note",
            fmt::format("{}: {} operations of {} thread{}, {} records (period {}), {} bytes of trace; latencies, "
                        "cache, TLB and branch prediction events are those of the modelled machine",
                        common.output, grouped(p.instructions), p.threads, p.threads == 1 ? "" : "s",
                        grouped(p.records()), to.spe.period & ~0xffU, grouped(p.trace_bytes)));
    if (!finished) {
        say("error", finished.error().message + (ending->killed ? "; the program was ended" : ""));
        return static_cast<ExitStatus>(cut_off);
    }
    if (p.instructions == 0) {
        say("error", "nothing recorded: the program executed nothing");
        return nothing;
    }
    if (to.spe.discard && p.records() == 0) say("note", "discard: nothing was to be written, and nothing is");
    if (!to.spe.discard && p.records() == 0)
        say("error", fmt::format("nothing recorded: {} operation{} chosen, {} of them filtered out", grouped(p.chosen),
                                 p.chosen == 1 ? " was" : "s were",
                                 grouped(p.fates[static_cast<std::size_t>(spe::Fate::filtered)])));
    if (const std::uint64_t collided = p.fates[static_cast<std::size_t>(spe::Fate::collided)];
        collided != 0 && !common.quiet)
        say("note",
            fmt::format("{} samples collided with one that was still in flight and are lost, as on hardware; a longer "
                        "--period has fewer",
                        grouped(collided)));
    if (const auto status = ended_by_signal(*ending)) return *status;
    if (ending->code != 0 && !common.quiet) say("note", fmt::format("the program exited with {}", ending->code));
    return p.records() == 0 && !to.spe.discard ? nothing : decoded;
}

}  // namespace waymark::cli
