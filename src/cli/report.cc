/// `waymark report`: writes the results of a capture as one HTML file.
#include "waymark/report/report.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "answers.h"
#include "commands.h"
#include "report_parts.h"
#include "waymark/analysis/source_text.h"
#include "waymark/answers/views.h"
#include "waymark/core/numbers.h"

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

/// Parses `A..B`, `A..`, `..B`: instruction numbers of each source.
Result<analysis::FlowWindow> read_window(const std::string& text) {
    const Error wrong{Errc::usage, fmt::format("--window takes FIRST..END in instructions of each source, such as "
                                               "1000000..1500000, 1000000.. or ..500000; not '{}'",
                                               text)};
    const std::size_t dots = text.find("..");
    if (dots == text.npos || text.size() == 2) return wrong;
    analysis::FlowWindow out;
    const std::string_view all = text;
    for (const auto& [digits, into] :
         {std::pair(all.substr(0, dots), &out.begin), std::pair(all.substr(dots + 2), &out.end)}) {
        if (digits.empty()) continue;
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), *into);
        if (failure != std::errc{} || end != digits.data() + digits.size()) return wrong;
    }
    if (out.begin < out.end) return out;
    return Error{Errc::usage, fmt::format("--window {}: it ends where it begins, or before", text)};
}

/// Notes what a report of a window shows. Errors: the window is empty.
Status note_window(answers::Answers& answers, const analysis::FlowWindow& window) {
    const std::string first = grouped(window.begin);
    if (answers.timeline.slices.empty() && answers.timeline.marks.empty())
        return Error{
            Errc::not_found,
            fmt::format("--window: no source of {} has a call on its timeline from instruction {} on{}",
                        answers.capture, first,
                        window.end == analysis::FlowWindow{}.end ? std::string()
                                                                 : fmt::format(" up to {}", grouped(window.end)))};
    answers.health.push_back(
        {answers::Finding::Severity::note,
         fmt::format("The timeline and the steps show a window of the run: each source from its instruction {} on{}. "
                     "Figures without a range are about the whole capture.",
                     first,
                     window.end == analysis::FlowWindow{}.end ? std::string()
                                                              : fmt::format(" up to {}", grouped(window.end)))});
    return Nothing{};
}

ExitStatus report(const ReportCommandOptions& options) {
    if (const Status possible = check_page(options.most_megabytes); !possible) return fail(possible.error());
    analysis::FlowWindow window;
    if (!options.window.empty()) {
        auto read = read_window(options.window);
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
        if (const Status shown = note_window(*answers, window); !shown) return fail_answers(shown.error(), {});
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
    const bool no_code = is_of_flow(*answers) && answers->instructions.empty();
    if (!no_code) note_missing_symbols(*answers);
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

bool is_of_flow(const answers::Answers& answers) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of_unit(answers.unit);
    return protocol != nullptr && protocol->decodes_flow();
}

Status check_page(double most_megabytes) {
    if (!(most_megabytes >= 0.5 && most_megabytes <= 500))
        return Error{Errc::usage, fmt::format("--max-size takes megabytes from 0.5 to 500, not {}", most_megabytes)};
    if (report::built_in_page().empty()) return Error{Errc::usage, std::string(report::why_no_page())};
    return Nothing{};
}

void note_missing_symbols(answers::Answers& answers) {
    using answers::Finding;
    if (!is_of_flow(answers) ||
        std::any_of(answers.functions.begin(), answers.functions.end(),
                    [](const answers::Function& f) { return !f.linkage_name.empty() || f.line != 0; }))
        return;
    const auto after_worse = std::find_if(answers.health.begin(), answers.health.end(),
                                          [](const Finding& f) { return f.severity < Finding::Severity::warning; });
    answers.health.insert(
        after_worse,
        {Finding::Severity::note, "No symbols are known: functions are called by their addresses.",
         "Give the program with --symbols FILE: it has names, and source lines if it has debug information."});
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
