/// `waymark doctor`: identifies a capture, finds its problems, and names the remedies.
#include "waymark/core/quote.h"
#include "waymark/doctor/dpu_dump.h"
#include "waymark/doctor/examine.h"
#include "waymark/listing/examination.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "answers.h"
#include "commands.h"
#include "info_others.h"
#include "options.h"
#include "trouble.h"
#include "views.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/snapshot.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;
using doctor::Severity;

struct DoctorOptions {
    std::vector<std::string> captures, images;
    InputOptions names;  // only --symfs, --debug-dir, --symdir, --kallsyms and --symbols
    std::string format = "text", output, snapshot;
    bool strict = false;
    std::uint64_t sample_mib = doctor::sample_bytes >> 20;
    std::function<void(const std::string&)> progress{};  // may be empty
};

/// Shows on a terminal what an examination does, and for how long. A search may take seconds, so a thread counts them.
class Working {
public:
    Working() {
        if (line_.active()) counter_ = std::jthread([this](const std::stop_token& stop) { count(stop); });
    }
    void begin(const std::string& work) {
        const std::lock_guard lock(mutex_);
        work_ = work;
        began_ = std::chrono::steady_clock::now();
    }

private:
    void count(const std::stop_token& stop) {
        constexpr std::chrono::milliseconds period{250};
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            stopped_.wait_for(lock, stop, period, [] { return false; });
            const auto seconds =
                std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - began_);
            if (!stop.stop_requested() && !work_.empty()) line_.show(fmt::format("{}, {} s", work_, seconds.count()));
        }
    }

    ProgressLine line_;
    std::mutex mutex_;
    std::condition_variable_any stopped_;
    std::string work_;
    std::chrono::steady_clock::time_point began_;
    std::jthread counter_;  // the last member: it uses the others
};

// ---- the input

Result<pipeline::Session> snapshot_session(const fs::path& path, const InputOptions& names) {
    pipeline::SessionOptions options{.images = {}, .symbols = names.symbols};
    WM_ASSIGN_OR_RETURN(options.files, names.file_search());
    WM_ASSIGN_OR_RETURN(capture::Capture capture, capture::read_snapshot(path));
    return pipeline::make_session(std::move(capture), options);
}

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

Result<doctor::ExaminationReport> diagnose(const DoctorOptions& options) {
    const std::string& first = options.captures.front();
    std::vector<open::Container> containers;
    for (const std::string& capture : options.captures) containers.push_back(open::identify(capture));
    const open::Container& container = containers.front();
    const bool folder = container.is_snapshot(), recorded = !folder && container.contents() == Content::flow;
    if (containers.size() > 1 && std::any_of(containers.begin(), containers.end(), [](const open::Container& c) {
            return c.is_folder || c.contents() == Content::samples;
        }))
        return Error{Errc::usage, "several captures must all be bare trace files; else run doctor for each"};
    const InputOptions& names = options.names;
    if (const char* given = !names.symbols.empty()          ? "--symbols"
                            : !names.symfs.empty()          ? "--symfs"
                            : !names.debug_folders.empty()  ? "--debug-dir"
                            : !names.symbol_folders.empty() ? "--symdir"
                            : !names.kallsyms.empty()       ? "--kallsyms"
                                                            : nullptr;
        given != nullptr && ((!folder && !recorded) || container.contents() == Content::counters))
        return Error{Errc::usage,
                     fmt::format("{}: {} is only for captures that contain a list of mapped files: snapshot folders "
                                 "and perf.data files with CoreSight trace or branch stacks",
                                 first, given)};
    if (container.contents() == Content::counters) return doctor::examine_dpu(first);
    if (container.contents() == Content::samples) return doctor::examine_perf(container);
    const doctor::ExamineOptions examine{options.images, options.sample_mib << 20, options.progress};
    if (!names.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(names.kallsyms));
    if (recorded) {
        InputOptions input = names;
        input.capture = first;
        input.images = options.images;
        WM_ASSIGN_OR_RETURN(const pipeline::Session session, open_session(input));
        return doctor::examine(session, true, {{}, examine.most_bytes, options.progress});
    }
    WM_ASSIGN_OR_RETURN(const pipeline::Session session,
                        folder ? snapshot_session(first, names) : bare_session(options.captures));
    return doctor::examine(session, folder, examine);
}

/// A sentence about the snapshot that was written.
std::string written_text(const DoctorOptions& options, const doctor::ExaminationReport& report,
                         const doctor::Decoded& result) {
    const std::string folder = shell_file(options.snapshot);
    std::string text = fmt::format("{} is written", options.snapshot);
    if (std::ranges::any_of(report.sources, [](const auto& s) { return s.has_flow(); })) {
        const bool program = std::ranges::any_of(report.sources, [&](const doctor::ExaminedSource& s) {
            return s.image && (!report.description.empty() || !report.images[*s.image].arguments().empty());
        });
        text += fmt::format(
            "; waymark flow {} decodes {}, {} and {} from it{}", folder, counted(result.totals.ranges, "range"),
            counted(result.totals.instructions, "instruction"), counted(result.contradictions, "contradiction"),
            program                  ? ""
            : options.images.empty() ? ": it has no program; give the one that ran with --image FILE"
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

ExitStatus run_doctor(DoctorOptions options) {
    // Registers and buffer of a DPU become a folder, which is then examined.
    if (!options.snapshot.empty() && options.captures.size() == 2) {
        for (const bool first : {true, false}) {
            const std::string& registers = options.captures[first ? 0 : 1];
            const std::string& dump = options.captures[first ? 1 : 0];
            if (registers == "-" || dump == "-" || !doctor::is_dpu_registers(registers)) continue;
            const auto inferred = doctor::write_dpu_dump(registers, dump, options.snapshot);
            if (!inferred) return fail(inferred.error());
            for (const std::string& note : *inferred) say("note", note);
            say("note", fmt::format("{} is written; waymark report {} shows it", options.snapshot,
                                    shell_file(options.snapshot)));
            options.captures = {std::exchange(options.snapshot, {})};
            break;
        }
    }
    std::optional<Working> working;
    working.emplace();
    options.progress = [&](const std::string& work) { working->begin(work); };
    auto diagnosed = diagnose(options);
    working.reset();
    if (!diagnosed) return fail(diagnosed.error());
    const doctor::ExaminationReport report = std::move(*diagnosed);
    std::vector<std::string> inputs = options.captures;
    inputs.insert(inputs.end(), options.names.symbols.begin(), options.names.symbols.end());
    for (const std::string& argument : options.images)
        if (const auto image = image::parse_image_argument(argument)) inputs.push_back(image->path.string());
    auto out = Output::open(options.output, inputs);
    if (!out) return fail(out.error());
    listing::print_examination(*out, report, listing::format_of(options.format));
    if (out->close() != decoded) return unreadable;
    if (!options.snapshot.empty()) {
        const auto written = doctor::write_inferred(report, options.snapshot);
        if (!written) return fail(written.error());
        const auto result = doctor::decode_written(options.snapshot);
        if (!result) return fail(result.error());
        say("note", written_text(options, report, *result));
    }
    if (report.cut) {
        say("error", "the capture cannot be read completely; see the findings on standard output");
        return unreadable;
    }
    if (!report.recognised) {
        say("error", report.sources.empty()
                         ? "nothing diagnosed: the capture contains no trace; see the findings on standard output"
                         : "nothing diagnosed: no known protocol recognised; the output lists what was tried");
        return nothing;
    }
    const auto fails =
        std::find_if(report.findings.begin(), report.findings.end(), [](const doctor::CaptureFinding& f) {
            return (f.severity == Severity::error || f.severity == Severity::warning) &&
                   f.kind != doctor::missing_names;
        });
    if (!options.strict || fails == report.findings.end()) return decoded;
    say("error", about(options.captures.front(), fails->found) + " (--strict)");
    return nothing;
}

}  // namespace

std::string with_doctor(std::string reason, const std::string& capture, const std::vector<std::string>& images) {
    if (capture.empty() || capture == "-") return reason;
    DoctorOptions options;
    options.captures = {capture};
    options.images = images;
    options.sample_mib = 1;
    const auto report = diagnose(options);
    if (!report) return reason;
    const auto wrong =
        std::find_if(report->findings.begin(), report->findings.end(), [](const doctor::CaptureFinding& f) {
            return f.severity <= Severity::warning && f.kind != "description" && f.kind != doctor::missing_names;
        });
    if (wrong != report->findings.end() && reason.find(wrong->found) != reason.npos) return reason;
    const std::string command = fmt::format("{}. waymark doctor {}", reason, shell_file(capture));
    if (wrong == report->findings.end()) return command + " examines the capture";
    return fmt::format("{} says: {}; {}", command, wrong->found, wrong->advice);
}

ExitStatus run_bare_info(const InputOptions& input, const std::string& format) {
    const auto session = bare_session({input.capture});
    if (!session) return fail(session.error());
    const doctor::ExaminationReport report = doctor::examine(*session, false, {});
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    listing::print_bare_info(*out, input.capture, report, listing::format_of(format));
    if (const ExitStatus status = out->close(); status != decoded) return status;
    if (report.cut) {
        say("error", report.findings.empty() ? "the capture cannot be read to its end" : report.findings.front().found);
        return unreadable;
    }
    if (report.recognised) return decoded;
    say("error",
        fmt::format("{} contains nothing that Waymark recognises. To decode it as bare trace nevertheless, give "
                    "its protocol (--protocol NAME; waymark flow --help lists the names)",
                    input.capture == "-" ? "standard input" : input.capture));
    return nothing;
}

Run add_doctor(const Command& app) {
    auto options = std::make_shared<DoctorOptions>();
    const Command command = app.add("doctor");
    command.option("CAPTURE", options->captures);
    command.option("--image", options->images);
    command.option("--symbols", options->names.symbols);
    options->names.add_folders_to(command);
    command.option("--kallsyms", options->names.kallsyms);
    command.option("--write-snapshot", options->snapshot);
    command.option("--sample", options->sample_mib)->check(range(std::uint64_t{1}, std::uint64_t{1024}));
    command.flag("--strict", options->strict);
    command.option("--format", options->format);
    command.option("--output", options->output);
    return [options] { return run_doctor(*options); };
}

}  // namespace waymark::cli
