#include "waymark/record_spe/profile_recording.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/capture/text_file.h"
#include "waymark/core/numbers.h"
#include "waymark/image/memory_map.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/system_program.h"
#include "waymark/spe/register_file.h"

namespace waymark::record {

namespace {

std::string_view cpu_of(const MachineModel& model) {
    constexpr std::uint64_t part = 0xff00fff0, neoverse_n1 = 0x4100d0c0;
    return (model.midr & part) == neoverse_n1 ? "neoverse-n1" : "max";
}

/// A system: where profiling was on, and what the program wrote to the unit.
void say_levels(RecordOutcome& out, const ProfilerOptions& to, const Profiled& p) {
    out.summary(fmt::format(
        "operations at EL0 {}, EL1 {}, EL2 {}, EL3 {}; {} of them while profiling was off, or off for "
        "their level ('waymark explain' takes the registers and names the bit)",
        grouped(p.levels[0]), grouped(p.levels[1]), grouped(p.levels[2]), grouped(p.levels[3]), grouped(p.outside)));
    if (p.interrupts != 0)
        out.note(
            fmt::format("the buffer's interrupt (PMBIRQ) rose {}; the recorder served it, since QEMU cannot deliver it",
                        times(p.interrupts)));
    if (p.registers_written != 0)
        out.note(
            fmt::format("the program wrote {} to the unit; QEMU has no such registers and took an exception at each, "
                        "whose handler is in the profile",
                        counted(p.registers_written, "register value")));
    std::set<std::uint64_t> intervals;
    for (const auto& [event, chosen] : p.programmed) intervals.insert(event.period);
    std::string all;
    for (const std::uint64_t interval : intervals) all += (all.empty() ? "" : " and ") + grouped(interval);
    if (!intervals.empty() && intervals != std::set<std::uint64_t>{to.spe.period & ~0xffU})
        out.note(
            fmt::format("samples were taken at intervals of {} operations (PMSIRR_EL1), which the file states", all));
    if (p.registers_refused != 0)
        out.warning(fmt::format("{} to the unit did not take effect; the first was {}",
                                counted(p.registers_refused, "write"), p.refused));
    if (p.registers_unread != 0)
        out.warning(
            fmt::format("what {} to system registers wrote is not known, since QEMU's log does not show it; the "
                        "registers keep their values in the model",
                        counted(p.registers_unread, "instruction")));
}

RecordOutcome profile_outcome(const ProfilerOptions& to, const Profiled& p, const Ending& ending,
                              const Status& finished) {
    using Kind = RecordOutcome::Kind;
    RecordOutcome out;
    if (!finished) return out.not_finished(finished.error(), ending);
    out.summary(
        fmt::format("{}: {} operations of {} thread{}, {} records (period {}), {} bytes of trace; latencies, "
                    "cache, TLB and branch prediction events come from the modelled machine",
                    to.file.string(), grouped(p.instructions), p.threads, p.threads == 1 ? "" : "s",
                    grouped(p.records()), to.spe.period & ~0xffU, grouped(p.trace_bytes)));
    if (p.instructions == 0) return out.failed(Kind::nothing, "nothing recorded: the program executed nothing");
    if (to.system) say_levels(out, to, p);
    const bool none = p.records() == 0 && !to.spe.discard;
    if (to.spe.discard && p.records() == 0) out.note("discard: the unit was to write nothing, and wrote nothing");
    if (none)
        out = out.failed(Kind::nothing, fmt::format("nothing recorded: {} operation{} chosen, {} of them filtered out",
                                                    grouped(p.chosen), p.chosen == 1 ? " was" : "s were",
                                                    grouped(p.fates[static_cast<std::size_t>(spe::Fate::filtered)])));
    if (const std::uint64_t collided = p.fates[static_cast<std::size_t>(spe::Fate::collided)]; collided != 0)
        out.summary(
            fmt::format("{} samples collided with one that was still in flight and are lost, as on hardware; a longer "
                        "--period has fewer",
                        grouped(collided)));
    if (!out.ended_by_signal(ending)) out.say_status(ending);
    return out;
}

Result<QemuOptions> program_under_qemu(const ProfilerOptions& to, const ProfiledProgram& program) {
    constexpr LinuxProgram a64{2, static_cast<char>(183), "qemu-aarch64", "/usr/aarch64-linux-gnu",
                               "an AArch64 program (ELF); the Statistical Profiling Extension is for these alone. "
                               "aarch64-linux-gnu-gcc makes them"};
    WM_RETURN_IF_ERROR(check_linux_program(to.command.front(), a64));
    WM_ASSIGN_OR_RETURN(QemuOptions how, linux_emulator(to.command, program.sysroot, a64));
    how.qemu_arguments.insert(how.qemu_arguments.end(), {"-cpu", std::string(cpu_of(to.machine))});
    how.qemu_arguments.insert(how.qemu_arguments.end(), program.qemu_options.begin(), program.qemu_options.end());
    WM_RETURN_IF_ERROR(check_executable(to.command.front()));
    return how;
}

Result<QemuOptions> system_under_qemu(ProfilerOptions& to, const ProfiledProgram& program) {
    const std::string& image = to.command.front();
    image::MemoryMap memory;
    if (const auto added = memory.add_elf(image); !added) return added.error();
    if (!kind_of(image).aarch64)
        return Error{Errc::usage, fmt::format("--system --unit spe takes an AArch64 image, and {} is none; the "
                                              "Statistical Profiling Extension is for these alone",
                                              image)};
    if (program.processors > to.machine.cpus)
        return Error{Errc::usage, fmt::format("--smp {}: the modelled machine has {} CPUs; add --machine-set cpus={}",
                                              program.processors, to.machine.cpus, program.processors)};
    WM_ASSIGN_OR_RETURN(QemuOptions how,
                        a64_system_emulator({.command = to.command,
                                             .machine = program.machine.empty() ? a64_board : program.machine,
                                             .cpu = std::string(cpu_of(to.machine)),
                                             .processors = program.processors,
                                             .qemu_options = program.qemu_options},
                                            memory, {.profiling = true}));
    how.memory = true;
    how.exact = false;
    to.begins_off = programs_profiling(memory);
    return how;
}

}  // namespace

Status set_system(const FlowRecording& common, ProfilerOptions& to) {
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

Result<RecordOutcome> record_profile(ProfilerOptions to, const ProfiledProgram& program, const ShowRecording& show) {
    WM_RETURN_IF_ERROR(check(to));
    WM_ASSIGN_OR_RETURN(const QemuOptions how,
                        to.system ? system_under_qemu(to, program) : program_under_qemu(to, program));
    WM_ASSIGN_OR_RETURN(const auto profiler, Profiler::create(to));
    const RecordProgress progress = [&] {
        const Profiled p = profiler->profiled();
        show(fmt::format("profiled {} operations, {} records", grouped(p.instructions), grouped(p.records())));
    };
    const auto ending = run_qemu(how, *profiler, show ? progress : nullptr);
    if (!ending) return ending.error();
    const Status finished = profiler->finish(!ending->killed);
    return profile_outcome(to, profiler->profiled(), *ending, finished);
}

}  // namespace waymark::record
