/// `waymark report`: writes the results of a capture as one HTML file.
#include "waymark/report/report.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "answers.h"
#include "commands.h"
#include "report_parts.h"
#include "waymark/analysis/source_text.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"
#include "waymark/pipeline/report_notes.h"

namespace waymark::cli {

namespace {

struct ReportCommandOptions {
    AnswersOptions answers;
    double most_megabytes = 10;
    bool no_sources = false;
    std::vector<std::string> source_roots{};
    std::string against{};
    answers::DiffOptions limits{};
    std::uint32_t most_steps = 100'000;
    std::string window{};
    answers::CodeKind code = answers::CodeKind::own;
};

/// Whether the trace may contain program flow in order, with or without a description.
bool may_have_flow(open::Content content) { return content == open::Content::flow || content == open::Content::bytes; }

ExitStatus report(const ReportCommandOptions& options) {
    if (const Status possible = check_page(options.most_megabytes); !possible) return fail(possible.error());
    analysis::FlowWindow window;
    if (!options.window.empty()) {
        auto read = pipeline::read_window(options.window);
        if (!read) return fail(read.error());
        window = *read;
    }
    AnswersOptions wanted = options.answers;
    wanted.calls = wanted.timeline = wanted.instructions = wanted.disassembly = wanted.inlined = true;
    // Functions that were never entered count as not covered.
    wanted.all_functions = true;
    wanted.without_code = true;
    report::ReportOptions how;
    how.most_bytes = static_cast<std::uint64_t>(options.most_megabytes * 1e6);
    how.code = options.code;
    answers::Steps steps;
    wanted.steps = &steps;
    wanted.most_steps = how.most_steps = options.most_steps;
    wanted.most_slices = how.most_slices;
    wanted.window = window;
    how.is_window = !window.is_all();
    if (how.is_window && !may_have_flow(wanted.input.container().contents())) {
        say("error",
            fmt::format("--window: {} contains no trace of program flow, and only such trace has instructions in order",
                        wanted.input.capture));
        return usage;
    }
    auto answers = answers_of(wanted);
    if (!answers) return fail_answers(answers.error(), {wanted.input.capture});
    if (how.is_window)
        if (const Status shown = pipeline::note_window(*answers, window); !shown)
            return fail_answers(shown.error(), {});
    if (!steps.streams.empty()) how.steps = &steps;
    if (!options.no_sources)
        if (const Status read = include_sources(*answers, wanted.input, options.source_roots); !read)
            return fail(read.error());
    std::optional<answers::Answers> after;
    std::optional<answers::DiffView> diff;
    std::optional<report::Against> against;
    if (!options.against.empty()) {
        // Uses the same programs and names, as waymark diff does.
        AnswersOptions other = options.answers;
        other.input.capture = options.against;
        other.calls = true;
        auto read = answers_of(other);
        if (!read) return fail_answers(read.error(), {options.against});
        after.emplace(std::move(*read));
        auto compared = answers::compare(*answers, *after, options.limits);
        if (!compared) return fail(compared.error());
        diff.emplace(std::move(*compared));
        how.against = &against.emplace(report::Against{*after, *diff});
    }
    const bool no_code = pipeline::is_of_flow(*answers) && answers->instructions.empty();
    if (!no_code) pipeline::note_missing_symbols(*answers);
    // The page is complete before its first byte is written, so an older report is replaced as a whole or stays.
    ByteCollector page;
    const auto size = report::write_report(*answers, how, page);
    if (!size) return fail(size.error());
    const std::string& path = wanted.input.output;
    auto out = Output::open(path, wanted.input.files());
    if (!out) return fail(out.error());
    out->write_exactly({reinterpret_cast<const char*>(page.bytes().data()), page.bytes().size()});
    if (out->close() != decoded) return unreadable;
    bool grew = false;
    for (const answers::Finding& finding : diff ? diff->view.remarks : std::vector<answers::Finding>()) {
        if (finding.severity != answers::Finding::Severity::bad) continue;
        grew = true;
        say("error", finding.what);
    }
    const ExitStatus status = answers->cut || (after && after->cut) ? unreadable : grew ? nothing : decoded;
    if (path == "-" && !no_code) return status;
    if (path != "-") {
        std::string sentence = fmt::format("{} ({}): open it in a browser", path, size_text(size->bytes));
        if (size->reductions != 0) sentence += "; its summary states what it omits to stay small";
        sentence = printable(sentence) + "\n";
        std::fwrite(sentence.data(), 1, sentence.size(), stderr);
    }
    if (!no_code) return status;
    say("warning",
        "no instruction decoded: no image is known for the code that ran; the report shows only the trace itself");
    return answers->cut ? unreadable : nothing;
}

}  // namespace

Status check_page(double most_megabytes) {
    if (!(most_megabytes >= 0.5 && most_megabytes <= 500))
        return Error{Errc::usage, fmt::format("--max-size takes megabytes from 0.5 to 500, not {}", most_megabytes)};
    if (report::built_in_page().empty()) return Error{Errc::usage, std::string(report::why_no_page())};
    return Nothing{};
}

Status include_sources(answers::Answers& answers, const InputOptions& input, const std::vector<std::string>& roots) {
    WM_ASSIGN_OR_RETURN(const image::FileSearch files, input.file_search());
    analysis::SourceSearch search;
    for (const std::string& root : roots) {
        std::error_code none;
        if (!std::filesystem::is_directory(root, none))
            return Error{Errc::usage, fmt::format("--source-root: {} is not a folder", root)};
        search.roots.emplace_back(root);
    }
    if (!input.symfs.empty()) search.roots.emplace_back(input.symfs);
    search.debug_folders = files.debug_path();
    const analysis::ReadSources read = analysis::read_sources(answers, search);
    if (!read.refused.empty())
        say("note",
            fmt::format("{} that debug information names {} not in the report, as {} ({}); the report's summary "
                        "lists more. --source-root names a folder of sources",
                        counted(read.refused.size(), "file"), read.refused.size() == 1 ? "is" : "are",
                        read.refused.front().path, read.refused.front().why));
    return Nothing{};
}

Run add_report(const Command& app) {
    auto options = std::make_shared<ReportCommandOptions>();
    const Command command = app.add("report");
    AnswersOptions& answers = options->answers;
    answers.input.add_to(command);
    answers.input.selection.add_to(command);
    answers.input.output = "report.html";
    Option output = command.get_option("--output");
    output->description("Output file; - is standard output")->capture_default_str();
    command.option("--jobs", answers.jobs);
    command.option("--max-size", options->most_megabytes);
    command.option("--steps", options->most_steps)->check(range(0U, 100'000'000U));
    command.option("--window", options->window);
    add_timestamp_hz(command, answers);
    command.option("--kallsyms", answers.kallsyms);
    command.option("--against", options->against);
    add_thresholds(command, options->limits);
    for (const char* const limit : {"--threshold", "--threshold-each", "--threshold-count"})
        command.get_option(limit)->needs(command.get_option("--against"));
    add_code(command, options->code, "What the report's filter 'own code' keeps: ");
    command.flag("--no-sources", options->no_sources);
    command.option("--source-root", options->source_roots);
    return [options] { return report(*options); };
}

}  // namespace waymark::cli
