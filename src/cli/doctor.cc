/// `waymark doctor`: identifies a capture, finds its problems, and names the remedies.
#include "waymark/core/quote.h"
#include "waymark/doctor/dpu_dump.h"
#include "waymark/doctor/examine_captures.h"
#include "waymark/listing/examination.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
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

namespace waymark::cli {

namespace {

using doctor::Severity;

struct DoctorOptions {
    std::vector<std::string> captures, images;
    InputOptions names;  // only --symfs, --debug-dir, --symdir, --kallsyms and --symbols
    std::string format = "text", output, snapshot;
    bool strict = false;
    std::uint64_t sample_mib = doctor::sample_bytes >> 20;
    std::function<void(const std::string&)> progress{};  // may be empty
};

void say_note(const std::string& text) { say("note", text); }

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
    ShowProgress reading;
    auto diagnosed =
        doctor::examine_captures(options.captures, options.names,
                                 {options.images, options.sample_mib << 20, options.progress}, &reading, say_note);
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
        say("note", doctor::written_text(options.snapshot, report, !options.images.empty(), *result));
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
    ShowProgress progress;
    return doctor::with_advice(std::move(reason), capture, images, &progress, say_note);
}

ExitStatus run_bare_info(const InputOptions& input, const std::string& format) {
    const auto session = doctor::bare_session({input.capture});
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
