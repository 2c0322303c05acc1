#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/image/program_kind.h"
#include "waymark/record/flow_recording.h"
#include "waymark/record/recorded_program.h"

namespace waymark::record {

namespace {

/// Splits further programs into words.
Result<std::vector<std::vector<std::string>>> other_programs(const std::vector<std::string>& also, bool aarch64) {
    std::vector<std::vector<std::string>> out;
    for (const std::string& text : also) {
        std::vector<std::string>& words = out.emplace_back();
        std::istringstream in(text);
        for (std::string word; in >> word;) words.push_back(word);
        if (words.empty()) return Error{Errc::usage, "--also: no program given"};
        WM_ASSIGN_OR_RETURN(const image::ProgramKind kind, image::program_kind(words.front()));
        if (kind.aarch64 != aarch64)
            return Error{Errc::unsupported,
                         fmt::format("--also {}: all programs of a file are of one kind, and this one is a {}-bit one",
                                     words.front(), kind.aarch64 ? 64 : 32)};
        WM_RETURN_IF_ERROR(check_executable(words.front()));
    }
    return out;
}

PerfRecorderOptions perf_options(RecorderOptions base, const std::vector<std::string>& program,
                                 const PerfRecording& options) {
    PerfRecorderOptions to;
    to.file = std::move(base.folder);
    to.command = program;
    to.units = base.units;
    to.unit = std::move(base.unit);
    const bool usual = options.sink.empty();
    to.sink =
        options.sink == "trbe" || (usual && to.units->source_type(to.unit) == "ETE") ? TraceSink::trbe : TraceSink::etr;
    to.per_thread = options.per_thread || !to.units->traces_aarch64();
    to.cpus = options.cpus;
    to.aux_bytes = options.aux_kib << 10;
    to.loss = options.loss == "late"       ? TraceLoss::late
              : options.loss == "snapshot" ? TraceLoss::snapshot
                                           : TraceLoss::none;
    to.info_version = options.info_version;
    to.sink_ids = options.sink_ids;
    to.truth_ranges = base.truth_ranges;
    to.aarch64 = base.aarch64;
    to.limit_instructions = base.limit_instructions;
    to.start_at = std::move(base.start_at);
    to.stop_at = std::move(base.stop_at);
    to.instruction_set = std::move(base.instruction_set);
    return to;
}

/// The requested recording, in the words of messages.
struct Asked {
    std::string file, start_at, stop_at, loss;
};

RecordOutcome perf_outcome(const Asked& asked, const PerfRecorded& r, const Ending& ending, const Status& finished) {
    using Kind = RecordOutcome::Kind;
    RecordOutcome out;
    if (r.replaced) out.summary(asked.file + ": replaced the previous recording");
    if (!finished) return out.not_finished(finished.error(), ending);
    if (!r.began)
        return out.failed(Kind::nothing,
                          fmt::format("nothing recorded: {} --start-at {}",
                                      r.start_known ? "execution never reached" : "no file that ran has the symbol of",
                                      asked.start_at));
    out.summary(fmt::format("{}: {} in {}, {}{} on {}, {} of trace in {}", asked.file,
                            counted(r.instructions, "instruction"), counted(r.ranges, "range"),
                            r.processes > 1 ? fmt::format("{} processes, ", r.processes) : "",
                            counted(r.threads, "thread"), counted(r.cpus, "CPU"), counted(r.trace_bytes, "byte"),
                            counted(r.aux_ranges, "AUX range")));
    if (r.lost_bytes != 0)
        out.warning(fmt::format("{} of trace lost, as --loss {} requests", counted(r.lost_bytes, "byte"), asked.loss));
    const bool never_stopped = !asked.stop_at.empty() && !r.stopped;
    if (never_stopped)
        out.warning(fmt::format("--stop-at {}: {}; nothing stopped the recording", asked.stop_at,
                                r.stop_known ? "execution never reached it" : "no file that ran has such a symbol"));
    if (r.ranges == 0)
        return out.failed(Kind::nothing,
                          r.instructions == 0
                              ? std::string("nothing recorded: the program executed nothing")
                              : fmt::format("nothing recorded: {} executed, but no branch, so the trace shows none of "
                                            "them",
                                            counted(r.instructions, "instruction")));
    if (out.ended_by_signal(ending)) return out;
    out.say_status(ending);
    if (never_stopped) out.kind = Kind::nothing;
    return out;
}

}  // namespace

Result<RecordOutcome> record_perf(FlowSetup setup, const PerfRecording& options, const ShowRecording& show) {
    QemuOptions how = std::move(setup.qemu);
    how.threads = how.children = true;
    PerfRecorderOptions to = perf_options(std::move(setup.recorder), how.program, options);
    const Asked asked{to.file.string(), to.start_at ? to.start_at->text() : "", to.stop_at ? to.stop_at->text() : "",
                      options.loss};
    WM_ASSIGN_OR_RETURN(const auto also, other_programs(options.also, to.aarch64));
    WM_ASSIGN_OR_RETURN(const auto recorder, PerfRecorder::create(std::move(to)));
    const RecordProgress progress = [&] {
        const PerfRecorded r = recorder->recorded();
        show(fmt::format("recorded {} instructions, {} bytes of trace", grouped(r.instructions),
                         grouped(r.trace_bytes)));
    };
    auto ending = run_qemu(how, *recorder, show ? progress : nullptr);
    for (const std::vector<std::string>& program : also) {
        if (!ending || ending->killed || ending->interrupt || recorder->stopped()) break;
        recorder->next_program(program);
        QemuOptions next = how;
        next.program = program;
        ending = run_qemu(next, *recorder, show ? progress : nullptr);
    }
    if (!ending) return std::move(ending.error());
    const Status finished = recorder->finish(!ending->killed);
    return perf_outcome(asked, recorder->recorded(), *ending, finished);
}

}  // namespace waymark::record
