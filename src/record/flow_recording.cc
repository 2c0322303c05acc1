#include "waymark/record/flow_recording.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string_view>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/coresight/frame.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/recorded_program.h"
#include "waymark/record/vectors.h"

namespace waymark::record {

namespace {

/// Prints sums of the recorded execution.
void summarise(const FlowRecording& options, const Recorded& r, RecordOutcome& out) {
    const std::string& folder = options.folder;
    if (r.replaced)
        out.summary(r.kept_earlier
                        ? fmt::format("{}: the recording that was there is kept, because nothing was recorded", folder)
                        : fmt::format("{}: replaced the previous recording", folder));
    if (r.decodable && !r.kept_earlier)
        out.summary(fmt::format(
            "{}: {}{} in {}, {}, {} of trace, {} of code{}", folder,
            r.filtered_instructions == 0 ? std::string() : grouped(r.instructions - r.filtered_instructions) + " of ",
            counted(r.instructions, "instruction"), counted(r.ranges, "range"),
            counted(r.threads, options.system ? "core" : "thread"), counted(r.trace_bytes, "byte"),
            counted(r.code_bytes, "byte"),
            r.epochs == 1 ? ""
                          : fmt::format(", in {} buffers since code changed {} time{}", r.epochs, r.code_changes,
                                        r.code_changes == 1 ? "" : "s")));
    if (options.sink && r.trace_bytes == 0 && r.ranges != 0 && !r.kept_earlier)
        out.warning(fmt::format("no trace came into the {}; 'waymark explain {}' says which register holds it back",
                                options.sink->name(), folder));
    if (r.kept_bytes < r.trace_bytes)
        out.warning(
            fmt::format("{} wrapped: of {} of trace {} the last {}; what the program did earlier is overwritten. {}",
                        r.epochs == 1 ? "the buffer" : "buffers", counted(r.trace_bytes, "byte"),
                        r.epochs == 1 ? "it holds" : "they hold", counted(r.kept_bytes, "byte"),
                        options.sink ? r.stopped_by_trigger ? "A larger buffer, --sink KIND:BYTES, or a smaller "
                                                              "--stop-after-trigger keeps more from before"
                                                            : "A larger buffer, --sink KIND:BYTES, keeps more"
                                     : "A larger --buffer, or none, keeps more"));
}

/// Text such as `NIDEN=0, 1,200 instructions; OS Lock`.
std::string prohibited_text(const Recorded& r) {
    std::string out;
    for (const capture::NotPermitted& one : r.prohibited) {
        out += (out.empty() ? "" : "; ") + one.reason;
        if (one.instructions) out += ", " + counted(*one.instructions, "instruction");
    }
    return out;
}
/// Only the reasons.
std::string prohibited_by(const Recorded& r) {
    std::string out;
    for (const capture::NotPermitted& one : r.prohibited) out += (out.empty() ? "" : ", ") + one.reason;
    return out;
}

/// Reports the parts of the run for which trace was not permitted.
void say_prohibited(const Recorded& r, RecordOutcome& out) {
    if (r.prohibited.empty() || r.ranges == 0) return;
    out.summary(fmt::format("of {} ranges that executed, {} are not in the trace on purpose: {}",
                            grouped(r.ranges + r.filtered_ranges), grouped(r.not_permitted_ranges),
                            prohibited_text(r)));
}

/// Reports the fate of the trigger that should stop the capture. Returns true if it did not stop the capture.
bool say_trigger(const FlowRecording& options, const Recorded& r, RecordOutcome& out) {
    if (!options.sink || (!r.before_trigger && !options.sink->after_trigger())) return false;
    if (!r.before_trigger) {
        out.trigger_missed = true;
        out.warning(
            fmt::format("--stop-after-trigger: the trigger never came{}; nothing stopped the trace buffer, so "
                        "it holds the end of the run",
                        options.trigger_at.empty() ? std::string(": the unit's trigger event never happened")
                                                   : fmt::format(": execution never reached {}", options.trigger_at)));
        return true;
    }
    out.summary(
        fmt::format("the {} came after {} of frames; {} came after it{}",
                    r.triggers > 1 ? fmt::format("first of {} triggers", grouped(r.triggers)) : std::string("trigger"),
                    counted(*r.before_trigger, "byte"), counted(r.after_trigger, "byte"),
                    r.stopped_by_trigger ? ", and the trace buffer stopped" : ""));
    if (!options.sink->after_trigger() || r.stopped_by_trigger) return false;
    // The last two frames may have come by the flush at the end, which is too late to stop the buffer.
    constexpr std::uint64_t by_flush = 2 * coresight::frame_bytes;
    const std::uint64_t most = r.after_trigger <= by_flush ? 0 : (r.after_trigger - by_flush) / 4 * 4;
    out.warning(fmt::format(
        "--stop-after-trigger {}: {} came after the trigger, too few to stop the trace buffer, so it holds the end of "
        "the run; {}",
        *options.sink->after_trigger(), counted(r.after_trigger, "byte"),
        most == 0 ? std::string("let the trigger come earlier (--trigger-at)")
                  : fmt::format("give {} or less, or let the trigger come earlier (--trigger-at)", most)));
    return true;
}

/// Reports requested places that were never reached. Returns true if --stop-at is among them.
bool say_unreached(const FlowRecording& options, const Recorded& r, RecordOutcome& out) {
    for (const std::string& place : r.unknown_places)
        out.warning(fmt::format("{}: no file that ran has such a symbol{}; the unit's comparator for it never matched",
                                place, overloads_hint));
    for (const auto& [option, known] : r.unreached_signals)
        out.warning(fmt::format("{}: {}; the signal did not change there", option,
                                known ? std::string("execution never reached it")
                                      : fmt::format("no file that ran has such a symbol{}", overloads_hint)));
    if (r.trigger_unreached && !(options.sink && options.sink->after_trigger()))
        out.warning(
            fmt::format("--trigger-at {}: execution never reached it; there was no trigger", options.trigger_at));
    if (options.stop_at.empty() || r.stopped) return false;
    out.warning(fmt::format("--stop-at {}: {}; nothing stopped the recording", options.stop_at,
                            r.stop_known ? std::string("execution never reached it")
                                         : fmt::format("no file that ran has such a symbol{}", overloads_hint)));
    return true;
}

/// Reports what the recording lacks because QEMU did not show it.
void say_not_seen(const QemuOptions& how, bool vmid, const Recorded& r, RecordOutcome& out) {
    if (r.unknown_vector)
        out.note(
            fmt::format("exceptions went through a vector table at {:#x} that the image does not show; those "
                        "taken right after an indirect branch look like its target; give --vectors {:#x}",
                        r.unknown_vector->value & ~std::uint64_t{vector_table_bytes - 1},
                        r.unknown_vector->value & ~std::uint64_t{vector_table_bytes - 1}));
    if (r.stays_in_aarch32 != 0)
        out.warning(fmt::format("the program went to AArch32 state {}; what ran there is not recorded",
                                counted(r.stays_in_aarch32, "time")));
    if (r.unread_registers != 0)
        out.warning(fmt::format(
            "{} of SCR_EL3, HCR_EL2{} or CONTEXTIDR_EL1 by code that is not in the image{}: the "
            "values are not known, so the security state{} or Context ID may be wrong",
            counted(r.unread_registers, "write"), vmid ? ", VTTBR_EL2, CONTEXTIDR_EL2" : "",
            how.watched.size() > most_watched_writes ? ", or has too many of them" : "", vmid ? ", VMID" : ""));
    if (r.jumps != 0)
        out.warning(
            fmt::format("{} execution continued at a place to which no branch or exception led, as when a core is "
                        "reset or started; the trace has a gap there",
                        counted(r.jumps, "time")));
}

RecordOutcome flow_outcome(const FlowRecording& options, const QemuOptions& how, const Recorded& r,
                           const Ending& ending, const Status& finished, RecordOutcome out) {
    using Kind = RecordOutcome::Kind;
    summarise(options, r, out);
    if (!finished) {
        out.decodable = r.decodable && !r.kept_earlier;
        return out.failed(
            Kind::cut_off,
            fmt::format("{}{}{}", finished.error().message, ending.killed ? "; the program was ended" : "",
                        out.decodable ? "; what was written before can be decoded"
                                      : "; nothing of the recording can be decoded: make room and record again"));
    }
    if (!r.began)
        return out.failed(Kind::nothing,
                          fmt::format("nothing recorded: {} --start-at {}{}",
                                      r.start_known ? "execution never reached" : "no file that ran has the symbol of",
                                      options.start_at, r.start_known ? "" : overloads_hint));
    say_prohibited(r, out);
    const bool never_reached = say_unreached(options, r, out);
    const bool never_stopped = say_trigger(options, r, out) || never_reached;
    const std::string& program = options.program.front();
    if (r.instructions == 0 && !r.stuck)
        return out.failed(
            Kind::nothing,
            fmt::format("nothing recorded: the program executed nothing; {} {}{}", how.qemu.filename().string(),
                        ending.kind == Ending::Kind::signalled ? "was ended by " + signal_name(ending.code)
                                                               : fmt::format("ended with status {}", ending.code),
                        !options.system && kind_of(program).dynamic
                            ? "; the program needs its dynamic linker and libraries, in the folder that "
                              "--sysroot names"
                            : ""));
    say_not_seen(how, options.unit.vmid, r, out);
    if (out.ended_by_signal(ending)) return out;
    if (r.changed_too_often)
        return out.failed(Kind::cut_off,
                          fmt::format("code that had executed changed more than {} times; the run up to there is "
                                      "recorded. Each change begins a new buffer; --max-changes allows more",
                                      grouped(options.changes)));
    const Kind lost = r.ranges == 0 ? Kind::nothing : Kind::cut_off;
    if (r.lost_way)
        return out.failed(
            lost, fmt::format(
                      "recording stopped at {:#x}: half a megabyte ran without a single branch, as empty memory does{}",
                      r.lost_way->value,
                      options.system ? fmt::format("; is the image made for the machine {}? --machine and --core "
                                                   "choose another",
                                                   options.machine_name())
                                     : std::string()));
    if (r.stuck)
        return out.failed(
            lost, fmt::format("recording stopped: at {:#x} exception followed exception and nothing executed, as where "
                              "there is no memory; is the image made for the machine {}? --machine and --core choose "
                              "another",
                              r.stuck->value, options.machine_name()));
    if (r.ranges == 0 && r.filtered_ranges != 0 && r.not_permitted_ranges == r.filtered_ranges)
        return out.failed(
            Kind::nothing,
            fmt::format("nothing recorded: {} executed in {}, none of which the unit was permitted to trace "
                        "({}); check --authentication, --unit-power and --os-lock",
                        counted(r.instructions, "instruction"), counted(r.filtered_ranges, "range"), prohibited_by(r)));
    if (r.ranges == 0 && r.not_permitted_ranges != 0)
        return out.failed(Kind::nothing,
                          fmt::format("nothing recorded: {} executed in {}; the unit was not permitted ({}) to "
                                      "trace the {} that it was programmed to trace; check --view-range, "
                                      "--exclude-range, --registers, --authentication, --unit-power and --os-lock",
                                      counted(r.instructions, "instruction"), counted(r.filtered_ranges, "range"),
                                      prohibited_by(r), grouped(r.not_permitted_ranges)));
    if (r.ranges == 0 && r.filtered_ranges != 0)
        return out.failed(Kind::nothing,
                          fmt::format("nothing recorded: {} executed in {}, none of which the unit was "
                                      "programmed to trace; check --view-range, --exclude-range and --registers",
                                      counted(r.instructions, "instruction"), counted(r.filtered_ranges, "range")));
    if (r.ranges == 0)
        return out.failed(
            Kind::nothing,
            fmt::format("nothing recorded: {} executed, but no branch, so the trace shows none of them{}",
                        counted(r.instructions, "instruction"),
                        options.system ? fmt::format("; is the image made for the machine {}?", options.machine_name())
                        : options.start_at.empty() && options.stop_at.empty() && options.limit == 0
                            ? ""
                            : "; let --start-at, --stop-at or --limit leave more of the run"));
    if (ending.ended) {
        out.summary("the recording was stopped as asked for, and QEMU ended");
        return out;
    }
    out.say_status(ending);
    // The whole run was recorded, but not the requested part.
    if (never_stopped) out.kind = Kind::nothing;
    return out;
}

/// How the program ended, for the description of the recording; empty if it exited with 0 or Waymark ended it.
std::string ending_text(const Ending& ending) {
    if (ending.killed || ending.ended) return {};
    if (ending.interrupt) return "interrupted by " + signal_name(*ending.interrupt);
    if (ending.kind == Ending::Kind::signalled) return "ended by " + signal_name(ending.code);
    return ending.code == 0 ? std::string() : fmt::format("exited with {}", ending.code);
}

}  // namespace

Result<RecordOutcome> record_flow(const FlowRecording& options, FlowSetup setup, const ShowRecording& show) {
    const QemuOptions& how = setup.qemu;
    WM_ASSIGN_OR_RETURN(const auto recorder, Recorder::create(std::move(setup.recorder)));
    // File systems have coarse clocks.
    const auto began = std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1);
    const RecordProgress progress = [&] {
        const Recorded r = recorder->recorded();
        show(fmt::format("recorded {} instructions, {} bytes of trace", grouped(r.instructions),
                         grouped(r.trace_bytes)));
    };
    const auto ending = run_qemu(how, *recorder, show ? progress : nullptr);
    RecordOutcome out;
    if (ending && !options.system)
        if (const auto taken = recorder->take_generated_names(ending->process, began); !taken)
            out.warning(fmt::format("{}; code that was generated has no names from it", taken.error().message));
    const Status finished = recorder->finish(ending && !ending->killed, ending ? ending_text(*ending) : std::string());
    if (!ending) return ending.error();
    return flow_outcome(options, how, recorder->recorded(), *ending, finished, std::move(out));
}

}  // namespace waymark::record
