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
#include "waymark/answers/parts.h"
#include "waymark/pipeline/builds.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

namespace {

/// A capture, decoded for one command.
struct Request {
    AnswersOptions answers;
    std::vector<std::string> more;  // further captures of the same program
    ViewFormat how;
    bool strict = false;

    void add_to(const Command& command) {
        answers.input.add_to(command);
        answers.input.selection.add_to(command);
        const Option capture = command.get_option("CAPTURE");
        capture->description(
            "The capture: a snapshot folder or its snapshot.ini, a perf.data file (CoreSight or SPE), a "
            "folder with a dpu.ini, an answers file; or a bare trace file (.gz and .zst too), which needs --protocol");
        command.option("MORE", more);
        add_shared(command);
    }
    void add_shared(const Command& command) {
        command.option("--format", how.format);
        command.option("--limit", how.limit);
        command.flag("--wide", how.wide);
        command.option("--jobs", answers.jobs);
        command.option("--kallsyms", answers.kallsyms);
        command.flag("--strict", strict);
    }
};

void add_only(const Command& command, std::vector<std::string>& only, std::string_view more = {}) {
    command
        .add_option("--only", only,
                    fmt::format("Only this function (p), source file (p.c, src/p.c), folder (src/) or image (program); "
                                "* and ? are wildcards{}. May be repeated",
                                more))
        ->type_name("NAME")
        ->check(not_empty())
        ->repeated();
}
void add_only(const Command& command, std::vector<std::string>& only, answers::CodeKind& code,
              std::string_view more = {}) {
    add_only(command, only, more);
    add_code(command, code);
}
Option add_metric(const Command& command, answers::ViewOptions& view) {
    return command.option("--metric", view.metric);
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
Check percent(double most = 1e6) {
    return {[most](const std::string& text) -> std::string {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        if (!text.empty() && *end == 0 && value >= 0 && value <= most) return {};
        return fmt::format("'{}' is not a percentage from 0 to {:.0f}", text, most);
    }};
}

/// The sum of the answers of several captures. `builds`: builds of all captures of the command. `left_out`:
/// receives the captures without any answers, after a message about each.
Result<answers::Answers> answers_of_all(const AnswersOptions& options, const std::vector<std::string>& captures,
                                        const pipeline::Builds& builds, std::vector<pipeline::LeftOut>& left_out) {
    std::vector<pipeline::LeftOut> without_any;
    auto answers = pipeline::answers_of_all(
        captures,
        [&](const std::string& capture) {
            AnswersOptions one = options;
            one.input.capture = capture;
            one.summand = true;
            one.input.symbols = builds.given_for(capture, options.input.symbols);
            one.input.images = builds.given_for(capture, options.input.images);
            for (std::string& file : builds.names_for(capture)) one.input.symbols.push_back(std::move(file));
            return answers_of(one);
        },
        without_any);
    say_left_out(without_any);
    if (answers)
        for (const answers::Finding& f : answers::captures_added_again(*answers)) say("note", f.what);
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
Run view(std::shared_ptr<Request> request, std::shared_ptr<Options> options,
         Result<answers::View> (*view_of)(const answers::Answers&, const Options&)) {
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

void add_thresholds(const Command& command, answers::DiffOptions& options) {
    command.option("--threshold", options.threshold)->check(percent());
    command.option("--threshold-each", options.threshold_each)->check(percent());
    command.option("--threshold-count", options.threshold_count);
}

ExitStatus fail_answers(const Error& error, const std::vector<std::string>& captures) {
    const auto is_missing = [](const std::string& c) { return c != "-" && !std::filesystem::exists(c); };
    if (error.code != Errc::not_found || std::ranges::any_of(captures, is_missing)) return fail(error);
    say("error", error.message);
    return nothing;
}

Run add_profile(const Command& app) {
    const Command command = app.add("profile");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::ProfileOptions>();
    request->add_to(command);
    request->answers.calls = true;
    command.option("--by", options->by);
    command.flag("--inlines", options->inlines);
    command.flag("--without-interrupts", options->interrupts)->default_str("");
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    add_metric(command, *options);
    command.option("--sort", options->sort);
    return [request, options, show = view(request, options, answers::profile_view)] {
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

Run add_coverage(const Command& app) {
    const Command command = app.add("coverage");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::CoverageOptions>();
    request->add_to(command);
    request->answers.instructions = request->answers.all_functions = true;
    command.flag("--entered", request->answers.all_functions)->default_str("");
    add_only(command, options->only, options->code);
    command.option("--by", options->by);
    command.option("--of", options->of);
    command.option("--sort", options->sort);
    command.flag("--uncovered", options->uncovered);
    command.option("--fail-under", options->fail_under)->check(percent(100));
    return view(request, options, answers::coverage_view);
}

Run add_branches(const Command& app) {
    const Command command = app.add("branches");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::BranchOptions>();
    request->add_to(command);
    request->answers.instructions = true;
    command.option("--function", options->function);
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    command.flag("--one-sided", options->one_sided);
    command.option("--sort", options->sort);
    return view(request, options, answers::branch_view);
}

Run add_loops(const Command& app) {
    const Command command = app.add("loops");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::LoopOptions>();
    request->add_to(command);
    request->answers.instructions = request->answers.calls = true;
    add_only(command, options->only, options->code, ". Shares still refer to the whole capture");
    add_metric(command, *options);
    command.option("--sort", options->sort);
    return view(request, options, answers::loop_view);
}

Run add_exceptions(const Command& app) {
    const Command command = app.add("exceptions");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::ViewOptions>();
    request->add_to(command);
    request->answers.calls = true;
    command.option("--sort", options->sort);
    return view(request, options, answers::exception_view);
}

Run add_calls(const Command& app) {
    const Command command = app.add("calls");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::CallOptions>();
    auto by = std::make_shared<std::string>();
    request->add_to(command);
    request->answers.calls = request->answers.timeline = true;
    command.option("--function", options->function);
    command.option("--slowest", options->slowest);
    command.option("--by", *by);
    command.flag("--without-callees", options->callees)->default_str("");
    command.flag("--without-interrupts", options->interrupts)->default_str("");
    add_timestamp_hz(command, request->answers);
    return [request, options, by, show = view(request, options, answers::call_view)] {
        // Each slice takes about 100 bytes while answers are computed.
        request->answers.most_slices = 4'000'000;
        request->answers.axis_of_timestamps = *by == "time";
        request->answers.axis_of_cycles = *by != "instructions";
        options->metric = *by;
        return show();
    };
}

Run add_diff(const Command& app) {
    const Command command = app.add("diff");
    auto request = std::make_shared<Request>();
    auto options = std::make_shared<answers::DiffOptions>();
    auto before = std::make_shared<std::vector<std::string>>(), after = std::make_shared<std::vector<std::string>>();
    auto two = std::make_shared<std::vector<std::string>>();
    command.option("CAPTURES", *two);
    const auto set = [&](const char* name, std::vector<std::string>& into, const char* help) {
        command.add_option(name, into, help)->type_name("CAPTURE…")->expected(1, 1000);
    };
    set("--before", *before, "Captures before the change; their costs are added together");
    set("--after", *after, "Captures after the change; their costs are added together");
    InputOptions& input = request->answers.input;
    command.option("--image", input.images);
    command.option("--symbols", input.symbols);
    input.add_folders_to(command);
    input.add_generated_to(command);
    input.selection.add_to(command);
    command.option("--output", input.output);
    request->add_shared(command);
    request->answers.calls = true;
    add_metric(command, *options);
    command.option("--by", options->by);
    command.option("--sort", options->sort);
    add_thresholds(command, *options);
    command.option("--least", options->least);
    add_only(command, options->only,
             ": selected on either side, compared on both. Shares and --threshold still refer to the whole capture");
    command.option("--rename", options->renames);
    command.flag("--mean", options->mean);
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
