#include "waymark/doctor/examine_captures.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/open/container.h"

namespace waymark::doctor {

namespace {

namespace fs = std::filesystem;

Result<pipeline::Session> snapshot_session(const fs::path& path, const CaptureInput& names) {
    pipeline::SessionOptions options{.images = {}, .symbols = names.symbols};
    WM_ASSIGN_OR_RETURN(options.files, names.file_search());
    WM_ASSIGN_OR_RETURN(capture::Capture capture, capture::read_snapshot(path));
    return pipeline::make_session(std::move(capture), options);
}

}  // namespace

Result<pipeline::Session> bare_session(const std::vector<std::string>& files) {
    capture::Capture capture;
    capture.path = files.front();
    for (const std::string& file : files) {
        // A text may contain the bytes as digits, so it is examined.
        if (auto error = open::no_trace(open::identify(file), false)) return std::move(*error);
        capture::Buffer buffer;
        buffer.name = file == "-" ? "standard input" : fs::path(file).filename().string();
        const auto taken = std::count_if(capture.buffers.begin(), capture.buffers.end(),
                                         [&](const capture::Buffer& b) { return b.name == buffer.name; });
        if (taken != 0) buffer.name = file;
        buffer.format = capture::Buffer::Format::unknown;
        buffer.files = {file};
        capture.buffers.push_back(std::move(buffer));
    }
    return pipeline::make_session(std::move(capture), {});
}

Result<ExaminationReport> examine_captures(const std::vector<std::string>& captures, const CaptureInput& names,
                                           const ExamineOptions& options, capture::perf::Progress* progress,
                                           const TakeNote& note) {
    const std::string& first = captures.front();
    std::vector<open::Container> containers;
    for (const std::string& capture : captures) containers.push_back(open::identify(capture));
    const open::Container& container = containers.front();
    const bool folder = container.is_snapshot(), recorded = !folder && container.contents() == open::Content::flow;
    if (containers.size() > 1 && std::any_of(containers.begin(), containers.end(), [](const open::Container& c) {
            return c.is_folder || c.contents() == open::Content::samples;
        }))
        return Error{Errc::usage, "several captures must all be bare trace files; else run doctor for each"};
    if (const char* given = !names.symbols.empty()          ? "--symbols"
                            : !names.symfs.empty()          ? "--symfs"
                            : !names.debug_folders.empty()  ? "--debug-dir"
                            : !names.symbol_folders.empty() ? "--symdir"
                            : !names.kallsyms.empty()       ? "--kallsyms"
                                                            : nullptr;
        given != nullptr && ((!folder && !recorded) || container.contents() == open::Content::counters))
        return Error{Errc::usage,
                     fmt::format("{}: {} is only for captures that contain a list of mapped files: snapshot folders "
                                 "and perf.data files with CoreSight trace or branch stacks",
                                 first, given)};
    if (container.contents() == open::Content::counters) return examine_dpu(first);
    if (container.contents() == open::Content::samples) return examine_perf(container);
    if (!names.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(names.kallsyms));
    if (recorded) {
        CaptureInput input = names;
        input.capture = first;
        input.images = options.images;
        WM_ASSIGN_OR_RETURN(const pipeline::Session session, open_capture(input, progress, note));
        return examine(session, true, {{}, options.most_bytes, options.progress});
    }
    WM_ASSIGN_OR_RETURN(const pipeline::Session session,
                        folder ? snapshot_session(first, names) : bare_session(captures));
    return examine(session, folder, options);
}

std::string with_advice(std::string reason, const std::string& capture, const std::vector<std::string>& images,
                        capture::perf::Progress* progress, const TakeNote& note) {
    if (capture.empty() || capture == "-") return reason;
    const auto report = examine_captures({capture}, {}, {images, std::uint64_t{1} << 20, {}}, progress, note);
    if (!report) return reason;
    const auto wrong = std::find_if(report->findings.begin(), report->findings.end(), [](const CaptureFinding& f) {
        return f.severity <= Severity::warning && f.kind != "description" && f.kind != missing_names;
    });
    if (wrong != report->findings.end() && reason.find(wrong->found) != reason.npos) return reason;
    const std::string command = fmt::format("{}. waymark doctor {}", reason, shell_file(capture));
    if (wrong == report->findings.end()) return command + " examines the capture";
    return fmt::format("{} says: {}; {}", command, wrong->found, wrong->advice);
}

std::string written_text(const std::string& snapshot, const ExaminationReport& report, bool images,
                         const Decoded& result) {
    const std::string folder = shell_file(snapshot);
    std::string text = fmt::format("{} is written", snapshot);
    if (std::ranges::any_of(report.sources, [](const auto& s) { return s.has_flow(); })) {
        const bool program = std::ranges::any_of(report.sources, [&](const ExaminedSource& s) {
            return s.image && (!report.description.empty() || !report.images[*s.image].arguments().empty());
        });
        text += fmt::format("; waymark flow {} decodes {}, {} and {} from it{}", folder,
                            counted(result.totals.ranges, "range"), counted(result.totals.instructions, "instruction"),
                            counted(result.contradictions, "contradiction"),
                            program   ? ""
                            : !images ? ": it has no program; give the one that ran with --image FILE"
                                      : ": it has no program, since none of the given images agrees with the trace; "
                                        "waymark flow --image FILE@ADDRESS decodes with an image nevertheless");
    }
    if (std::ranges::any_of(report.sources, [](const auto& s) { return s.has_messages(); }))
        text += fmt::format(
            "; waymark messages {} --kind all lists {} in it{}", folder, counted(result.messages, "message"),
            result.damages == 0 ? ""
                                : fmt::format(" and {}", counted(result.damages, "stretch of damaged bytes",
                                                                 "stretches of damaged bytes")));
    return text;
}

}  // namespace waymark::doctor
