/// The commands that show answers: their options and help texts.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "answers.h"
#include "commands.h"
#include "trouble.h"
#include "views.h"
#include "waymark/pipeline/builds.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

namespace {

constexpr const char* exit_status =
    "\nExit status: 0 success; 1 there is nothing to show, or trace was lost and --strict is given; 2 usage;\n"
    "3 the capture cannot be read completely, or the output cannot be written.\n";

/// A capture, decoded for one command.
struct Request {
    AnswersOptions answers;
    std::vector<std::string> more;  // further captures of the same program
    ViewFormat how;
    bool strict = false;

    void add_to(CLI::App& command) {
        answers.input.add_to(command);
        answers.input.selection.add_to(command);
        CLI::Option* const capture = command.get_option("CAPTURE");
        capture->description(
            "The capture: a snapshot folder or its snapshot.ini, a perf.data file (CoreSight or SPE), a "
            "folder with a dpu.ini, an answers file; or a bare trace file (.gz and .zst too), which needs --protocol");
        command.add_option("MORE", more,
                           "More captures of the same program; the results are added together. A,B are several files, "
                           "@FILE those named in "
                           "FILE, one a line");
        add_shared(command);
    }
    void add_shared(CLI::App& command) {
        add_format(command, how.format);
        add_limit(command, how.limit, "Maximum number of rows in text; 0: all. tsv and json contain all rows");
        command.add_flag("--wide", how.wide, "text: do not shorten long names");
        add_jobs(command, answers.jobs);
        add_kallsyms(command, answers.kallsyms);
        command.add_flag(
            "--strict", strict,
            "Exit with status 1 if trace was lost or damaged, contradicts the image, or covers only a part of "
            "the run, or if the figure that a limit is for is not known. Missing names do not fail");
    }
};

CLI::Option* add_sort(CLI::App& command, answers::ViewOptions& view, std::vector<std::string> keys, const char* help) {
    view.sort = keys.front();
    return command.add_option("--sort", view.sort, help)
        ->type_name("NAME")
        ->transform(one_of(std::move(keys)))
        ->capture_default_str();
}
void add_only(CLI::App& command, std::vector<std::string>& only, std::string_view more = {}) {
    command
        .add_option("--only", only,
                    fmt::format("Only this function (p), source file (p.c, src/p.c), folder (src/) or image (program); "
                                "* and ? are wildcards{}. May be repeated",
                                more))
        ->type_name("NAME")
        ->check(not_empty())
        ->allow_extra_args(false)
        ->take_all();
}
void add_only(CLI::App& command, std::vector<std::string>& only, answers::CodeKind& code, std::string_view more = {}) {
    add_only(command, only, more);
    add_code(command, code);
}
CLI::Option* add_metric(CLI::App& command, answers::ViewOptions& view) {
    return command
        .add_option("--metric", view.metric,
                    "Metric of the rows, such as instructions, samples, \"latency cycles\" or a counter's event; "
                    "the capture's first if not given")
        ->type_name("NAME");
}

/// Ends a command: flushes the output, and combines the status of the output with the status for the captures.
ExitStatus finish(Output& out, ExitStatus shown, const std::vector<const answers::Answers*>& all, bool strict) {
    if (out.close() != decoded) return unreadable;
    if (shown != decoded && shown != nothing) return shown;
    for (const answers::Answers* answers : all)
        if (answers->cut) return unreadable;
    if (shown != decoded || !strict) return shown;
    const auto [of, what] = pipeline::shortcoming_of(all);
    if (of == nullptr) return decoded;
    say("error", about(of->capture, what) + " (--strict)");
    return nothing;
}

/// A check that an option's value is a number from 0 to `most`.
CLI::Validator percent(double most = 1e6) {
    return CLI::Validator(
        [most](const std::string& text) -> std::string {
            char* end = nullptr;
            const double value = std::strtod(text.c_str(), &end);
            if (!text.empty() && *end == 0 && value >= 0 && value <= most) return {};
            return fmt::format("'{}' is not a percentage from 0 to {:.0f}", text, most);
        },
        "", "per cent");
}

/// The sum of the answers of several captures. `builds`: builds of all captures of the command. `left_out`: receives
/// the captures without any answers, after a message about each.
Result<answers::Answers> answers_of_all(const AnswersOptions& options, const std::vector<std::string>& captures,
                                        const pipeline::Builds& builds, std::vector<pipeline::LeftOut>& left_out) {
    std::vector<pipeline::LeftOut> without_any;
    auto answers = pipeline::answers_of_all(
        captures,
        [&](const std::string& capture) {
            AnswersOptions one = options;
            one.input.capture = capture;
            one.input.symbols = builds.given_for(capture, options.input.symbols);
            one.input.images = builds.given_for(capture, options.input.images);
            for (std::string& file : builds.names_for(capture)) one.input.symbols.push_back(std::move(file));
            return answers_of(one);
        },
        without_any);
    say_left_out(without_any);
    left_out.insert(left_out.end(), without_any.begin(), without_any.end());
    return answers;
}

/// Errors: the errors of `Output::open`, for each of the captures and the files that are read with them.
Result<Output> open_output(const InputOptions& input, const std::vector<std::string>& captures) {
    std::vector<std::string> inputs = input.files();
    inputs.insert(inputs.end(), captures.begin(), captures.end());
    return Output::open(input.output, inputs);
}

template <class Options>
Run view(CLI::App& command, std::shared_ptr<Request> request, std::shared_ptr<Options> options,
         Result<answers::View> (*view_of)(const answers::Answers&, const Options&)) {
    command.footer(command.get_footer() + exit_status);
    return [request, options, view_of] {
        std::vector<std::string> captures{request->answers.input.capture};
        captures.insert(captures.end(), request->more.begin(), request->more.end());
        auto listed = listed_files(captures);
        if (!listed) return fail(listed.error());
        captures = std::move(*listed);
        const auto files = request->answers.input.file_search();
        if (!files) return fail(files.error());
        std::vector<pipeline::LeftOut> left_out;
        const auto answers = answers_of_all(request->answers, captures, pipeline::Builds(captures, *files), left_out);
        if (!answers) return fail_answers(answers.error(), captures);
        auto out = open_output(request->answers.input, captures);
        if (!out) return fail(out.error());
        options->strict = request->strict;
        if constexpr (std::is_same_v<Options, answers::CoverageOptions>)
            options->entered = !request->answers.all_functions;
        return with_left_out(left_out, finish(*out, show(*answers, view_of(*answers, *options), request->how, *out),
                                              {&*answers}, request->strict));
    };
}

}  // namespace

void add_thresholds(CLI::App& command, answers::DiffOptions& options) {
    command
        .add_option(
            "--threshold", options.threshold,
            "Exit with status 1 if a function, or the total, grew by more than this percentage of the old total. "
            "For samples: percentage points of share, and only statistically significant changes count")
        ->type_name("PERCENT")
        ->check(percent());
    command
        .add_option(
            "--threshold-each", options.threshold_each,
            "The same if a function grew by more than this percentage of its own old cost; a new function always "
            "exceeds it")
        ->type_name("PERCENT")
        ->check(percent());
    command
        .add_option("--threshold-count", options.threshold_count,
                    "The same if the cost of a function, or the total, grew by more than this number. Not for samples")
        ->type_name("N")
        ->check(not_negative());
}

ExitStatus fail_answers(const Error& error, const std::vector<std::string>& captures) {
    const auto is_missing = [](const std::string& c) { return c != "-" && !std::filesystem::exists(c); };
    if (error.code != Errc::not_found || std::ranges::any_of(captures, is_missing)) return fail(error);
    say("error", error.message);
    return nothing;
}

Run add_profile(CLI::App& app) {
    CLI::App& command =
        *app.add_subcommand("profile", "The cost of each function, line, block, instruction, image or level");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::ProfileOptions>();
    request->add_to(command);
    request->answers.calls = true;
    command
        .add_option(
            "--by", options->by,
            "One row per function, line, block, instruction, image, or level (exception level and security state)")
        ->type_name("NAME")
        ->transform(one_of({"function", "line", "block", "instruction", "image", "level"}))
        ->capture_default_str();
    command.add_flag("--inlines", options->inlines,
                     "By function: inlined code is attributed to the inlined function. By instruction: show the calls "
                     "it was inlined through. Needs debug information");
    command
        .add_flag("--without-interrupts{false}", options->interrupts,
                  "With callees: leave out what interrupts and signals ran meanwhile")
        ->default_str("");
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    add_metric(command, *options);
    add_sort(command, *options, {"self", "inclusive", "calls", "name"},
             "Sort order of the rows: self, inclusive, calls, name");
    command.footer(
        "The own cost of a function is that of its instructions; 'with callees' adds its callees, recursion counted "
        "once,\n"
        "and what interrupts ran meanwhile. A function that is entered by a tail call, a jump in place of a call, is "
        "a\n"
        "callee of the function that jumped.\n"
        "The last lines say which figures are exact, lower bounds or estimates, by what the capture contains of the "
        "run.\n"
        "Figures of samples have the 95 % interval of the share; those of counters are what the unit counted. Own "
        "costs "
        "of\n"
        "all rows add up to everything that was decoded. With --inlines, the cost of a function is that of its source "
        "lines;\n"
        "the column inlined is the part of it that is inlined in other functions.\n"
        "\n"
        "  waymark profile out --symbols program\n"
        "  waymark profile out --symbols program --inlines\n"
        "  waymark profile perf.data --by line --metric \"latency cycles\"\n"
        "  waymark profile out --by instruction --format tsv | head\n");
    return [request, options, show = view(command, request, options, answers::profile_view)] {
        if (options->inlines && options->by != "function" && options->by != "instruction") {
            say("error", "--inlines is for --by function and --by instruction. See waymark profile --help");
            return usage;
        }
        request->answers.inlined = options->inlines;
        request->answers.instructions =
            options->inlines || (options->by != "function" && options->by != "image" && options->by != "level");
        request->answers.disassembly = options->by == "instruction";
        return show();
    };
}

Run add_coverage(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("coverage", "Which code ran, which did not, and what was not observed");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::CoverageOptions>();
    request->add_to(command);
    request->answers.instructions = request->answers.all_functions = true;
    command
        .add_flag("--entered{false}", request->answers.all_functions,
                  "Only functions that were entered. Otherwise functions that never ran count if their code is known")
        ->default_str("");
    add_only(command, options->only, options->code);
    add_choice(command, "--by", options->by, {"file", "function", "image"}, "One row per file, function or image");
    add_choice(command, "--of", options->of, {"instructions", "lines", "branches"},
               "Unit of --fail-under and --sort: instructions, lines or branches");
    add_sort(command, *options, {"missing", "name"},
             "Sort order of the rows: missing (the program's own code before libraries and the system; most not run "
             "first) or name");
    command.add_flag("--uncovered", options->uncovered,
                     "Show code that did not run, and branches that went one way only");
    command
        .add_option("--fail-under", options->fail_under, "Exit with status 1 if the coverage is below this percentage")
        ->type_name("PERCENT")
        ->check(percent(100));
    command.footer(
        "Three classes: executed; not executed: the trace is complete and the code did not run; unknown (not\n"
        "observed): trace was lost, and the code may have run then. --fail-under counts unknown code as not run.\n"
        "Both directions of each conditional branch are listed. Lines need debug information. Functions that never "
        "ran\n"
        "are found by the symbols of --image, --symbols and mapped files, and count if their code is known: from the\n"
        "capture, from --image, or from a file with the build ID of the mapped one.\n"
        "--only NAME first means a function, with or without its parameters. If no function has that name, it means\n"
        "the end of a source file's path, or a folder if it ends with /. If there is no such file either, it means an\n"
        "image. So sort is the function, sort.c the file, and '*sort*' every function with sort in its name.\n"
        "\n"
        "  waymark coverage out --image program --only src/\n"
        "  waymark coverage out --uncovered --entered\n"
        "  waymark coverage out --of branches --fail-under 80\n");
    return view(command, request, options, answers::coverage_view);
}

Run add_branches(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("branches", "How often each branch was taken and not taken");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::BranchOptions>();
    request->add_to(command);
    request->answers.instructions = true;
    command.add_option("--function", options->function, "Only branches of this function; * and ? are wildcards")
        ->type_name("NAME")
        ->check(not_empty());
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    command.add_flag("--one-sided", options->one_sided, "Only conditional branches that ran and went one way only");
    add_sort(command, *options, {"times", "balance", "mispredicted", "address"},
             "Sort order of the rows: times; balance (count of the rarer direction); mispredicted (samples); "
             "address");
    command.footer(
        "Program flow contains all branches that ran. Samples contain some of them, and how often they were\n"
        "predicted wrongly ('waymark spe branches' writes those for BOLT and AutoFDO).\n"
        "\n"
        "  waymark branches out --symbols program --one-sided\n"
        "  waymark branches perf.data --sort mispredicted\n");
    return view(command, request, options, answers::branch_view);
}

Run add_loops(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("loops", "Loops: entries, iterations and cost of each");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::LoopOptions>();
    request->add_to(command);
    request->answers.instructions = request->answers.calls = true;
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    add_metric(command, *options);
    add_sort(command, *options, {"cost", "iterations", "entries", "address"},
             "Sort order of the rows: cost, iterations, entries, address");
    command.footer(
        "A loop is natural: all flow from outside enters it at its head, and everything that leads back to one head is "
        "one\n"
        "loop. Code that is repeated and was entered at several places is one row of kind irreducible. An iteration is "
        "an\n"
        "execution of the head: a loop that tests its condition there runs it once more than its body. Captures of a "
        "Debug\n"
        "and Profiling Unit contain hardware loops, in mode compressed.\n"
        "\n"
        "  waymark loops out --symbols program\n");
    return view(command, request, options, answers::loop_view);
}

Run add_exceptions(CLI::App& app) {
    CLI::App& command =
        *app.add_subcommand("exceptions", "Exceptions, interrupts and system calls: how many, how long");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::ViewOptions>();
    request->add_to(command);
    request->answers.calls = true;
    add_sort(command, *options, {"times", "time", "name"}, "Sort order of the rows: times, time, name");
    command.footer(
        "Times are from entry to return, including nested interrupts. Handlers that did not return before the trace "
        "ended are\n"
        "counted, but not timed.\n"
        "\n"
        "  waymark exceptions out\n");
    return view(command, request, options, answers::exception_view);
}

Run add_calls(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("calls", "The single calls of a function: how long each took, and why");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::CallOptions>();
    auto by = std::make_shared<std::string>();
    request->add_to(command);
    request->answers.calls = request->answers.timeline = true;
    command
        .add_option("--function", options->function,
                    "The function whose calls are shown, with or without its parameters; * and ? are wildcards")
        ->type_name("NAME")
        ->required()
        ->check(not_empty());
    command.add_option("--slowest", options->slowest, "Only the N slowest calls, in every format; 0: all")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    command
        .add_option("--by", *by,
                    "What a call's length is counted in: instructions; cycles; or time, by the trace's timestamps. "
                    "Default: cycles if the trace counts them, otherwise instructions")
        ->type_name("NAME")
        ->transform(one_of({"instructions", "cycles", "time"}));
    command.add_flag("--without-callees{false}", options->callees, "Leave out what the calls called")->default_str("");
    command.add_flag("--without-interrupts{false}", options->interrupts, "Leave out what exceptions ran meanwhile")
        ->default_str("");
    add_timestamp_hz(command, request->answers);
    command.footer(
        "The figures above the table are of whole calls. A call is not whole if the trace began, ended or was lost in "
        "it,\nor if another context ran meanwhile; it has the bound 'at least'. Percentiles are the lengths of calls: "
        "p95 is the\nshortest length that 95 % of the calls do not exceed. The column 'longer in' names the callee, "
        "the exceptions or the\nfunction's own code whose time in the call exceeds its average over the whole calls "
        "most.\nCalls need program flow. An answers file contains a limited number of calls, in one unit.\n\n  waymark "
        "calls out --function parse\n  waymark calls out --function irq_handler --slowest 3 --by cycles\n  waymark "
        "calls out --function parse --without-interrupts --format tsv\n");
    return [request, options, by, show = view(command, request, options, answers::call_view)] {
        // Each slice takes about 100 bytes while answers are computed.
        request->answers.most_slices = 4'000'000;
        request->answers.axis_of_timestamps = *by == "time";
        request->answers.axis_of_cycles = *by != "instructions";
        options->metric = *by;
        return show();
    };
}

Run add_diff(CLI::App& app) {
    CLI::App& command = *app.add_subcommand("diff", "What changed between two captures, function by function");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::DiffOptions>();
    auto before = std::make_shared<std::vector<std::string>>(), after = std::make_shared<std::vector<std::string>>();
    auto two = std::make_shared<std::vector<std::string>>();
    command.add_option("CAPTURES", *two, "Two captures: before and after the change")->type_name("");
    const auto set = [&](const char* name, std::vector<std::string>& into, const char* help) {
        command.add_option(name, into, help)->type_name("CAPTURE…")->expected(1, 1000);
    };
    set("--before", *before, "Captures before the change; their costs are added together");
    set("--after", *after, "Captures after the change; their costs are added together");
    InputOptions& input = request->answers.input;
    command.add_option("--image", input.images, "Program image for both, as in waymark flow. May be repeated")
        ->type_name("FILE[@ADDRESS]")
        ->take_all();
    command.add_option("--symbols", input.symbols, "ELF file to take names from, for both. May be repeated")
        ->type_name("FILE")
        ->take_all();
    input.add_folders_to(command);
    input.add_generated_to(command);
    input.selection.add_to(command);
    add_output(command, input.output);
    request->add_shared(command);
    request->answers.calls = true;
    add_metric(command, *options);
    add_choice(command, "--by", options->by, {"self", "inclusive"},
               "Cost that is compared: self (a function's own) or inclusive");
    add_sort(command, *options, {"change", "name"}, "Sort order of the rows: change (the largest first) or name");
    add_thresholds(command, *options);
    command.add_option("--least", options->least, "Ignore functions that cost less than this both before and after")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    add_only(command, options->only,
             ": selected on either side, compared on both. Shares and --threshold still refer to the whole capture");
    command
        .add_option(
            "--rename", options->renames,
            "The function NEW was called OLD before; names as for --only. May be repeated. Suffixes that compilers add "
            "to names of parts and "
            "copies, such as .isra.0, are ignored anyway")
        ->type_name("OLD=NEW")
        ->allow_extra_args(false)
        ->take_all();
    command.add_flag("--mean", options->mean,
                     "With --before and --after: compare averages per capture instead of sums");
    command.footer(std::string(
        "Functions are compared by name, whatever their image is called; code without names by its place in "
        "the\n"
        "file, where both sides have one build. Where the names of an image are known on one side only, "
        "and no\n"
        "other copy of that build has them, no threshold applies to its functions: status 1.\nCounts of program "
        "flow "
        "and of counters are compared as they are; "
        "samples by\n"
        "their shares, because their number depends on the length of the recording.\n"
        "\n"
        "  waymark diff yesterday today --symbols program\n"
        "  waymark diff yesterday today --threshold 2 || echo slower\n"
        "  waymark diff yesterday today --metric cycles --threshold-each 10 --least 1000\n"
        "  waymark diff --before run1 run2 --after run3 run4\n"
        "\n"
        "Exit status: 0 compared, and no threshold is exceeded; 1 a threshold is exceeded, there is nothing to "
        "compare,\n"
        "or trace was lost and --strict is given; 2 usage; 3 a capture cannot be read completely, or the output\n"
        "cannot be written.\n"));
    return [request, options, before, after, two] {
        if (two->size() == 2 && before->empty() && after->empty()) {
            *before = {two->front()};
            *after = {two->back()};
        } else if (!two->empty() || before->empty() || after->empty()) {
            say("error",
                "diff needs two captures, or sets of captures with --before and --after. See waymark diff --help");
            return usage;
        }
        for (std::vector<std::string>* side : {before.get(), after.get()}) {
            auto listed = listed_files(*side);
            if (!listed) return fail(listed.error());
            *side = std::move(*listed);
        }
        options->changed_only = request->how.format == "text";
        options->strict = request->strict;
        options->captures_before = before->size();
        options->captures_after = after->size();
        std::vector<std::string> captures = *before;
        captures.insert(captures.end(), after->begin(), after->end());
        const auto files = request->answers.input.file_search();
        if (!files) return fail(files.error());
        const pipeline::Builds builds(captures, *files);
        std::vector<pipeline::LeftOut> left_out;
        const auto a = answers_of_all(request->answers, *before, builds, left_out);
        if (!a) return fail_answers(a.error(), *before);
        const auto b = answers_of_all(request->answers, *after, builds, left_out);
        if (!b) return fail_answers(b.error(), *after);
        auto out = open_output(request->answers.input, captures);
        if (!out) return fail(out.error());
        return with_left_out(
            left_out, finish(*out, show_diff(*a, *b, *options, request->how, *out), {&*a, &*b}, request->strict));
    };
}

}  // namespace waymark::cli
