/// `waymark doctor`: identifies a capture, finds its problems, and names the remedies.
#include "waymark/core/quote.h"
#include "waymark/doctor/dpu_dump.h"
#include "waymark/doctor/examine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "answers.h"
#include "commands.h"
#include "info_others.h"
#include "options.h"
#include "table.h"
#include "trouble.h"
#include "views.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/snapshot.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;
using doctor::ImageVerdict;
using doctor::Severity;
using nlohmann::ordered_json;
using protocol::name;

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

// ---- text

void line(Output& out, std::string_view head, std::string_view sentence) {
    constexpr std::size_t width = 100, indent = 12;
    const std::string text = one_line(sentence);
    std::string row = fmt::format("  {:<9} ", head);
    std::size_t at = 0, column = indent;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string_view word = std::string_view(text).substr(at, end - at);
        if (column != indent && column + 1 + word.size() > width) {
            row += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column != indent) {
            row += ' ';
            ++column;
        }
        row += word;
        column += word.size();
        at = end + 1;
    }
    out.write(row + '\n');
}

std::string looked_at(const doctor::ExaminedBuffer& b) {
    if (!b.bytes)
        return fmt::format("only its first {} examined: a compressed file or a stream", counted(b.looked_at, "byte"));
    if (*b.bytes == b.looked_at) return counted(*b.bytes, "byte") + ", all examined";
    return fmt::format("{} of {} examined, in {} pieces from its beginning to its end", grouped(b.looked_at),
                       counted(*b.bytes, "byte"), b.pieces);
}

std::string_view framing_text(capture::Buffer::Format format) {
    switch (format) {
        case capture::Buffer::Format::coresight: return "16-byte CoreSight frames";
        case capture::Buffer::Format::dstream_coresight: return "CoreSight frames with syncs";
        case capture::Buffer::Format::source_data: return "the bytes of one source";
        case capture::Buffer::Format::unknown: return "unknown framing";
    }
    return "";
}

/// A confidence is never rounded up to 100 %.
std::string confidence_text(double confidence) { return fmt::format("{:.4f}", std::floor(confidence * 1e4) / 1e4); }

std::string head_text(const follow::HeadRecovery& head) {
    if (head.outcome == follow::HeadOutcome::no_head) return "none: the stream begins with its A-sync";
    if (head.outcome == follow::HeadOutcome::no_sync)
        return "in the first MiB there is " + std::string(name(head.outcome));
    const std::string all = counted(head.async.value, "byte");
    const std::string obstacles = text(head.obstacles);
    const std::string ended = obstacles.empty() ? "" : "; known execution ended at " + obstacles;
    if (head.outcome != follow::HeadOutcome::recovered)
        return fmt::format("{}, none recovered: {}{}", all, name(head.outcome), ended);
    return fmt::format(
        "{} of {} recovered from {:#x} of the stream on{}, {}, confidence {}{}{}; "
        "waymark flow --recover shows them",
        grouped(head.bytes_before_async()), all, head.first.value,
        head.stretches.size() == 1 ? "" : fmt::format(" in {} stretches", head.stretches.size()),
        counted(head.packets, "packet"), confidence_text(head.confidence),
        head.confirmed ? ", and the following trace agrees" : "", ended);
}

std::string image_text(const ImageVerdict& v) {
    if (v.kind == ImageVerdict::Kind::unreadable || v.kind == ImageVerdict::Kind::other_build)
        return fmt::format("{}: {}", name(v.kind), v.why);
    std::string text = fmt::format("{}{}: {}: {}", name(v.kind), v.trial.proven() ? ", proven" : "", v.image,
                                   doctor::evidence(v.trial));
    if (v.shift) text += fmt::format("; proven as {}: {}", v.argument, doctor::evidence(v.shift->trial));
    if (v.kind != ImageVerdict::Kind::matches || v.trial.proven()) return text;
    if (v.trial.confirmed < doctor::paths_to_prove)
        text += fmt::format(" (too short for a proof, which takes {} different paths)", doctor::paths_to_prove);
    else if (v.trial.strayed * 10 > v.trial.indirect)
        text += " (no proof: a tenth or more of its outgoing branches lead to unknown code)";
    else
        text += fmt::format(" (no proof: execution continued {} directly beside its code)", times(v.trial.beside));
    return text;
}

void print_source(Output& out, const doctor::ExaminationReport& report, const doctor::ExaminedSource& s) {
    out.print("\nsource {}{}  {}, {}\n", s.trace_id ? fmt::format("{:#04x} ", s.trace_id->value) : "", s.name,
              doctor::name(s.identity.protocol), counted(s.bytes, "byte"));
    if (s.identity.protocol == nullptr)
        for (const doctor::Tried& tried : s.identity.tried) line(out, "tried", tried.what + ": " + tried.result);
    for (const doctor::InferredField& fact : s.identity.facts)
        line(out, name(fact.certainty), fmt::format("{}: {} ({})", fact.what, fact.value, fact.proof));
    for (const doctor::InferredField& fact : s.program_facts)
        line(out, name(fact.certainty), fmt::format("{}: {} ({})", fact.what, fact.value, fact.proof));
    for (const auto& [head, sentence] : s.identity.remarks) line(out, head, sentence);
    for (const ImageVerdict& v : report.images)
        if (v.source == s.name) line(out, "image", image_text(v));
    if (s.head) line(out, "head", head_text(*s.head));
}

/// Lists at most three IDs that have neither a description nor known contents, as damaged frames produce them. Without
/// a description these are many IDs beside one with known contents: a bus has fewer sources.
void print_sources(Output& out, const doctor::ExaminationReport& report) {
    constexpr std::size_t shown = 3;
    constexpr std::ptrdiff_t many = 8;
    const auto unknown = std::count_if(report.sources.begin(), report.sources.end(),
                                       [](const doctor::ExaminedSource& s) { return s.identity.protocol == nullptr; });
    const bool damaged = unknown > many && unknown < std::ssize(report.sources);
    std::size_t strangers = 0;
    std::uint64_t bytes = 0;
    for (const doctor::ExaminedSource& s : report.sources) {
        const bool stranger = s.identity.protocol == nullptr && (report.labelled ? !s.described : damaged);
        if (stranger && ++strangers > shown)
            bytes += s.bytes;
        else
            print_source(out, report, s);
    }
    if (strangers > shown)
        out.print("\nand {} more {}with unrecognised bytes, {} in total\n", counted(strangers - shown, "trace ID"),
                  report.labelled ? "without a description and " : "", counted(bytes, "byte"));
}

void print_text(Output& out, const doctor::ExaminationReport& report) {
    out.print("{}\n", report.verdict);
    if (!report.account.empty()) out.write("\n");
    print_account(out, report.account);
    for (const doctor::CaptureFinding& f : report.findings) {
        const std::string where = f.buffer.empty() ? std::string("the description")
                                  : f.offset       ? fmt::format("{:#x} of {}", f.offset->value, f.buffer)
                                                   : f.buffer;
        out.print("\n{:<8} {}{}{}  {}\n", name(f.severity), where, f.source.empty() ? "" : ", source ", f.source,
                  f.kind);
        line(out, "found", f.found);
        line(out, "expected", f.expected);
        line(out, "because", f.cause);
        line(out, "do", f.advice);
    }
    for (const doctor::ExaminedBuffer& b : report.buffers) {
        out.print("\nbuffer {}  {}, {}\n", b.name,
                  b.no_trace.empty() ? framing_text(b.format) : std::string_view("no trace"), looked_at(b));
        if (!b.not_frames.empty()) line(out, "tried", b.not_frames);
    }
    print_sources(out, report);
}

// ---- for programs

Table findings_table(const doctor::ExaminationReport& report) {
    Table table{.columns = {Column::text("severity", "severity"), Column::text("kind", "kind"),
                            Column::text("buffer", "buffer"), Column::text("source", "source"),
                            Column::count("offset", "offset"), Column::text("found", "found"),
                            Column::text("expected", "expected"), Column::text("cause", "cause"),
                            Column::text("do", "do")}};
    for (const doctor::CaptureFinding& f : report.findings)
        table.add({std::string(name(f.severity)), f.kind, f.buffer, f.source, f.offset ? Cell(f.offset->value) : Cell(),
                   f.found, f.expected, f.cause, f.advice});
    return table;
}

ordered_json trial_json(const doctor::Trial& trial) {
    return {{"ranges", trial.totals.ranges},
            {"branches_in_trace", trial.waypoints},
            {"confirmed", trial.confirmed},
            {"strayed", trial.strayed},
            {"contradictions", trial.contradictions},
            {"proven", trial.proven()},
            {"ended_early", trial.ended},
            {"no_memory", trial.totals.no_memory},
            {"first_contradiction", trial.first ? ordered_json(trial.first->offset.value) : ordered_json()}};
}

ordered_json source_json(const doctor::ExaminedSource& s) {
    ordered_json out{{"name", s.name},
                     {"trace_id", s.trace_id ? ordered_json(s.trace_id->value) : ordered_json()},
                     {"buffer", s.buffer},
                     {"protocol", doctor::name(s.identity.protocol)},
                     {"bytes", s.bytes}};
    out["tried"] = ordered_json::array();
    for (const doctor::Tried& t : s.identity.tried) out["tried"].push_back({{"what", t.what}, {"result", t.result}});
    out["facts"] = ordered_json::array();
    for (const auto* const facts : {&s.identity.facts, &s.program_facts})
        for (const doctor::InferredField& f : *facts)
            out["facts"].push_back({{"what", f.what},
                                    {"value", f.value},
                                    {"proven", f.certainty == protocol::Certainty::proven},
                                    {"certainty", name(f.certainty)},
                                    {"proof", f.proof}});
    if (s.head && s.head->outcome == follow::HeadOutcome::recovered)
        out["head"] = {{"bytes", s.head->async.value},     {"recovered_bytes", s.head->bytes_before_async()},
                       {"first", s.head->first.value},     {"packets", s.head->packets},
                       {"confidence", s.head->confidence}, {"confirmed", s.head->confirmed}};
    else if (s.head)
        out["head"] = {{"bytes", s.head->async.value}, {"recovered_bytes", 0}, {"why", name(s.head->outcome)}};
    return out;
}

ordered_json report_json(const doctor::ExaminationReport& report) {
    ordered_json out{{"verdict", report.verdict},
                     {"run", answers::account_sentence(report.account)},
                     {"findings", to_json(findings_table(report))}};
    out["buffers"] = ordered_json::array();
    for (const doctor::ExaminedBuffer& b : report.buffers)
        out["buffers"].push_back({{"name", b.name},
                                  {"format", capture::name(b.format)},
                                  {"bytes", b.bytes ? ordered_json(*b.bytes) : ordered_json()},
                                  {"looked_at", b.looked_at},
                                  {"pieces", b.pieces},
                                  {"skipped", b.skipped},
                                  {"not_frames", b.not_frames.empty() ? ordered_json() : ordered_json(b.not_frames)},
                                  {"no_trace", b.no_trace.empty() ? ordered_json() : ordered_json(b.no_trace)}});
    out["sources"] = ordered_json::array();
    for (const doctor::ExaminedSource& s : report.sources) out["sources"].push_back(source_json(s));
    out["images"] = ordered_json::array();
    for (const ImageVerdict& v : report.images) {
        ordered_json image{
            {"image", v.image}, {"source", v.source}, {"verdict", name(v.kind)}, {"argument", v.argument}};
        image["trial"] = trial_json(v.trial);
        if (v.shift) {
            image["shift"] = v.shift->bytes;
            image["shifted_trial"] = trial_json(v.shift->trial);
        }
        out["images"].push_back(std::move(image));
    }
    return out;
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
    if (options.format == "json")
        out->write(json_text(report_json(report)) + "\n");
    else if (options.format == "tsv")
        print_tsv(*out, findings_table(report));
    else
        print_text(*out, report);
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

// ---- waymark info of files without a description

/// Findings that concern the bytes themselves.
std::vector<std::string> problems_of(const std::string& capture, const doctor::ExaminationReport& report) {
    std::vector<std::string> out;
    for (const doctor::CaptureFinding& f : report.findings) {
        if (f.kind == "no-image") continue;
        // A finding about an unreadable file names the file itself.
        const bool named = f.source.empty() && f.found.starts_with(capture + ": ");
        out.push_back(named
                          ? f.found
                          : fmt::format("{}{}: {}", f.buffer, f.source.empty() ? "" : ", source " + f.source, f.found));
    }
    return out;
}

/// The suggested next step.
std::string next_step(const std::string& capture, const doctor::ExaminationReport& report) {
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (std::any_of(report.sources.begin(), report.sources.end(),
                        [&](const doctor::ExaminedSource& s) { return s.identity.protocol == protocol; }))
            return protocol->next_step(shell_file(capture));
    return "";
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
    const std::string next = next_step(input.capture, report);
    if (format == "text") {
        out->print("capture {}\n  a file without a description; the following is inferred from its bytes\n",
                   input.capture);
        for (const doctor::ExaminedBuffer& b : report.buffers)
            out->print("\nbuffer {}  {}, {}\n", b.name, framing_text(b.format), looked_at(b));
        print_sources(*out, report);
        const std::vector<std::string> problems = problems_of(input.capture, report);
        if (!problems.empty())
            out->write("\nremarks\n");
        else if (report.recognised)
            out->write("\nNothing wrong was found.\n");
        for (const std::string& problem : problems) out->print("  - {}\n", problem);
        if (!next.empty()) out->print("\nnext: {}\n", next);
    } else {
        ordered_json info = report_json(report);
        ordered_json all{{"capture", input.capture}, {"kind", "bare bytes"}};
        for (const char* key : {"buffers", "sources"}) all[key] = info[key];
        all["problems"] = problems_of(input.capture, report);
        all["next"] = next;
        print_info_for_programs(*out, all, format);
    }
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
