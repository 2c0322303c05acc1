#include "waymark/record_spe/profile_recording.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/record/recorded_program.h"

namespace waymark::record {

namespace {

std::string_view cpu_of(const MachineModel& model) {
    constexpr std::uint64_t part = 0xff00fff0, neoverse_n1 = 0x4100d0c0;
    return (model.midr & part) == neoverse_n1 ? "neoverse-n1" : "max";
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

}  // namespace

Result<RecordOutcome> record_profile(const ProfilerOptions& to, const std::string& sysroot,
                                     const std::vector<std::string>& qemu_options, const ShowRecording& show) {
    WM_RETURN_IF_ERROR(check(to));
    constexpr LinuxProgram a64{2, static_cast<char>(183), "qemu-aarch64", "/usr/aarch64-linux-gnu",
                               "an AArch64 program (ELF); the Statistical Profiling Extension is for these alone. "
                               "aarch64-linux-gnu-gcc makes them"};
    WM_RETURN_IF_ERROR(check_linux_program(to.command.front(), a64));
    WM_ASSIGN_OR_RETURN(QemuOptions how, linux_emulator(to.command, sysroot, a64));
    how.qemu_arguments.insert(how.qemu_arguments.end(), {"-cpu", std::string(cpu_of(to.machine))});
    how.qemu_arguments.insert(how.qemu_arguments.end(), qemu_options.begin(), qemu_options.end());
    WM_RETURN_IF_ERROR(check_executable(to.command.front()));
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
