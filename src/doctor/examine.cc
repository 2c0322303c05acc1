#include "waymark/doctor/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "examination.h"
#include "waymark/core/quote.h"
#include "waymark/doctor/explain.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/recover.h"

namespace waymark::doctor {

namespace {

using capture::Buffer;

class Examiner : Part {
public:
    using Part::Part;

    void run() {
        report_.cut = !pipeline::file_damage(session_).empty();
        if (session_.capture.spaces != nullptr)
            ProcessFindings(examination_).report();
        else
            report_problems();
        if (session_.capture.buffers.empty() && session_.capture.spaces == nullptr)
            add_finding({Severity::error,
                         "no-buffer",
                         {},
                         {},
                         {},
                         "the capture contains no trace buffer",
                         "at least one",
                         "[trace_buffers] is missing from trace.ini, or the perf.data file has no trace",
                         "add the trace file to trace.ini, or record again"});
        report_sinks();
        for (const Buffer& buffer : session_.capture.buffers) {
            progress("examining " + buffer.name);
            Buffers(examination_).look_at(buffer);
        }
        for (std::size_t i = 0; i < report_.sources.size(); ++i) configure(report_.sources[i], stretches_[i]);
        for (std::size_t i = 0; i < report_.buffers.size(); ++i)
            DamageOfBuffer(examination_).look_for(report_.buffers[i], samples_[i]);
        for (std::size_t i = 0; i < report_.sources.size(); ++i) judge(report_.sources[i], stretches_[i]);
        ImageTrials(examination_).report();
        MissingMemory(examination_).report();
        account();
        conclude();
    }

private:
    /// Reports the evidence in the registers of trace buffers about why a buffer is empty, wrapped or ends early.
    void report_sinks() {
        const std::string folder = session_.capture.path.parent_path().string();
        for (const ExplainedSource& device : explained_sinks(session_.capture))
            for (const protocol::TraceCondition& f : device.explanation.findings) {
                if (device.has_trace && is_normal_stop(f)) continue;
                // Closed inputs and filtered IDs are often meant so.
                const bool link = device.role == sink::SinkRole::link;
                if (link && (f.effect == protocol::TraceEffect::note ||
                             (device.has_trace && f.effect != protocol::TraceEffect::stops)))
                    continue;
                // A finding begins with the registers' values, and goes on with what they mean.
                const std::size_t colon = f.text.find(": ");
                const std::string values = f.text.substr(0, colon);
                const std::string buffer = device.source == device.explanation.unit
                                               ? device.source
                                               : fmt::format("{} {}", device.explanation.unit, device.source);
                add_finding(
                    {f.effect == protocol::TraceEffect::stops ? Severity::warning : Severity::note,
                     std::string(sink_register),
                     {},
                     device.source,
                     {},
                     fmt::format("{}: {}", buffer, colon == f.text.npos ? f.field : values),
                     link                                      ? "it passes all trace on"
                     : device.role == sink::SinkRole::triggers ? "it passes triggers on"
                                                               : "a buffer that takes all trace and keeps it",
                     colon == f.text.npos ? f.text : f.text.substr(colon + 2),
                     f.remedy.empty() ? "waymark explain " + shell_file(folder.empty() ? "." : folder) : f.remedy});
            }
    }
    /// A buffer whose trace was saved was stopped before that.
    [[nodiscard]] static bool is_normal_stop(const protocol::TraceCondition& f) {
        if (f.field == "FFCR.StopOnFl") return true;
        return f.effect == protocol::TraceEffect::note && (f.field == "CTL.TraceCaptEn" || f.field == "FFSR.FtStopped");
    }
    /// Reports problems of the description.
    void report_problems() {
        for (const capture::Problem& problem : session_.problems) {
            if (!problem.lacks.empty()) continue;  // reported below, with its consequences
            if (problem.is_loss()) {
                add_finding({Severity::warning,
                             "part-of-run",
                             {},
                             {},
                             {},
                             capture::to_string(problem),
                             "the whole run",
                             "the recording was limited by options, lost trace, or the file was cut",
                             "treat code that did not run as not observed; for the whole run, copy the file again or "
                             "record again"});
                continue;
            }
            if (problem.kind == capture::Problem::Kind::names) {
                add_finding({Severity::warning,
                             std::string(missing_names),
                             {},
                             {},
                             {},
                             capture::to_string(problem),
                             "the mapped files and their addresses, which give names to code",
                             "a file was moved, removed or rebuilt after the recording",
                             "nothing if names are not needed: the trace is complete; otherwise see 'found'"});
                continue;
            }
            add_finding({Severity::warning,
                         "description",
                         {},
                         {},
                         {},
                         capture::to_string(problem),
                         "a description without contradictions",
                         "the capture's description (ini files or perf.data records), or options given for it",
                         "correct the description; settings that it lacks are inferred below"});
        }
    }

    // ---- sources

    /// Decides how the source's unit was programmed, and so which bytes are trace.
    void configure(ExaminedSource& source, std::vector<Stretch>& stretches) {
        if (!source.configuration) return;
        progress("configuring " + source.name);
        const std::size_t index = index_of(source);
        if (source.configured) {
            source.as_described = known_[index]->configuration;
            protocol::Settled settled = source.identity.protocol->settle(source.identity, *known_[index]->configuration,
                                                                         stretches, source.name);
            source.configuration = std::move(settled.configuration);
            add_findings(source, std::move(settled.findings));
            take_given_facts(source, *known_[index]);
        }
        take_end_mark_off(stretches, *source.configuration);
        source.bytes = 0;
        for (const Stretch& s : stretches) source.bytes += s.bytes.size();
    }

    void judge(ExaminedSource& source, const std::vector<Stretch>& stretches) {
        if (source.identity.protocol == nullptr) return;
        add_findings(source, source.identity.protocol->health(source.identity, source.configuration.get(), stretches,
                                                              source.buffer));
        if (!source.has_flow()) return;
        const std::size_t index = index_of(source);
        progress("comparing " + source.name + " with the program");
        ImageTrials(examination_).judge(source, stretches, known_[index]);
        progress("recovering the head of " + source.name);
        recover(source, stretches, known_[index]);
    }
    /// If nothing is recognised, a few bytes may still be trace without a synchronisation.
    void report_no_sync(const ExaminedSource& source) {
        // Four times the largest usual distance between synchronisations: a longer dump without one is not trace.
        constexpr std::uint64_t few_bytes = 4 * 4096;
        if (source.bytes == 0 || source.bytes > few_bytes) return;
        constexpr std::uint64_t usual_distance = 4096;
        const bool is_short = source.bytes < usual_distance;
        add_finding(
            source, Severity::warning, "no-synchronisation", first_offset(source),
            fmt::format("no synchronisation of a trace unit in {}", bytes_text(source.bytes)),
            "an A-sync, which units send every 256 to 4,096 bytes as they are mostly programmed",
            fmt::format("{}, another unit sent the bytes, or they are not trace",
                        is_short ? "the dump is shorter than the distance between two synchronisations"
                                 : "the unit synchronises only where it is enabled (its distance is 0), and the sink "
                                   "overwrote that"),
            fmt::format(
                "{}{}",
                is_short ? "save the whole sink" : "program a distance (1,024 bytes is usual), and record again",
                source.described ? "" : "; name a unit that needs none, such as an MTB (--protocol)"));
    }

    // ---- the head

    void recover(ExaminedSource& source, const std::vector<Stretch>& stretches, const pipeline::Source* known) {
        if (stretches.empty() || !stretches.front().head || !source.identity.protocol->recovers_head()) return;
        std::shared_ptr<const image::MemoryMap> map;
        if (source.image) {
            const ImageVerdict& v = report_.images[*source.image];
            if (v.argument.empty()) {
                if (known != nullptr) map = known->memory;
            } else if (auto loaded = load_arguments(v.arguments())(0); loaded) {
                map = *loaded;
            }
        }
        if (!map) return;
        const Bytes bytes = stretches.front().bytes;
        constexpr std::size_t most = std::size_t{1} << 20;
        source.head = source.configuration->recover_head(*map, pipeline::code_extents(*map),
                                                         bytes.first(std::min(bytes.size(), most)));
    }

    // ---- the sum

    [[nodiscard]] bool examined_all() const {
        return std::all_of(report_.buffers.begin(), report_.buffers.end(), [](const ExaminedBuffer& buffer) {
            return buffer.bytes && *buffer.bytes == buffer.looked_at;
        });
    }

    void account() {
        if (!examined_all()) return;
        progress("decoding all sources");
        if (!report_.labelled) {
            for (std::size_t i = 0; i < report_.buffers.size(); ++i)
                answers::add(report_.account, DamageOfBuffer(examination_).account(report_.buffers[i], samples_[i]));
            return;
        }
        const auto selected = session_.select({});
        if (!selected) return;
        std::vector<Error> unreadable;
        report_.account = pipeline::account_of(session_, *selected, {}, &unreadable);
        if (report_.cut) return;
        for (const Error& error : unreadable) {
            report_.cut = true;
            add_finding({Severity::error,
                         "unreadable",
                         {},
                         {},
                         {},
                         error.message,
                         "a readable file",
                         "the file could be read at first, but not again",
                         "look at the disk, and copy the file"});
        }
    }

    /// Combines findings of one kind in one buffer, such as one for each of a hundred trace IDs.
    void gather() {
        constexpr std::size_t shown = 3, shown_idle = 1;
        std::map<std::tuple<Severity, std::string, std::string, std::string>, std::vector<std::size_t>> kinds;
        for (std::size_t i = 0; i < report_.findings.size(); ++i) {
            const CaptureFinding& f = report_.findings[i];
            if (!f.kind.starts_with("image"))
                kinds[{f.severity, f.kind, f.buffer, without_particulars(f.found)}].push_back(i);
        }
        std::vector<bool> gone(report_.findings.size());
        for (const auto& [key, alike] : kinds) {
            const bool idle = std::get<1>(key) == idle_source || std::get<1>(key) == no_bytes;
            if (alike.size() <= (idle ? shown_idle : shown)) continue;
            CaptureFinding& first = report_.findings[alike.front()];
            std::string others;
            for (std::size_t k = 1; k < alike.size(); ++k) {
                const CaptureFinding& f = report_.findings[alike[k]];
                gone[alike[k]] = true;
                if (k < shown)
                    others += (others.empty() ? "" : "; ") + (f.source.empty() ? "" : f.source + ": ") + f.found;
            }
            first.found += fmt::format("; and {} more of this kind, such as {}", grouped(alike.size() - 1), others);
        }
        std::size_t at = 0;
        std::erase_if(report_.findings, [&](const CaptureFinding&) { return gone[at++]; });
    }

    /// Among zeros, a few bytes look like the IDs of frames; the sources with these IDs then contain only zeros. If no
    /// protocol is recognised, they are not sources. Findings about files, the description and its sources remain.
    void forget_invented_sources() {
        if (report_.recognised || report_.buffers.size() != 1 || samples_.size() != 1) return;
        if (std::any_of(report_.sources.begin(), report_.sources.end(), [](const auto& s) { return s.described; }))
            return;
        constexpr std::uint64_t least = 256, one_in = 64;
        const std::uint64_t bytes = samples_.front().bytes();
        std::uint64_t written = 0;
        for (const auto& piece : samples_.front().pieces)
            written += static_cast<std::uint64_t>(
                std::count_if(piece.bytes.begin(), piece.bytes.end(), [](std::uint8_t byte) { return byte != 0; }));
        if (bytes < least || written == 0 || written * one_in > bytes) return;
        ExaminedBuffer& buffer = report_.buffers.front();
        if (!buffer.no_trace.empty()) return;
        buffer.format = Buffer::Format::unknown;
        buffer.no_trace = fmt::format("{}, all but {} of them 0", counted(bytes, "byte"), grouped(written));
        const auto invented = [&](const CaptureFinding& f) {
            // Consequences of IDs that no unit sent.
            constexpr std::array<std::string_view, 11> of_frames{
                "framing", "frame-offset", "damaged-frames", "no-frame-sync", "cut-frame",  "no-id-yet",
                "trigger", "idle",         "reserved-id",    "damaged-id",    "stray-bytes"};
            if (f.source.empty()) return std::find(of_frames.begin(), of_frames.end(), f.kind) != of_frames.end();
            return f.kind != "image-unreadable" &&
                   std::any_of(report_.sources.begin(), report_.sources.end(),
                               [&](const ExaminedSource& s) { return s.name == f.source; });
        };
        std::erase_if(report_.findings, invented);
        report_.sources.clear();
        add_finding({Severity::error,
                     "hardly-written",
                     buffer.name,
                     {},
                     Offset{},
                     "no trace: " + buffer.no_trace,
                     "bytes of a trace unit",
                     "memory that was cleared, and something else wrote to it; a unit's trace is dense",
                     "check the address of the dump, and that unit, funnel and sink were enabled; record again"});
    }

    void conclude() {
        const auto idle = std::count_if(report_.findings.begin(), report_.findings.end(),
                                        [](const CaptureFinding& f) { return f.kind == idle_source; });
        report_.recognised = std::any_of(report_.sources.begin(), report_.sources.end(),
                                         [](const ExaminedSource& s) { return s.identity.protocol != nullptr; });
        forget_invented_sources();
        const bool unsynchronised = !report_.recognised && !report_.sources.empty() &&
                                    std::all_of(report_.sources.begin(), report_.sources.end(),
                                                [&](const auto& s) { return !has_async(stretches_[index_of(s)]); });
        if (unsynchronised)
            for (const ExaminedSource& source : report_.sources) report_no_sync(source);
        gather();
        // What the registers of a buffer say is the cause of its being empty, and comes first.
        const bool nothing_in_it = std::any_of(report_.findings.begin(), report_.findings.end(),
                                               [](const CaptureFinding& f) { return f.kind == empty_buffer; });
        const auto rank = [&](const CaptureFinding& f) {
            return std::pair(nothing_in_it && f.kind == sink_register ? Severity::error : f.severity, f.offset);
        };
        std::stable_sort(report_.findings.begin(), report_.findings.end(),
                         [&](const CaptureFinding& a, const CaptureFinding& b) { return rank(a) < rank(b); });
        const auto is = [&](auto&& test) { return std::any_of(report_.sources.begin(), report_.sources.end(), test); };
        const bool flow = is([](const ExaminedSource& s) { return s.has_flow(); });
        const bool code = is([](const ExaminedSource& s) { return s.image.has_value(); });
        const bool lacks = std::any_of(report_.findings.begin(), report_.findings.end(), [](const CaptureFinding& f) {
            return f.kind == "image-missing" && f.severity != Severity::note;
        });
        const std::size_t errors = report_.count(Severity::error), warnings = report_.count(Severity::warning);
        const auto strangers =
            static_cast<std::size_t>(std::count_if(report_.findings.begin(), report_.findings.end(),
                                                   [](const CaptureFinding& f) { return f.kind == not_recognised; }));
        const std::string known =
            warnings == 0 ? std::string() : fmt::format("; it has {}", counted(warnings, "warning"));
        const auto flows = std::count_if(report_.sources.begin(), report_.sources.end(),
                                         [](const ExaminedSource& s) { return s.has_flow(); });
        const auto empty = std::find_if(report_.buffers.begin(), report_.buffers.end(),
                                        [](const ExaminedBuffer& b) { return !b.no_trace.empty(); });
        if (!report_.recognised)
            report_.verdict =
                empty != report_.buffers.end() && report_.buffers.size() == 1
                    ? fmt::format("There is no trace in it: {}.", empty->no_trace)
                : report_.sources.empty() ? "The capture contains no trace to diagnose."
                : unsynchronised
                    ? "No trace protocol that Waymark knows was recognised, since no synchronisation is in it; the "
                      "list below shows what was tried."
                    : "No trace protocol that Waymark knows was recognised; the list below shows what was tried.";
        else if (errors != 0)
            report_.verdict =
                fmt::format("This capture needs {} before it can be trusted.", counted(errors, "correction"));
        else if (flow && !code && idle == flows && warnings == 0)
            report_.verdict = "Nothing is wrong with this capture, but it does not show that a core ran.";
        else if (flow && !code)
            report_.verdict = fmt::format("The packets of this capture can be read, but not decoded{}{}.",
                                          session_.capture.spaces ? ": the code of what ran is not known"
                                                                  : " without the program that ran (--image)",
                                          known);
        else if (lacks)
            report_.verdict =
                fmt::format("This capture decodes in part: memory that it describes is missing{}.", known);
        else if (answers::completeness(report_.account).strict)
            report_.verdict = fmt::format("This capture decodes in part{}.", known);
        else if (warnings != 0)
            report_.verdict = fmt::format("This capture decodes{}.", known);
        else if (strangers != 0)
            report_.verdict = fmt::format("Nothing is wrong with what Waymark decodes of this capture; {} not decoded.",
                                          strangers == 1 ? "one source is" : fmt::format("{} sources are", strangers));
        else
            report_.verdict = examined_all() ? "Nothing is wrong with this capture."
                                             : "Nothing is wrong with the examined part of this capture.";
    }
};

}  // namespace

std::string_view name(ImageVerdict::Kind kind) {
    switch (kind) {
        case ImageVerdict::Kind::matches: return "agrees";
        case ImageVerdict::Kind::in_part: return "agrees in part";
        case ImageVerdict::Kind::contradicts: return "does not fit";
        case ImageVerdict::Kind::not_reached: return "not reached";
        case ImageVerdict::Kind::shifted: return "agrees elsewhere";
        case ImageVerdict::Kind::other_build: return "another build";
        case ImageVerdict::Kind::unreadable: return "unreadable";
    }
    return "?";
}

std::size_t ExaminationReport::count(Severity severity) const {
    return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(),
                                                  [&](const CaptureFinding& f) { return f.severity == severity; }));
}

ExaminationReport examine(const pipeline::Session& session, bool labelled, const ExamineOptions& options) {
    Examination examination{session, options, {}, {}, {}, {}, {}, {}};
    examination.report.labelled = labelled;
    if (labelled && session.capture.spaces == nullptr && session.capture.path.filename() == "snapshot.ini")
        examination.report.description = session.capture.path;
    Examiner(examination).run();
    return std::move(examination.report);
}

}  // namespace waymark::doctor
