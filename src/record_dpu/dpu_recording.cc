#include "waymark/record_dpu/dpu_recording.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/record/recorded_program.h"

namespace waymark::record {

namespace {

constexpr LinuxProgram a32{1, 40, "qemu-arm", "/usr/arm-linux-gnueabihf",
                           "a 32-bit Arm program (ELF); program addresses of a DPU have 32 bits. "
                           "arm-linux-gnueabihf-gcc makes such programs"};

/// A sentence on how the recording ended.
std::string end_text(const Ending& ending, const DpuRecorded& recorded) {
    if (!recorded.debug_state.empty())
        return fmt::format("in debug state, which the unit asked for ({}), and the program ran on",
                           recorded.debug_state);
    if (recorded.limited) return std::string(limited_run);
    if (ending.interrupt)
        return fmt::format("by {} to the recorder{}", signal_name(*ending.interrupt), capture::recorded_up_to_there);
    if (ending.kind == Ending::Kind::signalled)
        return fmt::format("by {}, of which the program died{}", signal_name(ending.code),
                           capture::recorded_up_to_there);
    if (ending.killed) return "by force, and what the program did last may be missing";
    return std::string(whole_run);
}

std::string nothing_ran(const Ending& ending) {
    std::string out = "nothing recorded: the program executed nothing";
    if (ending.kind == Ending::Kind::signalled)
        return out + fmt::format("; it was ended by {}", signal_name(ending.code));
    if (ending.code != 0)
        out += fmt::format(
            ", and QEMU exited with {}; its message is above. A program with libraries needs --sysroot, and arguments "
            "of --qemu must be options of QEMU",
            ending.code);
    return out;
}

void say_what_is_missing(const DpuRecorded& r, const std::function<std::string()>& why_empty, RecordOutcome& out) {
    for (const dpu::ProgrammingError& error : r.errors)
        out.remarks.push_back(
            {RecordOutcome::Level::repeated, fmt::format("cycle {}: {}", grouped(error.cycle), error.message)});
    if (r.lost != 0)
        out.warning(fmt::format("{} lost: the trace write buffer was full; the trace says where",
                                counted(r.lost, "entry is", "entries are")));
    if (r.shared_id) out.warning("more than 254 threads at a time: the later ones share task ID 255, and their costs");
    if (r.buffer && r.lines > *r.buffer)
        out.warning(
            fmt::format("the buffer wrapped: of {} of trace it contains the last {}; what the program did earlier is "
                        "overwritten. A larger --buffer, or none, keeps more",
                        counted(r.lines * 32, "byte"), counted(*r.buffer * 32, "byte")));
    if (r.overruns != 0)
        out.warning(fmt::format("{}: trace that had not been read out was overwritten; a larger --buffer keeps it",
                                counted(r.overruns, "readout came too late", "readouts came too late")));
    if (r.entries != 0 || r.nexus_bytes != 0) return;
    if (const std::string why = why_empty(); !why.empty()) out.warning("the trace is empty: " + why);
}

RecordOutcome dpu_outcome(const DpuOptions& to, const DpuRecorded& r, const Ending& ending, const Status& finished,
                          const std::function<std::string()>& why_empty) {
    RecordOutcome out;
    const std::string folder = to.folder.string();
    if (r.replaced) out.summary(folder + ": replaced the previous recording");
    out.summary(fmt::format(
        "{}: {} instructions of {} in {} modelled cycles, {} of trace{}; cycles, stalls and caches "
        "come from the modelled core",
        folder, grouped(r.instructions), counted(r.threads, "thread"), grouped(r.cycles), counted(r.lines * 32, "byte"),
        r.nexus_bytes == 0 ? std::string() : fmt::format(", {} of Nexus messages", counted(r.nexus_bytes, "byte"))));
    for (const Service service : all_services)
        if (const std::uint64_t times = r.served[static_cast<std::size_t>(service)]; times != 0)
            out.summary(
                service == Service::debug
                    ? fmt::format("{} of the unit", counted(times, "debug exception", "debug exceptions"))
                    : fmt::format("{} of the unit on {}", counted(times, "interrupt", "interrupts"), name(service)));
    if (!finished) return out.not_finished(finished.error(), ending);
    say_what_is_missing(r, why_empty, out);
    if (out.ended_by_signal(ending)) return out;
    if (!r.debug_state.empty()) {
        out.summary(
            fmt::format("the unit put the core into debug state: {}. The recording ends there; --on-debug FILE "
                        "handles debug requests as exceptions",
                        r.debug_state));
        return out;
    }
    if (r.limited)
        out.summary(fmt::format("recording stopped at --limit {}; the program ran on", grouped(to.limit_instructions)));
    out.say_status(ending);
    return out;
}

}  // namespace

Status check_dpu_program(const std::string& program) { return check_linux_program(program, a32); }

Result<RecordOutcome> record_dpu(const DpuOptions& to, const std::string& sysroot,
                                 const std::vector<std::string>& qemu_options, const ShowRecording& show,
                                 const std::function<std::string()>& why_empty) {
    WM_ASSIGN_OR_RETURN(QemuOptions how, linux_emulator(to.command, sysroot, a32));
    how.sized = true;
    how.qemu_arguments.insert(how.qemu_arguments.end(), qemu_options.begin(), qemu_options.end());
    WM_RETURN_IF_ERROR(check_executable(to.command.front()));
    WM_ASSIGN_OR_RETURN(const auto recorder, DpuRecorder::create(to));
    const RecordProgress progress = [&] {
        const DpuRecorded r = recorder->recorded();
        show(fmt::format("recorded {} instructions, {} lines of trace", grouped(r.instructions), grouped(r.lines)));
    };
    const auto ending = run_qemu(how, *recorder, show ? progress : nullptr);
    if (!ending || recorder->recorded().instructions == 0) {
        recorder->discard();
        if (!ending) return ending.error();
        return RecordOutcome{}.failed(RecordOutcome::Kind::nothing, nothing_ran(*ending));
    }
    const Status finished = recorder->finish(end_text(*ending, recorder->recorded()));
    return dpu_outcome(to, recorder->recorded(), *ending, finished, why_empty);
}

}  // namespace waymark::record
