#include "record.h"

#include <fmt/format.h>

#include <sstream>
#include <utility>

#include "../options.h"
#include "../spe/record.h"
#include "waymark/image/program_kind.h"

namespace waymark::cli {

void PerfRecordOptions::add_to(CLI::App& to) {
    command = &to;
    as_option =
        to.add_option(
              "--as", as,
              "Form of a recording of program flow: snapshot, a folder that contains the code too; or perf, the "
              "perf.data file that 'perf record -e cs_etm//u' would have written, with the truth in "
              "PATH.truth.txt")
            ->check(CLI::IsMember({"snapshot", "perf"}))
            ->capture_default_str();
    const auto perf = [&](CLI::Option* option) {
        option->group("--as perf");
        only.push_back(option);
    };
    perf(to.add_option("--sink", sink,
                       "Where trace goes: etr, one buffer for all CPUs, in CoreSight frames; trbe, a buffer for each "
                       "CPU, its unit's bytes unformatted. Default: trbe for ete, else etr")
             ->check(CLI::IsMember({"etr", "trbe"})));
    perf(to.add_option("--loss", loss,
                       "late: sinks are read too late, so of each range an ETR keeps the newest --aux-buffer bytes "
                       "(TRUNCATED, with a barrier) and a TRBE the oldest (COLLISION); snapshot: read at the end "
                       "alone, each AUX ring then holds its newest bytes")
             ->check(CLI::IsMember({"none", "late", "snapshot"}))
             ->capture_default_str());
    perf(to.add_flag("--per-thread", per_thread,
                     "A ring for each thread instead of one for each CPU, without Context IDs and timestamps. Always "
                     "so with --unit ptm"));
    perf(
        to.add_option("--also", also,
                      "Another program, run when the one before it has ended, in the same file: its path and arguments "
                      "with spaces between them. May be repeated")
            ->type_name("COMMAND")
            ->allow_extra_args(false)
            ->take_all());
    perf(to.add_option("--cpus", cpus, "Number of CPUs on which the threads run, each with a unit of its own")
             ->type_name("N")
             ->capture_default_str());
}

Status PerfRecordOptions::check() const {
    if (!chosen()) {
        for (const CLI::Option* option : only)
            if (option->count() != 0)
                return Error{Errc::usage, fmt::format("{} goes with --as perf only", option->get_name())};
        return Nothing{};
    }
    for (const char* const name : {"--system", "--buffer", "--registers", "--view-range", "--exclude-range",
                                   "--trigger-at", "--cycle-threshold", "--max-changes"})
        if (given(name)) return Error{Errc::usage, fmt::format("{} does not go with --as perf", name)};
    return Nothing{};
}

void program_like_perf(const PerfRecordOptions& options, const flow::UnitFactory& units, flow::UnitOptions& unit) {
    if (!units.traces_aarch64()) return;
    constexpr unsigned linux_sync_bytes = 4096;
    if (!options.given("--sync")) unit.sync_bytes = linux_sync_bytes;
    if (!options.given("--context-id") && !options.per_thread) unit.context_id_bytes = 4;
}

namespace {

/// The programs of --also, in words.
Result<std::vector<std::vector<std::string>>> other_programs(const PerfRecordOptions& options, bool aarch64) {
    std::vector<std::vector<std::string>> out;
    for (const std::string& text : options.also) {
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

}  // namespace

ExitStatus run_record_perf(record::RecorderOptions base, const record::QemuOptions& how,
                           const PerfRecordOptions& options, std::uint64_t aux_kib, unsigned info_version, bool quiet) {
    record::PerfRecorderOptions to;
    to.file = std::move(base.folder);
    to.command = how.program;
    to.units = base.units;
    to.unit = std::move(base.unit);
    const bool ptm = !to.units->traces_aarch64();
    to.sink = options.sink == "trbe" || (options.sink.empty() && to.units->source_type(to.unit) == "ETE")
                  ? record::TraceSink::trbe
                  : record::TraceSink::etr;
    to.per_thread = options.per_thread || ptm;
    to.cpus = options.cpus;
    to.aux_bytes = aux_kib << 10;
    to.loss = options.loss == "late"       ? record::TraceLoss::late
              : options.loss == "snapshot" ? record::TraceLoss::snapshot
                                           : record::TraceLoss::none;
    to.info_version = info_version;
    to.truth_ranges = base.truth_ranges;
    to.aarch64 = base.aarch64;
    to.limit_instructions = base.limit_instructions;
    to.start_at = std::move(base.start_at);
    to.stop_at = std::move(base.stop_at);
    to.instruction_set = std::move(base.instruction_set);
    const std::string name = to.file.string();
    const std::string start_at = to.start_at ? to.start_at->text() : "", stop_at = to.stop_at ? to.stop_at->text() : "";
    const auto also = other_programs(options, to.aarch64);
    if (!also) return fail(also.error());
    auto recorder = record::PerfRecorder::create(std::move(to));
    if (!recorder) return fail(recorder.error());

    ProgressLine progress;
    const record::RecordProgress show = [&] {
        const record::PerfRecorded r = (*recorder)->recorded();
        progress.text(fmt::format("recorded {} instructions, {} bytes of trace", grouped(r.instructions),
                                  grouped(r.trace_bytes)));
    };
    auto ending = record::run_qemu(how, **recorder, progress.active() ? show : nullptr);
    for (const std::vector<std::string>& program : *also) {
        if (!ending || ending->killed || ending->interrupt || (*recorder)->stopped()) break;
        (*recorder)->next_program(program);
        record::QemuOptions next = how;
        next.program = program;
        ending = record::run_qemu(next, **recorder, progress.active() ? show : nullptr);
    }
    const auto finished = (*recorder)->finish(ending && !ending->killed);
    const record::PerfRecorded r = (*recorder)->recorded();
    if (!ending) return fail(ending.error());
    if (!finished) {
        say("error", finished.error().message + (ending->killed ? "; the program was ended" : ""));
        return static_cast<ExitStatus>(cut_off);
    }
    if (!r.began) {
        say("error",
            fmt::format("nothing recorded: {} --start-at {}",
                        r.start_known ? "execution never reached" : "no file that ran has the symbol of", start_at));
        return nothing;
    }
    if (!quiet)
        say("note",
            fmt::format("{}: {} instructions in {} ranges, {}{} thread{} on {} CPU{}, {} bytes of trace in {} AUX "
                        "range{}",
                        name, grouped(r.instructions), grouped(r.ranges),
                        r.processes > 1 ? fmt::format("{} processes, ", r.processes) : "", r.threads,
                        r.threads == 1 ? "" : "s", r.cpus, r.cpus == 1 ? "" : "s", grouped(r.trace_bytes),
                        grouped(r.aux_ranges), r.aux_ranges == 1 ? "" : "s"));
    if (r.lost_bytes != 0)
        say("warning",
            fmt::format("{} of trace lost, as --loss {} asks for", counted(r.lost_bytes, "byte"), options.loss));
    const bool never_stopped = !stop_at.empty() && !r.stopped;
    if (never_stopped)
        say("warning", fmt::format("--stop-at {}: {}; nothing stopped the recording", stop_at,
                                   r.stop_known ? "execution never reached it" : "no file that ran has such a symbol"));
    if (r.ranges == 0) {
        say("error", r.instructions == 0
                         ? std::string("nothing recorded: the program executed nothing")
                         : fmt::format("nothing recorded: {} executed, but no branch, so the trace shows none of them",
                                       counted(r.instructions, "instruction")));
        return nothing;
    }
    if (const auto status = ended_by_signal(*ending)) return *status;
    if (ending->code != 0 && !quiet) say("note", fmt::format("the program exited with {}", ending->code));
    return never_stopped ? nothing : decoded;
}

}  // namespace waymark::cli
